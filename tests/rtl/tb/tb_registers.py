# SPDX-License-Identifier: Apache-2.0
"""Tests of the register file, inside the simulator."""

from __future__ import annotations

import os
import random
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge

from openvta.sim.cosim.bfm.stream import value
from openvta.spec.registers import OFFSETS, REGISTER_SPACE_BYTES, REGISTERS

OKAY, SLVERR = 0, 2
PATIENCE = 50
SETTINGS = {r.name: r.offset for r in REGISTERS if r.access == "rw" and r.name not in ("CONTROL", "RESET")}
HELD_WHILE_RUNNING = {name for name in SETTINGS if name.endswith(("BASE_LO", "BASE_HI", "COUNT"))}


class Bench:
    """The register file, its inputs at zero, and a master that takes its time."""

    def __init__(self, dut: Any, seed: int) -> None:
        self.dut = dut
        self.random = random.Random(seed)
        self.launches = self.resets = 0
        self.model = {r.name: r.reset for r in REGISTERS if r.name in SETTINGS}

    async def reset(self) -> None:
        """Start the clock and reset."""
        for handle in self.dut:
            if handle._name.startswith("io_status") or handle._name in (
                "io_resetting",
                "io_readsPending",
                "io_writesPending",
            ):
                handle.value = 0
        for channel in ("aw_valid", "w_valid", "b_ready", "ar_valid", "r_ready"):
            self._pin(channel).value = 0
        self.dut.reset.value = 1
        cocotb.start_soon(Clock(self.dut.clock, 2, "ns").start())
        for _ in range(3):
            await RisingEdge(self.dut.clock)
        self.dut.reset.value = 0
        await self.step()

    def _pin(self, name: str) -> Any:
        return getattr(self.dut, f"io_axil_{name}")

    async def step(self) -> None:
        """One clock cycle."""
        await RisingEdge(self.dut.clock)
        self.launches += value(self.dut.io_control_launch)
        self.resets += value(self.dut.io_softReset)

    async def write(self, address: int, data: int, strobe: int = 0xF) -> int:
        """Write with random delays and order of address and data; returns the response."""
        delay = {channel: self.random.choice((0, 0, 1, 4)) for channel in ("aw", "w", "b")}
        self._pin("aw_bits").value = address
        self._pin("w_bits_data").value = data
        self._pin("w_bits_strb").value = strobe
        sent = {"aw": False, "w": False}
        driving = {"aw": False, "w": False}
        waited = None
        accepting = False
        for cycle in range(PATIENCE):
            for channel in ("aw", "w"):
                driving[channel] = not sent[channel] and cycle >= delay[channel]
                self._pin(f"{channel}_valid").value = int(driving[channel])
            accepting = cycle >= delay["b"] and waited is not None and self.random.random() < 0.7
            self._pin("b_ready").value = int(accepting)
            await self.step()
            for channel in ("aw", "w"):
                sent[channel] |= driving[channel] and bool(value(self._pin(f"{channel}_ready")))
            if value(self._pin("b_valid")):
                response = value(self._pin("b_bits"))
                assert sent["aw"] and sent["w"], "a response before address and data"
                assert waited in (None, response), "the response changed while it waited"
                waited = response
                if accepting:
                    self._pin("b_ready").value = 0
                    return response
            else:
                assert waited is None, "the response was taken back"
        raise AssertionError(f"write of {address:#x}: no response")

    async def read(self, address: int) -> tuple[int, int]:
        """Read with random delays; returns value and response."""
        self._pin("ar_bits").value = address
        delay = self.random.choice((0, 1, 3))
        sent = False
        waited: tuple[int, int] | None = None
        for cycle in range(PATIENCE):
            driving = not sent and cycle >= delay
            self._pin("ar_valid").value = int(driving)
            accepting = self.random.random() < 0.6
            self._pin("r_ready").value = int(accepting)
            await self.step()
            valid = bool(value(self._pin("r_valid")))
            assert not valid or sent, "an answer before the address"
            sent |= driving and bool(value(self._pin("ar_ready")))
            if valid:
                answer = value(self._pin("r_bits_data")), value(self._pin("r_bits_resp"))
                assert waited in (None, answer), "the answer changed while it waited"
                waited = answer
                if accepting:
                    self._pin("r_ready").value = 0
                    return answer
        raise AssertionError(f"read of {address:#x}: no answer")

    def set(self, name: str, data: int, strobe: int = 0xF) -> None:
        """What a write does to the model."""
        mask = sum(0xFF << 8 * lane for lane in range(4) if strobe >> lane & 1)
        merged = self.model[name] & ~mask | data & mask
        self.model[name] = merged & 3 if name == "IRQ_ENABLE" else merged


