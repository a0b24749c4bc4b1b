# SPDX-License-Identifier: Apache-2.0
"""Recorded sessions of programs, with the memory that fsim leaves: what a stand-alone build of the kernel plays."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from conformance.programs import build
from core_programs import bundle_of
from openvta.driver import open_device
from openvta.sim.hls.session import Session
from openvta.spec import HardwareConfig
from openvta.spec.bundle import Bundle
from random_programs import Generator

BASE, SIZE = 0x1000_0000, 1 << 20


def record(config: HardwareConfig, bundle: Bundle, path: Path) -> None:
    """One session: the bundle's segments one after the other, then the whole image compared."""
    session = Session(BASE, SIZE)
    with open_device("fsim", config=config) as fsim:
        placed = fsim.load(bundle)
        session.put(BASE, bytes(bundle.memory_bytes))
        for offset, data in bundle.image:
            session.put(BASE + offset, data)
        for number, segment in enumerate(bundle.segments):
            session.put(BASE + segment.insn_offset, segment.program.to_bytes())
            bases = {name: BASE + offset for name, offset in bundle.bases.items()}
            session.launch(BASE + segment.insn_offset, len(segment.program), bases)
            fsim.launch(bundle, number)
        session.expect(BASE, placed.read().tobytes())
    session.save(path)


def record_all(
    config: HardwareConfig, names: Sequence[str], programs: int, rng: np.random.Generator, folder: Path
) -> list[str]:
    """Sessions of conformance programs and of random programs; the files."""
    files = []
    for name in names:
        bundle = build(config, name).bundle
        if bundle.memory_bytes <= SIZE:
            record(config, bundle, folder / f"{name}.case")
            files.append(str(folder / f"{name}.case"))
    for number in range(programs):
        record(config, bundle_of(Generator(config, rng).program(60)), folder / f"random{number}.case")
        files.append(str(folder / f"random{number}.case"))
    return files
