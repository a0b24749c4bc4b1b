# SPDX-License-Identifier: Apache-2.0
"""Generated programs are legal, free of races and deadlocks, and the same for the same seed."""

from __future__ import annotations

import pytest

from openvta.sim.fsim.check import check_run
from openvta.sim.fsim.machine import Machine
from openvta.sim.memory import DeviceMemory
from openvta.sim.verify.configs import configuration, random_config
from openvta.sim.verify.generator import AREA, NAMES, Generator, plan
from openvta.sim.verify.rig import fill_program
from openvta.spec import Unit
from openvta.spec.bins import bins
from openvta.spec.insn import static_fault

CONFIGS = ("tiny", "default", *(f"random-{seed}" for seed in range(12)))
BASE = 0x4000_0000


@pytest.mark.parametrize("name", CONFIGS)
def test_programs_are_free_of_races_deadlocks_and_leftover_tokens(name: str, seed: int) -> None:
    config = configuration(name)
    memory = DeviceMemory()
    memory.map(BASE, len(NAMES) * AREA + (1 << 16))
    machine = Machine(config, memory)
    areas = {area: BASE + number * AREA for number, area in enumerate(NAMES)}
    generator = Generator(config, seed)
    for number in range(2):
        found = generator.program(100)
        assert sum(map(len, found.groups)) > 50, "the token planner gave up early"
        for area, data in found.areas.items():
            memory.write(areas[area], data)
        words = found.program.words
        assert not any(static_fault(config, word, last=at == len(words) - 1) for at, word in enumerate(words))
        for program in (fill_program(config), found.program) if number == 0 else (found.program,):
            data = program.to_bytes()
            stream = BASE + len(NAMES) * AREA
            memory.write(stream, data)
            report = check_run(machine, stream, len(program.words), areas)
            assert report.outcome.fault is None, report.outcome.fault
            assert not report.findings, report.findings[0].message


def test_units_overlap() -> None:
    """Some instructions of every unit need no token: the programs are not just one instruction after the other."""
    found = Generator(random_config(0), 1).program(200)
    steps = [draft for group in found.groups for draft in group]
    flags = [word for word in found.program.words if word >> 3 & 15]
    assert len(flags) < 0.75 * len(steps)
    assert {step.unit for step in steps} == {Unit.LOAD, Unit.COMPUTE, Unit.STORE}


def test_the_same_seed_gives_the_same_program_and_another_seed_another() -> None:
    config = configuration("tiny")
    first, again, other = (Generator(config, seed).program(60) for seed in (5, 5, 6))
    assert first.program == again.program and first.program != other.program
    assert all((first.areas[name] == again.areas[name]).all() for name in NAMES)
    assert plan(config, first.groups, first.seed) == (first.program, len(first.groups))


def test_bins_are_declared_once_and_programs_fill_no_other() -> None:
    config = configuration("tiny")
    declared = bins(config)
    assert len(declared) == len(set(declared)) >= 400
    names = {name.partition("@")[0] for name in declared}
    generator = Generator(config, 3)
    assert {name for _ in range(20) for name in generator.program(150).bins} <= names