async def bench_of(dut: Any) -> Bench:
    """A bench after reset."""
    bench = Bench(dut, int(os.environ["COCOTB_RANDOM_SEED"]))
    await bench.reset()
    return bench


@cocotb.test()
async def settings(dut: Any) -> None:
    """Random writes with strobes, and reads; during a run bases and count stay."""
    bench = await bench_of(dut)
    rng = bench.random
    for number in range(400):
        running = number >= 300
        dut.io_status_running.value = int(running)
        name = rng.choice(list(SETTINGS))
        data, strobe = rng.getrandbits(32), rng.choice((0xF, rng.randrange(16)))
        # The low two address bits do not count.
        assert await bench.write(SETTINGS[name] + rng.choice((0, 0, 1, 3)), data, strobe) == OKAY
        if not (running and name in HELD_WHILE_RUNNING):
            bench.set(name, data, strobe)
        other = rng.choice(list(SETTINGS))
        assert await bench.read(SETTINGS[other]) == (bench.model[other], OKAY), other
    assert bench.launches == bench.resets == 0
    for memory in ("insn", "uop", "inp", "wgt", "acc", "out"):
        low, high = bench.model[f"{memory.upper()}_BASE_LO"], bench.model[f"{memory.upper()}_BASE_HI"]
        assert value(getattr(dut, f"io_control_{memory}Base")) == high << 32 | low
    assert value(dut.io_control_insnCount) == bench.model["INSN_COUNT"]
    assert value(dut.io_control_watchdog) == bench.model["WATCHDOG"]


@cocotb.test()
async def unmapped(dut: Any) -> None:
    """Offsets without a register answer SLVERR and change nothing."""
    bench = await bench_of(dut)
    mapped = set(OFFSETS.values())
    for offset in range(0, REGISTER_SPACE_BYTES, 4):
        want = OKAY if offset in mapped else SLVERR
        answer, response = await bench.read(offset)
        assert response == want and (want == OKAY or answer == 0), f"{offset:#x}: {answer:#x}, {response}"
        if want == SLVERR and offset % 64 == 0:
            assert await bench.write(offset, 0xFFFFFFFF) == SLVERR
    assert bench.launches == bench.resets == 0
    for name, offset in SETTINGS.items():
        assert await bench.read(offset) == (bench.model[name], OKAY)


@cocotb.test()
async def commands(dut: Any) -> None:
    """Launch and soft reset are one pulse each, made by writing 1 in the right bit and byte."""
    bench = await bench_of(dut)
    await bench.write(OFFSETS["CONTROL"], 1)
    assert bench.launches == 1
    await bench.write(OFFSETS["CONTROL"], 2)
    await bench.write(OFFSETS["CONTROL"], 1, 0xE)
    assert bench.launches == 1
    await bench.write(OFFSETS["RESET"], 0xFFFFFFFE)
    assert bench.resets == 0
    await bench.write(OFFSETS["RESET"], 1)
    assert bench.resets == 1 and bench.launches == 1
    dut.io_resetting.value = 1
    await bench.write(OFFSETS["CONTROL"], 1)
    assert bench.launches == 1, "a launch during a soft reset"
    assert await bench.read(OFFSETS["RESET"]) == (1, OKAY)


@cocotb.test()
async def interrupts(dut: Any) -> None:
    """Events set their bit once, writing 1 clears it, enabled bits are the level of the line."""
    bench = await bench_of(dut)
    for enable in range(4):
        await bench.write(OFFSETS["IRQ_ENABLE"], enable)
        for bit, pin in enumerate((dut.io_status_finished, dut.io_status_error_valid)):
            assert value(dut.io_interrupt) == 0
            pin.value = 1
            await bench.step()
            await bench.step()
            await bench.step()
            assert await bench.read(OFFSETS["IRQ_STATUS"]) == (1 << bit, OKAY)
            assert value(dut.io_interrupt) == (enable >> bit & 1)
            await bench.write(OFFSETS["IRQ_STATUS"], 3 & ~(1 << bit))
            assert await bench.read(OFFSETS["IRQ_STATUS"]) == (1 << bit, OKAY)
            await bench.write(OFFSETS["IRQ_STATUS"], 1 << bit)
            await bench.step()
            assert await bench.read(OFFSETS["IRQ_STATUS"]) == (0, OKAY), "an event that lasts set its bit again"
            assert value(dut.io_interrupt) == 0
            pin.value = 0
            await bench.step()
            await bench.step()
