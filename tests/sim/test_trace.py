# SPDX-License-Identifier: Apache-2.0
"""Traces: the hash, the file, and the first divergence."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from openvta.sim.diff import diff_traces, format_divergences
from openvta.sim.fsim.tracer import Tracer
from openvta.sim.trace import Cells, Trace, TraceError, TraceEvent, hash_cells, read_trace, write_trace
from openvta.spec import MemId, Opcode, Program, Unit, load_config
from openvta.spec.cellhash import STEP, mix, word_hash
from stream_tools import FINISH, bench, gemm, load, store, stream

TINY = load_config("tiny")
PROGRAM = stream(
    TINY,
    load(MemId.UOP, 0, 2),
    load(MemId.INP, 0, 2, push_next=1),
    gemm(pop_prev=1, push_next=1, reset=1),
    store(0, 2, 3, y_size=2, x_stride=4, pop_prev=1),
    FINISH,
)


def trace(seed: int = 1, order: int | None = None) -> Trace:
    on = bench(TINY, seed)
    on.memory.write(on.bases["uop"], bytes(64))
    tracer = Tracer(on.machine)
    assert on.machine.run_stream(PROGRAM, on.bases, seed=order).fault is None
    return Trace("fsim", TINY, Program.from_bytes(TINY, PROGRAM).words, tuple(tracer.events))


def test_hash_is_the_sum_over_words_whatever_the_order() -> None:
    cells = [
        Cells(4, np.array([7, 2]), np.array([[1, 2], [3, 4]], np.uint8)),
        Cells(3, np.array([9]), np.array([[5, 0, 0, 0, 6]], np.uint8)),
    ]
    words = [(4, 7, 0, 0x201), (4, 2, 0, 0x403), (3, 9, 0, 5), (3, 9, 1, 6)]
    expected = sum(word_hash(*word) for word in words) % 2**64
    assert hash_cells(cells) == f"{expected:016x}"
    assert hash_cells(reversed(cells)) == hash_cells(cells)
    assert hash_cells([]) == "0" * 16
    again = [Cells(4, np.array([7, 2, 7]), np.array([[9, 9], [3, 4], [1, 2]], np.uint8)), cells[1]]
    assert hash_cells(again) == hash_cells(cells)


def test_hash_of_a_cell_with_nothing_in_it_is_not_nothing() -> None:
    assert mix(0) == 0 and word_hash(0, 0, 0, 0) == mix(mix(STEP)) != 0


def test_events_do_not_depend_on_the_interleaving() -> None:
    first, second = trace(), trace(order=5)
    assert diff_traces(first, second) == []
    assert format_divergences([]) == "no divergence"
    assert [event.opcode for event in first.of(Unit.COMPUTE)] == [Opcode.LOAD, Opcode.GEMM, Opcode.FINISH]


def test_files_round_trip(tmp_path: Path) -> None:
    recorded = trace()
    timed = dataclasses.replace(recorded, events=tuple(dataclasses.replace(e, cycle=7) for e in recorded.events))
    for value in (recorded, timed):
        write_trace(tmp_path / "t.jsonl", value)
        assert read_trace(tmp_path / "t.jsonl") == value


def test_the_first_divergence_of_a_unit_is_named_with_its_instruction() -> None:
    first, second = trace(), trace(seed=2)
    divergences = diff_traces(first, second)
    assert [d.unit for d in divergences] == [Unit.LOAD]
    text = format_divergences(divergences)
    assert "load unit, event 0: wrote other values" in text and "instruction 1 [" in text and "load" in text.lower()


def test_missing_events_and_other_streams() -> None:
    first = trace()
    short = Trace("rtl", TINY, first.program, first.events[:-1])
    (divergence,) = diff_traces(first, short)
    assert divergence.second is None and "rtl has no more events" in divergence.text
    other = Trace("rtl", TINY, first.program[1:], ())
    with pytest.raises(TraceError, match="different streams"):
        diff_traces(first, other)
    swapped = Trace("rtl", TINY, first.program, (TraceEvent(Unit.LOAD, 3, Opcode.LOAD), *first.events))
    assert "instruction 1 against instruction 3" in diff_traces(first, swapped)[0].text


@pytest.mark.parametrize("damage", ["", "{}", "not json", '{"trace": 1, "hash": "other"}'])
def test_damaged_files_are_refused(damage: str, tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text(damage)
    with pytest.raises(TraceError, match="record it again"):
        read_trace(path)
    write_trace(path, trace())
    path.write_text(path.read_text() + '{"unit": "LOAD"}\n')
    with pytest.raises(TraceError, match="line 7: damaged"):
        read_trace(path)
