# SPDX-License-Identifier: Apache-2.0
"""Loads move forward, and only as far as what they read and overwrite allows."""

from __future__ import annotations

import numpy as np
import pytest

from openvta.compiler.schedule.order import order_loads
from openvta.compiler.schedule.steps import Memory, Span, Step
from openvta.spec import load_config
from openvta.spec.insn import make
from openvta.spec.isa import MemId, Opcode, Unit

SIZES = {Memory.INP: 64, Memory.WGT: 64, Memory.OUT: 64, Memory.DATA: 256}
CONFIG = load_config("default")


def load(memory: Memory, low: int, high: int, source: tuple[int, int] | None = None, moved: int = 64) -> Step:
    kind = MemId.INP if memory is Memory.INP else MemId.WGT
    reads = (Span(Memory.DATA, *source),) if source else ()
    return Step(make(Opcode.LOAD, memory_id=kind, x_size=1, y_size=1), 0, reads, (Span(memory, low, high),), moved)


def gemm(inp: tuple[int, int], wgt: tuple[int, int], out: tuple[int, int], uops: int = 1000) -> Step:
    reads = (Span(Memory.INP, *inp), Span(Memory.WGT, *wgt))
    return Step(make(Opcode.GEMM), 0, reads, (Span(Memory.OUT, *out),), uops=uops)


def store(out: tuple[int, int], target: tuple[int, int]) -> Step:
    insn = make(Opcode.STORE, memory_id=MemId.OUT)
    return Step(insn, 0, (Span(Memory.OUT, *out),), (Span(Memory.DATA, *target),), 64)


def conflicts(a: Step, b: Step) -> bool:
    def meet(left: tuple[Span, ...], right: tuple[Span, ...]) -> bool:
        return any(x.memory is y.memory and x.low < y.high and y.low < x.high for x in left for y in right)

    return meet(a.writes, b.writes) or meet(a.writes, b.reads) or meet(a.reads, b.writes)


def check(steps: list[Step]) -> list[Step]:
    """The new order keeps every conflicting pair, and compute and store steps among themselves."""
    ordered = order_loads(steps, SIZES, CONFIG)
    assert len(ordered) == len(steps) and set(map(id, ordered)) == set(map(id, steps))
    place = {id(step): k for k, step in enumerate(ordered)}
    rest = [place[id(step)] for step in steps if step.unit is not Unit.LOAD]
    assert rest == sorted(rest)
    for k, first in enumerate(steps):
        for second in steps[k + 1 :]:
            if conflicts(first, second):
                assert place[id(first)] < place[id(second)]
    return ordered


def test_weights_come_ahead_and_inputs_wait_for_their_rows() -> None:
    first = gemm((0, 8), (0, 8), (0, 8))
    second = gemm((8, 16), (8, 16), (8, 16))
    early = load(Memory.WGT, 8, 16)
    late = load(Memory.INP, 8, 16, (100, 108))
    steps = [load(Memory.INP, 0, 8, (0, 8)), load(Memory.WGT, 0, 8), first, store((0, 8), (100, 108)), late, early]
    ordered = check([*steps, second])
    assert ordered.index(early) < ordered.index(first) < ordered.index(late) < ordered.index(second)


def test_a_load_waits_for_the_last_reader_of_its_place() -> None:
    first, second = gemm((0, 8), (0, 8), (0, 8)), gemm((8, 16), (0, 8), (8, 16))
    again = load(Memory.INP, 0, 8, (16, 24))
    third = gemm((0, 8), (0, 8), (16, 24))
    steps = [load(Memory.INP, 0, 8, (0, 8)), load(Memory.WGT, 0, 8), first, load(Memory.INP, 8, 16, (8, 16)), second]
    ordered = check([*steps, again, third])
    assert ordered.index(first) < ordered.index(again) < ordered.index(second)


def test_nothing_to_move() -> None:
    steps = [store((0, 8), (0, 8)), gemm((0, 8), (0, 8), (0, 8))]
    assert order_loads(steps, SIZES, CONFIG) == steps
    assert order_loads([], SIZES, CONFIG) == []


@pytest.mark.parametrize("part", range(5))
def test_random_steps_keep_their_conflicts(part: int, seed: int) -> None:
    rng = np.random.default_rng([seed, part])

    def span(size: int) -> tuple[int, int]:
        low = int(rng.integers(0, size - 8))
        return low, low + int(rng.integers(1, 9))

    for _ in range(20):
        steps: list[Step] = []
        for _ in range(int(rng.integers(1, 60))):
            kind = int(rng.integers(0, 5))
            if kind < 2:
                steps.append(load(Memory.INP, *span(64), span(256), int(rng.integers(1, 4000))))
            elif kind == 2:
                steps.append(load(Memory.WGT, *span(64), None, int(rng.integers(1, 4000))))
            elif kind == 3:
                steps.append(gemm(span(64), span(64), span(64), int(rng.integers(1, 3000))))
            else:
                steps.append(store(span(64), span(256)))
        check(steps)
