# SPDX-License-Identifier: Apache-2.0
"""Bundles for whole-core tests: a first program that gives every scratchpad a value, then a random one."""

from __future__ import annotations

import numpy as np

from openvta.driver import Device
from openvta.driver.result import LaunchResult
from openvta.sim.verify.rig import fill_program
from openvta.spec.bundle import Bundle, Segment
from random_programs import AREA, NAMES, RandomProgram

FILL, RANDOM = 0, 1
"""Segments of :func:`bundle_of`."""


def bundle_of(found: RandomProgram) -> Bundle:
    """A bundle with the areas of a random program, one after the other, and two segments: fill, then the program."""
    config = found.program.config
    bases = {name: number * AREA for number, name in enumerate(NAMES)}
    image = [(bases[name], found.areas[name].tobytes()) for name in NAMES]
    end = len(NAMES) * AREA
    segments = []
    for program in (fill_program(config), found.program):
        segments.append(Segment(program, end))
        end += -(-len(program.to_bytes()) // 4096) * 4096
    return Bundle(
        name="random",
        config=config,
        memory_bytes=end,
        image=tuple(image),
        bases=bases,
        tensors=(),
        segments=tuple(segments),
        steps=(),
        layers=(),
        inputs={},
        outputs={},
    )


def run_filled(device: Device, found: RandomProgram, *, max_cycles: int = 2_000_000) -> tuple[np.ndarray, LaunchResult]:
    """Fill the scratchpads, run the program, and return (every area afterwards, one after the other; the launch)."""
    bundle = bundle_of(found)
    placed = device.load(bundle)
    device.launch(bundle, FILL, max_cycles=max_cycles)
    result = device.launch(bundle, RANDOM, max_cycles=max_cycles)
    return device.transport.read(placed.base, len(NAMES) * AREA), result
