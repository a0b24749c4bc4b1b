# SPDX-License-Identifier: Apache-2.0
"""The functional machine against a lane-by-lane machine on random programs, over configurations of every kind."""

from __future__ import annotations

import numpy as np
import pytest

from naive_machine import NaiveMachine
from openvta.sim.fsim import Machine, Memory
from openvta.sim.fsim.check import Kind, check_stream
from openvta.sim.memory import DeviceMemory
from openvta.spec import HardwareConfig, config_from_mapping, load_config
from random_programs import AREA, NAMES, Generator, RandomProgram

SMALL = {
    "uop_buffer_bytes": 512,
    "inp_buffer_bytes": 256,
    "wgt_buffer_bytes": 1024,
    "acc_buffer_bytes": 2048,
    "queue_depth": 8,
}


def small(name: str, **changes: object) -> HardwareConfig:
    return config_from_mapping({**SMALL, **changes}, name=name)


CONFIGS = {
    config.name: config
    for config in (
        load_config("tiny"),
        small("b2", batch=2, block=4),
        small("i4w2", batch=1, block=4, inp_bits=4, wgt_bits=2),
        small("i1w1", batch=4, block=8, inp_bits=1, wgt_bits=1),
        small("i2w8", batch=2, block=8, inp_bits=2, wgt_bits=8),
        small("base", block=4, extensions=[]),
    )
}


def place(found: RandomProgram, images: int = 1) -> tuple[DeviceMemory, dict[str, int]]:
    """Device memory with the areas of a program, and their addresses."""
    memory = DeviceMemory(images)
    memory.allocate(4096)
    bases = {}
    for name in NAMES:
        bases[name] = memory.allocate(AREA)
        memory.write(bases[name], found.areas[name])
    return memory, bases


def assert_same_state(machine: Machine, naive: NaiveMachine, image: int = 0) -> None:
    for memory in (Memory.UOP, Memory.INP, Memory.WGT, Memory.ACC, Memory.OUT):
        expected = getattr(naive, memory.name.lower())
        np.testing.assert_array_equal(machine.scratchpad(memory, image), expected, memory.name)


@pytest.mark.parametrize("name", CONFIGS)
def test_random_programs_leave_what_the_lane_by_lane_machine_leaves(name: str, rng: np.random.Generator) -> None:
    config = CONFIGS[name]
    for _ in range(12):
        found = Generator(config, rng).program(40)
        memory, bases = place(found)
        machine = Machine(config, memory)
        outcome = machine.run_stream(found.program.to_bytes(), bases)
        assert outcome.fault is None, outcome.fault
        assert outcome.retired == len(found.program)
        reference, same = place(found)
        naive = NaiveMachine(config, reference, same)
        naive.run(list(found.program))
        assert_same_state(machine, naive)
        np.testing.assert_array_equal(memory.read(bases["out"], AREA), reference.read(same["out"], AREA))


@pytest.mark.parametrize("name", CONFIGS)
def test_interleaving_does_not_matter(name: str, rng: np.random.Generator) -> None:
    config = CONFIGS[name]
    found = Generator(config, rng).program(40)
    results = []
    for seed in (None, 1, 2):
        memory, bases = place(found)
        machine = Machine(config, memory)
        assert machine.run_stream(found.program.to_bytes(), bases, seed=seed).fault is None
        results.append((memory.read(bases["out"], AREA), machine.scratchpad(Memory.ACC)))
    for out, acc in results[1:]:
        np.testing.assert_array_equal(out, results[0][0])
        np.testing.assert_array_equal(acc, results[0][1])


@pytest.mark.parametrize("name", CONFIGS)
def test_serial_programs_have_no_races(name: str, rng: np.random.Generator) -> None:
    config = CONFIGS[name]
    for seed in range(4):
        found = Generator(config, rng).program(40)
        memory, bases = place(found)
        report = check_stream(Machine(config, memory), found.program.to_bytes(), bases, seed=seed)
        assert report.outcome.fault is None
        assert {finding.kind for finding in report.findings} <= {Kind.NEVER_WRITTEN}


@pytest.mark.parametrize("name", CONFIGS)
def test_lockstep_images_equal_single_runs(name: str, rng: np.random.Generator) -> None:
    config = CONFIGS[name]
    found = Generator(config, rng).program(40)
    images = 3
    memory, bases = place(found, images)
    inputs = {area: rng.integers(0, 256, (images, AREA), dtype=np.uint8) for area in ("inp", "acc")}
    for area, values in inputs.items():
        memory.write_images(bases[area], values)
    machine = Machine(config, memory)
    assert machine.run_stream(found.program.to_bytes(), bases).fault is None
    together = memory.read_images(bases["out"], AREA)
    for image in range(images):
        single, same = place(found)
        for area, values in inputs.items():
            single.write(same[area], values[image])
        alone = Machine(config, single)
        assert alone.run_stream(found.program.to_bytes(), same).fault is None
        np.testing.assert_array_equal(single.read(same["out"], AREA), together[image])
        np.testing.assert_array_equal(alone.scratchpad(Memory.ACC), machine.scratchpad(Memory.ACC, image))
