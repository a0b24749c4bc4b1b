# SPDX-License-Identifier: Apache-2.0
"""The whole core pin by pin: random programs with random latency and back-pressure on every AXI channel."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from rtl_units import run_unit

from core_programs import FILL, RANDOM, bundle_of, run_filled
from openvta.driver import open_device
from openvta.spec import load_config
from random_programs import AREA, NAMES, Generator

CONFIGS = ("tiny",)
"""Small buffers: every cycle of the bus is played by Python."""
PROGRAMS = 6
LENGTH = 40


@pytest.mark.parametrize("config_name", CONFIGS)
def test_random_programs_on_a_random_bus(
    config_name: str, seed: int, rng: np.random.Generator, tmp_path: Path, record_coverage: Callable[[str, str], None]
) -> None:
    config = load_config(config_name)
    cases: dict[str, np.ndarray] = {}
    with open_device("fsim", config=config) as fsim:
        for number in range(PROGRAMS):
            found = Generator(config, rng).program(LENGTH)
            bundle = bundle_of(found)
            image = np.zeros(bundle.memory_bytes, np.uint8)
            for offset, data in bundle.image:
                image[offset : offset + len(data)] = np.frombuffer(data, np.uint8)
            launches = []
            for segment in (bundle.segments[FILL], bundle.segments[RANDOM]):
                code = np.frombuffer(segment.program.to_bytes(), np.uint8)
                image[segment.insn_offset : segment.insn_offset + len(code)] = code
                launches.append((segment.insn_offset, len(segment.program)))
            cases[f"image{number}"] = image
            cases[f"launches{number}"] = np.array(launches)
            cases[f"expected{number}"], _ = run_filled(fsim, found)
    bases = np.array([number * AREA for number, _ in enumerate(NAMES)])
    file = tmp_path / "cases.npz"
    np.savez(file, count=PROGRAMS, bases=bases, **cases)
    run_unit(config_name, "VtaTop", "tb_core_axi", seed=seed, env={"OPENVTA_CASES": str(file)}, seconds=1200)
    record_coverage("rtl, random bus", config_name)
