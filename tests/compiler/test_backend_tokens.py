# SPDX-License-Identifier: Apache-2.0
"""The token plan: no deadlock, no overflow, nothing left over, for any depth of the queues."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from compiler.backend_cases import MAKERS, conv_graph, make_graph
from compiler.queue_model import run_interleaved
from compiler.test_backend_tiling import random_config
from openvta.compiler.pipeline import compile_graph
from openvta.compiler.schedule.steps import Memory, Span, Step, format_schedule
from openvta.compiler.schedule.tokens import NOOP, plan_tokens
from openvta.spec import load_config
from openvta.spec.insn import Insn, make
from openvta.spec.isa import MemId, Opcode, Unit

SIZES = {Memory.INP: 16, Memory.WGT: 16, Memory.OUT: 16, Memory.DATA: 64}
LOAD = make(Opcode.LOAD, memory_id=MemId.INP, x_size=1, y_size=1)
GEMM = make(Opcode.GEMM, iter_out=1, iter_in=1, uop_end=1)
STORE = make(Opcode.STORE, memory_id=MemId.OUT, x_size=1, y_size=1)


def span(memory: Memory, low: int, high: int) -> tuple[Span, ...]:
    return (Span(memory, low, high),)


def with_finish(steps: list[Step], depth: int) -> list[Insn]:
    planned = plan_tokens(steps, SIZES, depth)
    return [*(item.insn for item in planned), make(Opcode.FINISH)]


def test_a_chain_through_all_units() -> None:
    steps = [
        Step(LOAD, 0, (), span(Memory.INP, 0, 4)),
        Step(GEMM, 0, span(Memory.INP, 0, 4), span(Memory.OUT, 0, 4)),
        Step(STORE, 0, span(Memory.OUT, 0, 4), span(Memory.DATA, 0, 4)),
    ]
    flags = [item.flags for item in plan_tokens(steps, SIZES, 4)]
    assert flags == [("push_next",), ("pop_prev", "push_next"), ("pop_prev",)]


def test_a_read_of_a_stored_tensor_goes_through_a_compute_no_op() -> None:
    steps = [
        Step(GEMM, 0, (), span(Memory.OUT, 0, 4)),
        Step(STORE, 0, span(Memory.OUT, 0, 4), span(Memory.DATA, 0, 4)),
        Step(LOAD, 1, span(Memory.DATA, 2, 3), span(Memory.INP, 0, 1)),
    ]
    planned = plan_tokens(steps, SIZES, 4)
    assert [item.step.unit for item in planned] == [Unit.COMPUTE, Unit.STORE, Unit.COMPUTE, Unit.LOAD]
    assert planned[2].step.insn == NOOP
    assert planned[2].insn.is_noop
    assert planned[2].flags == ("pop_next", "push_prev")
    assert "pop_next" in planned[3].flags


def test_no_token_where_nothing_is_shared() -> None:
    steps = [
        Step(LOAD, 0, (), span(Memory.INP, 0, 4)),
        Step(GEMM, 0, span(Memory.INP, 4, 8), span(Memory.OUT, 0, 4)),
        Step(STORE, 0, span(Memory.OUT, 4, 8), span(Memory.DATA, 0, 4)),
        Step(LOAD, 0, span(Memory.DATA, 4, 8), span(Memory.INP, 0, 4)),
    ]
    assert all(not item.flags for item in plan_tokens(steps, SIZES, 1))


@pytest.mark.parametrize("depth", [1, 2, 5])
def test_random_steps_for_small_token_depths(depth: int, rng: np.random.Generator) -> None:
    config = replace(load_config("tiny"), token_depth=depth, queue_depth=2)
    for trial in range(30):
        steps = []
        for _ in range(60):
            kind = int(rng.integers(0, 3))
            at = [int(v) for v in rng.integers(0, 12, 2)]
            inp, out, data = (span(m, at[0], at[0] + 4) for m in (Memory.INP, Memory.OUT, Memory.DATA))
            other = span(Memory.OUT, at[1], at[1] + 2)
            if kind == 0:
                steps.append(Step(LOAD, 0, data, inp))
            elif kind == 1:
                steps.append(Step(GEMM, 0, inp, other))
            else:
                steps.append(Step(STORE, 0, out, data))
        program = with_finish(steps, depth)
        for interleaving in range(3):
            assert run_interleaved(program, config, trial * 10 + interleaving) <= depth


@pytest.mark.parametrize("operator", sorted(MAKERS))
def test_programs_of_every_operator_end_in_any_interleaving(operator: str, seed: int) -> None:
    rng = np.random.default_rng([seed, 99])
    for number in range(4):
        config = random_config(rng).replace(token_depth=int(rng.integers(1, 5)), queue_depth=2)
        compiled = compile_graph(make_graph(operator, 1000 * seed + number), config)
        for segment in compiled.segments:
            for interleaving in range(2):
                run_interleaved(segment.program.insns(), config, interleaving)


def test_removing_a_token_is_seen() -> None:
    """The model of the queues that these tests lean on does find a missing push."""
    graph = conv_graph(np.random.default_rng(1), (8, 8), (8, 8), (3, 3), (1, 1), (1, 1, 1, 1))
    config = load_config("tiny")
    program = compile_graph(graph, config).segments[0].program.insns()
    place = next(k for k, insn in enumerate(program) if insn["push_next"])
    fields = {name: value for name, value in program[place].fields.items() if name != "push_next"}
    program[place] = Insn(program[place].opcode, fields)
    with pytest.raises(AssertionError, match="deadlock"):
        run_interleaved(program, config, 1)


def test_the_schedule_prints_every_instruction() -> None:
    graph = make_graph("conv", 3)
    compiled = compile_graph(graph, load_config("tiny"))
    text = format_schedule(compiled.segments[0].schedule, ("conv",))
    assert len(text.splitlines()) == len(compiled.segments[0].program)
    assert "# layer 0: conv" in text
    assert compiled.text().startswith("# segment 0")
