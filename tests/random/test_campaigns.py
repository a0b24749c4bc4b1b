# SPDX-License-Identifier: Apache-2.0
"""Random programs and faults on the RTL: nothing may differ from fsim, and every declared bin is filled."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest

from openvta.sim.fsim.scratchpads import Memory
from openvta.sim.verify.campaign import run_config
from openvta.sim.verify.configs import configuration
from openvta.sim.verify.dump import dump_programs
from openvta.sim.verify.faults import run_faults
from openvta.sim.verify.generator import Generator
from openvta.sim.verify.rig import Rig, RtlRun
from openvta.spec import AluOpcode, Opcode, Program
from openvta.spec.bins import bins
from openvta.spec.insn import decode

Record = Callable[[str, str], None]
Show = Callable[[str], None]
INSTRUCTIONS = {"tiny": 15_000, "random-11": 3_000, "random-6": 3_000}
LONG = {
    "tiny": 300_000, "default": 60_000, "batch": 60_000, "b1x32": 30_000,
    **{f"random-{seed}": 70_000 for seed in (0, 2, 3, 5, 6, 7, 9, 11)},
}  # fmt: skip
"""1,010,000 instructions on twelve configurations."""


def check(name: str, seeds: tuple[int, ...], instructions: int, record: Record, show: Show) -> None:
    result = run_config(name, seeds, instructions)
    assert not result.failures, "\n".join(map(str, result.failures))
    assert result.instructions >= instructions
    declared, missing = len(bins(configuration(name))), result.missing()
    show(
        f"{name} ({result.label}): seeds {seeds}, {result.instructions} instructions in {result.programs} programs, "
        f"0 mismatches, {declared - len(missing)} of {declared} bins, {result.seconds:.0f} s"
    )
    if name == "tiny":
        assert not missing, "bins that were not filled"
    record("rtl random", name)


@pytest.mark.parametrize("name", INSTRUCTIONS)
def test_random_programs(name: str, seed: int, record_coverage: Record, show_figures: Show) -> None:
    check(name, (seed,), INSTRUCTIONS[name], record_coverage, show_figures)


@pytest.mark.long
@pytest.mark.parametrize("name", LONG)
def test_a_million_random_instructions(name: str, seed: int, record_coverage: Record, show_figures: Show) -> None:
    check(name, (seed + 1, seed + 2), LONG[name], record_coverage, show_figures)


@pytest.mark.parametrize(("name", "trials"), [("tiny", 300), ("random-11", 60)])
def test_faults(name: str, trials: int, seed: int, record_coverage: Record, show_figures: Show) -> None:
    result = run_faults(name, (seed,), trials, sweep=40 if name == "tiny" else 0)
    assert not result.failures, "\n".join(result.failures)
    show_figures(f"{name}: {dict(result.trials)}, {dict(result.outcomes)}, {result.seconds:.0f} s")
    record_coverage("rtl faults", name)


@pytest.mark.long
@pytest.mark.parametrize("name", ["tiny", "default", "random-0", "random-5", "random-11"])
def test_thousands_of_faults(name: str, seed: int, record_coverage: Record, show_figures: Show) -> None:
    result = run_faults(name, (seed + 1,), 4000 if name == "tiny" else 1000, sweep=2000 if name == "tiny" else 200)
    assert not result.failures, "\n".join(result.failures)
    show_figures(f"{name}: {dict(result.trials)}, {dict(result.outcomes)}, {result.seconds:.0f} s")
    record_coverage("rtl faults", name)


def test_a_wrong_result_is_found_and_cut_down(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """With one operation's results changed on their way from the RTL, the report is a few instructions with that operation."""
    config = configuration("tiny")
    run_rtl = Rig.run_rtl

    def changed(self: Rig, words: bytes, *, cycles: int | None = None, watchdog: int | None = None) -> RtlRun:
        run = run_rtl(self, words, cycles=cycles, watchdog=watchdog)
        insns = [decode(config, word) for word in Program.from_bytes(config, words).words]
        wrong = {k for k, insn in enumerate(insns) if insn.opcode is Opcode.ALU and insn["alu_opcode"] == AluOpcode.MAX}
        events = tuple((at, who, k, value ^ (k in wrong)) for at, who, k, value in run.events)
        return dataclasses.replace(run, events=events)

    monkeypatch.setattr(Rig, "run_rtl", changed)
    result = run_config("tiny", (seed,), 4000, stalls=("none",))
    (failure,) = result.failures
    assert "wrote other values" in failure.text and "max" in failure.text
    lines = failure.assembly.strip().splitlines()
    assert len(lines) <= 8 and any("max" in line for line in lines) and lines[-1].startswith("finish")
    assert failure.command.startswith(f"openvta verify random --config tiny --seed {seed} ")


def test_a_write_in_the_wrong_place_is_found(seed: int) -> None:
    """Contents that differ before a program starts show in what it writes, or in memory; guards around it are watched."""
    config = configuration("tiny")
    program = Generator(config, seed).program(60)
    with Rig(config, seed=seed) as rig:
        assert rig.fill(program.areas) is None
        rig.write_areas(program.areas)
        assert rig.compare(program.program) is None
        rig.rtl.write(rig.base + 5, np.array([77], np.uint8))
        rig.write_areas(program.areas)
        found = rig.compare(program.program)
        assert found is not None and "1 bytes differ, first at offsets -0xffb" in found.text


@pytest.mark.parametrize("memory", [Memory.ACC, Memory.OUT])
def test_contents_that_nothing_used_are_compared(memory: Memory, seed: int) -> None:
    config = configuration("tiny")
    with Rig(config, seed=seed) as rig:
        assert rig.fill(Generator(config, seed).program(8).areas) is None
        held = rig.machine.scratchpad(memory)[-1:].astype(np.int64)
        rig.machine.set_scratchpad(memory, config.acc_depth - 1, held ^ 1)
        found = [rig.compare(program) for program in dump_programs(config)]
        assert found[0 if memory is Memory.OUT else 1] is not None
