# SPDX-License-Identifier: Apache-2.0
"""Random programs: the RTL leaves the memory that fsim leaves, with ideal and with slow memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest

from core_programs import run_filled
from openvta.driver import Device, open_device
from openvta.spec import load_config
from random_programs import Generator

CONFIGS = ("tiny", "batch", "default")
PROGRAMS = 12
LENGTH = 60

Record = Callable[[str, str], None]


@pytest.fixture(scope="module", params=CONFIGS)
def rtl(request: pytest.FixtureRequest) -> Iterator[tuple[str, Device]]:
    with open_device("cosim", config=load_config(request.param)) as device:
        yield request.param, device


@pytest.mark.parametrize("memory", ["ideal", "dram"])
def test_random_programs_leave_the_memory_fsim_leaves(
    rtl: tuple[str, Device], memory: str, rng: np.random.Generator, record_coverage: Record
) -> None:
    from openvta.sim.cosim.transport import MEMORY_MODELS

    name, device = rtl
    config = load_config(name)
    device.transport.set_memory(MEMORY_MODELS[memory])  # type: ignore[attr-defined]
    with open_device("fsim", config=config) as fsim:
        for number in range(PROGRAMS):
            found = Generator(config, rng).program(LENGTH)
            expected, _ = run_filled(fsim, found)
            memory_after, result = run_filled(device, found)
            different = np.flatnonzero(expected != memory_after)
            assert different.size == 0, f"program {number}: {different.size} bytes differ, first at {different[0]:#x}"
            assert result.counters["insns_retired"] == len(found.program)
    record_coverage("rtl", name)
