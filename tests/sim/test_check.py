# SPDX-License-Identifier: Apache-2.0
"""Checking mode: every kind of finding, on programs that contain it, and none on programs that do not."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from openvta.sim.fsim import Machine
from openvta.sim.fsim.check import CheckError, CheckReport, Kind, check_stream
from openvta.sim.memory import DeviceMemory
from openvta.spec import Cause, Insn, MemId, Opcode, Program, decode, encode, load_config, make
from openvta.spec.isa import TOKEN_FLAGS
from random_programs import AREA, NAMES, Generator
from stream_tools import FINISH, Bench, bench, gemm, load, store, stream

TINY = load_config("tiny")
PUSH = {"push_next": 1}


def check(on: Bench, *insns: Insn, seed: int | None = None) -> CheckReport:
    return check_stream(on.machine, stream(TINY, *insns, FINISH), on.bases, seed=seed)


def ready() -> Bench:
    on = bench(TINY)
    on.fill()
    on.set_uops((0, 0, 0), (1, 1, 1))
    return on


def test_a_synchronised_program_has_no_findings() -> None:
    on = ready()
    report = check(
        on,
        load(MemId.INP, 0, 4, push_next=1),
        gemm(pop_prev=1, push_next=1, push_prev=1),
        load(MemId.INP, 0, 4, pop_next=1),
        store(0, 1, pop_prev=1),
    )
    assert report.outcome.fault is None
    assert report.findings == ()


@pytest.mark.parametrize("seed", [None, 1, 2, 3])
def test_a_race_is_found_whatever_the_order(seed: int | None) -> None:
    on = ready()
    report = check(on, load(MemId.INP, 0, 2), gemm(), seed=seed)
    (finding,) = report.findings
    assert (finding.kind, finding.instructions) == (Kind.RACE, (0, 1))
    assert "inp 0" in finding.message
    assert "instruction 0 (load) [load" in finding.message.lower()
    assert "instruction 1 (compute) [gemm" in finding.message.lower()


def test_reading_before_a_later_write_is_a_race_as_well() -> None:
    on = ready()
    report = check(
        on, load(MemId.INP, 0, 2, push_next=1), gemm(pop_prev=1), load(MemId.INP, 1, 1), load(MemId.INP, 0, 1)
    )
    (finding,) = report.findings
    assert (finding.kind, finding.instructions) == (Kind.RACE, (1, 3))


def test_a_token_of_an_earlier_instruction_does_not_cover_a_later_one() -> None:
    on = ready()
    report = check(
        on, load(MemId.WGT, 0, 1, push_next=1), load(MemId.INP, 0, 1), load(MemId.UOP, 9, 1, pop_prev=1), gemm()
    )
    (finding,) = report.findings
    assert (finding.kind, finding.instructions) == (Kind.RACE, (1, 3))


def test_order_passes_through_a_third_unit() -> None:
    """load -> compute -> store -> compute -> load: the last load may overwrite what the first one fed to store."""
    on = ready()
    on.memory.write(on.bases["out"], bytes(64))
    bases = on.bases | {"inp": on.bases["out"]}
    program = [
        gemm(push_next=1),
        store(0, 1, pop_prev=1, push_prev=1),
        load(MemId.UOP, 9, 1, pop_next=1, push_prev=1),
        load(MemId.INP, 3, 1, pop_next=1),
    ]
    report = check_stream(on.machine, stream(TINY, *program, FINISH), bases)
    assert report.findings == ()
    program[2] = load(MemId.UOP, 9, 1, push_prev=1)
    program[1] = store(0, 1, pop_prev=1)
    report = check_stream(on.machine, stream(TINY, *program, FINISH), bases)
    (finding,) = report.findings
    assert (finding.kind, finding.instructions) == (Kind.RACE, (1, 3))
    assert f"{on.bases['out']:#x}" in finding.message


def test_never_written_scratchpad_and_memory() -> None:
    on = bench(TINY)
    on.set_uops((0, 0, 0))
    fresh = on.memory.allocate(4096)
    report = check_stream(
        on.machine,
        stream(TINY, load(MemId.INP, 0, 1, push_next=1), gemm(pop_prev=1), load(MemId.UOP, 1, 1), store(5, 1), FINISH),
        on.bases | {"uop": fresh},
    )
    texts = [finding.message for finding in report.findings if finding.kind is Kind.NEVER_WRITTEN]
    assert any("acc 0" in text for text in texts)
    assert any("wgt 0" in text for text in texts)
    assert any("out 5" in text for text in texts)
    assert any(f"device memory at {fresh:#x}" in text for text in texts)
    assert not any("inp" in text and "reads inp" in text for text in texts)


def test_missing_push_is_a_deadlock_naming_both() -> None:
    on = ready()
    report = check(on, load(MemId.INP, 0, 1), load(MemId.INP, 1, 1), gemm(pop_prev=1))
    finding = report.findings[0]
    assert finding.kind is Kind.DEADLOCK and finding.instructions == (2, 1)
    assert "load_to_compute 0" in finding.message and "store_to_compute 0" in finding.message
    assert "instruction 2 (compute)" in finding.message and "instruction 1 (load)" in finding.message
    assert report.outcome.fault is not None and report.outcome.fault.cause is Cause.WATCHDOG


def test_circular_wait_names_who_would_push_and_what_stands_before() -> None:
    on = ready()
    report = check(
        on,
        load(MemId.INP, 0, 1, pop_next=1),
        load(MemId.INP, 0, 1, push_next=1),
        gemm(pop_prev=1),
        load(MemId.UOP, 9, 1, push_prev=1),
    )
    finding = report.findings[0]
    assert finding.kind is Kind.DEADLOCK
    assert set(finding.instructions) == {0, 1, 2, 3}
    assert "stands behind" in finding.message


def test_leftover_token_names_the_push_and_who_should_pop() -> None:
    on = ready()
    report = check(
        on,
        load(MemId.INP, 0, 1, push_next=1),
        load(MemId.UOP, 9, 1),
        load(MemId.INP, 1, 1, push_next=1),
        gemm(pop_prev=1),
    )
    leftover = [finding for finding in report.findings if finding.kind is Kind.LEFTOVER_TOKEN]
    assert [finding.instructions for finding in leftover] == [(0, 1)]
    assert "1 token of load_to_compute" in leftover[0].message


def test_overflow_that_only_an_unlucky_order_meets() -> None:
    config = dataclasses.replace(TINY, token_depth=2, queue_depth=8)
    on = bench(config)
    pairs = [load(MemId.INP, 0, 0, push_next=1), load(MemId.UOP, 0, 0, pop_prev=1)] * 3
    program = stream(config, *pairs, FINISH)
    assert on.machine.run_stream(program, on.bases).fault is None
    report = check_stream(on.machine, program, on.bases)
    (finding,) = report.findings
    assert finding.kind is Kind.TOKEN_OVERFLOW and finding.instructions == (4, 1)
    assert "depth 2" in finding.message


def without_token(program: Program, index: int, flag: str) -> Program:
    insn = decode(program.config, program.words[index])
    fields = {name: value for name, value in insn.fields.items() if name != flag}
    words = list(program.words)
    words[index] = encode(program.config, Insn(insn.opcode, fields))
    return Program(program.config, tuple(words))


@pytest.mark.parametrize("name", ["tiny", "batch"])
def test_any_token_removed_is_found_and_names_both_instructions(name: str, rng: np.random.Generator) -> None:
    config = load_config(name)
    found = Generator(config, rng).program(30)
    insns = found.program.insns()
    cases = [(index, flag) for index, insn in enumerate(insns) for flag in TOKEN_FLAGS if insn[flag]]
    assert len(cases) > 20
    for index, flag in cases:
        memory = DeviceMemory()
        bases = {}
        for area in NAMES:
            bases[area] = memory.allocate(AREA)
            memory.write(bases[area], found.areas[area])
        report = check_stream(Machine(config, memory), without_token(found.program, index, flag).to_bytes(), bases)
        kinds = {finding.kind for finding in report.findings} - {Kind.NEVER_WRITTEN}
        assert kinds & {Kind.DEADLOCK, Kind.RACE, Kind.LEFTOVER_TOKEN}, (index, flag)
        named = {number for finding in report.findings for number in finding.instructions}
        assert index in named, (index, flag, report.findings)
        assert any(len(f.instructions) > 1 for f in report.findings if f.kind is not Kind.NEVER_WRITTEN), (index, flag)


def test_the_error_lists_the_findings() -> None:
    on = ready()
    report = check(on, load(MemId.INP, 0, 2), gemm())
    text = str(CheckError(report))
    assert "1 finding" in text and "race: inp" in text


def test_faults_are_outcomes_not_findings() -> None:
    on = ready()
    report = check(on, make(Opcode.LOAD, memory_id=2, x_size=1, y_size=1, sram_base=63, x_pad_1=9))
    assert report.outcome.fault is not None and report.outcome.fault.cause is Cause.INDEX_RANGE
    assert report.findings == ()
