# SPDX-License-Identifier: Apache-2.0
"""Inside the simulator: runs the cases of test_core_axi.py through AXI4-Lite and an AXI4 memory that stalls at random."""

from __future__ import annotations

import os
from typing import Any

import cocotb
import numpy as np
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles

from openvta.sim.cosim.bfm.axi_lite import AxiLiteMaster
from openvta.sim.cosim.bfm.axi_memory import AxiMemory, Timing
from openvta.spec import load_config
from openvta.spec.registers import CONTROL, OFFSETS, STATUS
from random_programs import NAMES

BASE = 0x4000_0000
POLLS = 4000
KINDS = (
    Timing(stall=0.0, gap=0.0, latency=0),
    Timing(stall=0.3, gap=0.3, latency=20),
    Timing(stall=0.7, gap=0.6, latency=200),
)


async def launch(host: AxiLiteMaster, bases: dict[str, int], start: int, count: int) -> None:
    """Run one program to its end."""
    for name, offset in {**bases, "insn": start}.items():
        await host.write(OFFSETS[f"{name.upper()}_BASE_LO"], (BASE + offset) & 0xFFFFFFFF)
        await host.write(OFFSETS[f"{name.upper()}_BASE_HI"], (BASE + offset) >> 32)
    await host.write(OFFSETS["INSN_COUNT"], count)
    await host.write(OFFSETS["CONTROL"], CONTROL.field("launch").mask)
    for _ in range(POLLS):
        if not await host.read(OFFSETS["STATUS"]) & STATUS.field("running").mask:
            break
        await ClockCycles(host.clock, 16)
    assert await host.read(OFFSETS["ERROR"]) == 0
    assert await host.read(OFFSETS["CONTROL"]) & CONTROL.field("finish").mask
    status = STATUS.decode(await host.read(OFFSETS["STATUS"]))
    assert not any(status.values()), f"finished, but {status}"


@cocotb.test()
async def random_bus(dut: Any) -> None:
    """Every program leaves the expected memory, whatever the bus does."""
    config = load_config(os.environ["OPENVTA_CONFIG"])
    seed = int(os.environ.get("COCOTB_RANDOM_SEED", "1"))
    with np.load(os.environ["OPENVTA_CASES"], allow_pickle=False) as archive:
        cases = {name: archive[name] for name in archive.files}
    bases = {name: int(offset) for name, offset in zip(NAMES, cases["bases"], strict=True)}
    size = max(cases[f"image{number}"].size for number in range(int(cases["count"])))
    data = bytearray(size)
    timing = Timing(seed=seed)
    memory = AxiMemory(
        dut, dut.clock, data, BASE, config.axi_data_bytes, config.axi_burst_beats * config.axi_data_bytes, timing
    )
    dut.aresetn.value = 0
    host = AxiLiteMaster(dut, dut.clock, gap=0.2, seed=seed)
    cocotb.start_soon(Clock(dut.clock, 2, "ns").start())
    await ClockCycles(dut.clock, 8)
    dut.aresetn.value = 1
    await ClockCycles(dut.clock, 8)
    memory.start()
    for number in range(int(cases["count"])):
        kind = KINDS[number % len(KINDS)]
        memory.set_timing(kind)
        image = cases[f"image{number}"]
        data[: image.size] = image.tobytes()
        for start, count in cases[f"launches{number}"].tolist():
            await launch(host, bases, start, count)
        expected = cases[f"expected{number}"].tobytes()
        if bytes(data[: len(expected)]) != expected:
            first = next(at for at, byte in enumerate(expected) if data[at] != byte)
            raise AssertionError(f"program {number}: memory differs first at {first:#x}, timing {kind}")
    assert {burst[0] for burst in memory.read_bursts} == {0, 1, 2, 3, 4}, "every read client was used"
    assert memory.write_bursts
