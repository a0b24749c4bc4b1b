# SPDX-License-Identifier: Apache-2.0
"""Tests of one TensorLoader (uop or acc), inside the simulator."""

from __future__ import annotations

import os
import random
from collections import deque
from typing import Any

import cocotb
import load_cases
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge
from load_model import Load, apply, load, memory_of
from read_port import IDEAL, JITTER, SLOW, PortTiming, ReadPortMemory, ScratchpadModel
from unit_ports import Unit

from openvta.sim.cosim.bfm.stream import value
from openvta.spec.config import HardwareConfig, load_config
from openvta.spec.isa import Cause, MemId

SIMPLE_FIELDS = {
    "sramBase": "sram_base",
    "dramBase": "dram_base",
    "ySize": "y_size",
    "xSize": "x_size",
    "xStride": "x_stride",
    "yPad0": "y_pad_0",
    "yPad1": "y_pad_1",
    "xPad0": "x_pad_0",
    "xPad1": "x_pad_1",
    "padMin": "pad_min",
}
NARROW = (MemId.ACC_INT8, MemId.ACC_UINT8)


class Bench:
    """A TensorLoader with its memory and scratchpad; checks the scratchpad whenever an instruction is done."""

    def __init__(self, dut: Any, config: HardwareConfig, memories: tuple[MemId, ...], seed: int) -> None:
        self.dut, self.config, self.memories = dut, config, memories
        self.random = random.Random(seed)
        self.memory = memory_of(config, memories[0])
        self.port = ReadPortMemory(dut, "io_read", config, seed)
        self.pad = ScratchpadModel(dut, "io_write", self.memory.elem_bits, self.memory.depth, config)
        self.expected: dict[int, int] = {}
        self.waiting: deque[Load] = deque()
        self.running: deque[Load] = deque()
        self.errors: list[dict[str, int]] = []
        self.done: list[int] = []
        self.cycle = 0
        self.bytes = 0
        self.request_gap = 0.0
        self._offered = False
        self._fields = {
            name: getattr(dut, f"io_request_bits_{name}", None)
            for name in (*SIMPLE_FIELDS, "padValue", "narrow", "unsigned")
        }

    async def reset(self) -> None:
        """Start the clock and reset."""
        self.dut.io_request_valid.value = 0
        self.dut.io_halt.value = 0
        self.pad.ready.value = 1
        self.dut.reset.value = 1
        Clock(self.dut.clock, 2, "ns").start()
        for _ in range(3):
            await RisingEdge(self.dut.clock)
        self.dut.reset.value = 0

    def _offer(self) -> None:
        if not self._offered and self.waiting and self.random.random() >= self.request_gap:
            op = self.waiting[0]
            values = {name: op.insn[key] for name, key in SIMPLE_FIELDS.items()}
            values["padValue"] = op.insn.pad_value
            values["narrow"] = int(op.memory.memory_id in NARROW)
            values["unsigned"] = int(op.memory.memory_id is MemId.ACC_UINT8)
            for name, handle in self._fields.items():
                if handle is not None:
                    handle.value = values[name]
            self.dut.io_request_bits_base.value = op.base
            self.dut.io_request_bits_index.value = op.index
            self._offered = True
        self.dut.io_request_valid.value = int(self._offered)

    async def step(self) -> None:
        """One clock cycle."""
        await RisingEdge(self.dut.clock)
        self.cycle += 1
        if self._offered and value(self.dut.io_request_ready):
            self.running.append(self.waiting.popleft())
            self._offered = False
        self.port.sample(self.cycle)
        self.pad.sample()
        self.bytes += value(self.dut.io_bytes)
        if value(self.dut.io_done_valid):
            self._check_done()
        if value(self.dut.io_error_valid):
            names = ("cause", "index", "channel", "address")
            self.errors.append({name: value(getattr(self.dut, f"io_error_bits_{name}")) for name in names})
        self._offer()
        self.pad.ready.value = int(self.random.random() >= self.port.timing.stall)
        self.port.drive(self.cycle)

    def _check_done(self) -> None:
        op = self.running.popleft()
        assert value(self.dut.io_done_index) == op.index
        self.done.append(op.index)
        apply(op, self.expected)
        assert self.bytes == op.bytes_read, f"{op}: counted {self.bytes} bytes, read {op.bytes_read}"
        self.bytes = 0
        if self.pad.cells != self.expected:
            wrong = [
                k for k in sorted({*self.pad.cells, *self.expected}) if self.pad.cells.get(k) != self.expected.get(k)
            ]
            k = wrong[0]
            got, want = self.pad.cells.get(k, -1), self.expected.get(k, -1)
            raise AssertionError(f"{op}: {len(wrong)} elements wrong, first {k}: {got:#x}, expected {want:#x}")

    async def run(self, ops: list[Load], timing: PortTiming, *, bound: int = 400_000) -> None:
        """Execute instructions and check everything they leave."""
        self.port.timing = timing
        self.waiting.extend(ops)
        start = self.cycle
        while self.waiting or self.running:
            await self.step()
            assert self.cycle - start < bound, f"no end after {bound} cycles, waiting for {list(self.running)[:1]}"
            assert not self.errors, self.errors
        for _ in range(5):
            await self.step()
        assert self.port.outstanding == 0, "beats are left over"
        assert not value(self.dut.io_busy)

    async def run_to_error(self, ops: list[Load], timing: PortTiming, *, bound: int = 100_000) -> dict[str, int]:
        """Execute instructions until the first fault, then until every beat is drained; returns the fault."""
        self.port.timing = timing
        self.waiting.extend(ops)
        start = self.cycle
        while not self.errors:
            await self.step()
            assert self.cycle - start < bound, "no fault was raised"
        asked, done = len(self.port.bursts), len(self.done)
        for _ in range(60):
            await self.step()
        while self.port.outstanding:
            await self.step()
            assert self.cycle - start < bound, "beats are not drained"
        for _ in range(20):
            await self.step()
        assert len(self.port.bursts) <= asked + 1, "bursts were asked for after the fault"
        assert len(self.errors) == 1, self.errors
        assert len(self.done) == done, "an instruction was completed after the fault"
        return self.errors[0]


async def bench(dut: Any) -> Bench:
    """The bench for the design under test."""
    config = load_config(os.environ["OPENVTA_CONFIG"])
    memories = tuple(MemId[name] for name in os.environ["OPENVTA_MEMORIES"].split(","))
    made = Bench(Unit(dut, os.environ["OPENVTA_UNIT"]), config, memories, cocotb.RANDOM_SEED)
    await made.reset()
    return made


@cocotb.test()
async def long_rows_with_every_pad(dut: Any) -> None:
    """Rows longer than a burst, 16 combinations of pads: nothing outside the range is touched."""
    b = await bench(dut)
    for memory in b.memories:
        await b.run(load_cases.padded_long_rows(b.config, memory), IDEAL)


@cocotb.test()
async def every_offset_and_count(dut: Any) -> None:
    """Odd and even starts and lengths: exact elements, neighbours keep their value."""
    b = await bench(dut)
    for memory in b.memories:
        await b.run(load_cases.offsets_and_counts(b.config, memory), IDEAL)


@cocotb.test()
async def windows_and_pages(dut: Any) -> None:
    """Bursts are cut at their window and at 4 KiB."""
    b = await bench(dut)
    for memory in b.memories:
        await b.run(load_cases.window_edges(b.config, memory), JITTER)


@cocotb.test()
async def random_loads(dut: Any) -> None:
    """Random instructions under random latency and back-pressure."""
    b = await bench(dut)
    number = 0
    for timing, count in ((IDEAL, 60), (JITTER, 60), (SLOW, 20)):
        for gap in (0.0, 0.7):
            b.request_gap = gap
            ops = [
                load_cases.random_load(b.config, b.random.choice(b.memories), b.random, number + n)
                for n in range(count)
            ]
            number += count
            await b.run(ops, timing)


@cocotb.test()
async def nothing_to_load(dut: Any) -> None:
    """Zero sizes do nothing, whatever the pads, and are done in order."""
    b = await bench(dut)
    ops = []
    for n, (x, y) in enumerate(((0, 3), (3, 0), (0, 0), (2, 1), (0, 1), (1, 1))):
        ops.append(load(b.config, b.memories[0], index=n, x_size=x, y_size=y, x_stride=x, y_pad_0=1, x_pad_1=1))
    await b.run(ops, JITTER)
    assert b.done == list(range(len(ops)))


@cocotb.test()
async def index_range(dut: Any) -> None:
    """An element at the depth is a fault of its instruction; those before are complete; nothing is written beyond."""
    await range_case(dut, sram_from_end=3, x_size=4)


@cocotb.test()
async def index_range_by_pads(dut: Any) -> None:
    """Pads alone can leave the scratchpad."""
    await range_case(dut, sram_from_end=3, x_size=3, x_pad_1=1)


@cocotb.test()
async def index_range_from_start(dut: Any) -> None:
    """A start beyond the depth, with a long transfer behind."""
    await range_case(dut, sram_from_end=0, x_size=5000, y_size=3, x_stride=5000)


async def range_case(dut: Any, *, sram_from_end: int, **fields: int) -> None:
    """One legal load, one out of range, one that must not start."""
    b = await bench(dut)
    memory = b.memories[-1]
    at_end = load(b.config, memory, index=7, sram_base=b.memory.depth - 3, x_size=3, y_size=1, x_stride=3)
    bad = load(
        b.config, memory, index=8, **{"y_size": 1, "x_stride": 4, "sram_base": b.memory.depth - sram_from_end, **fields}
    )
    after = load(b.config, memory, index=9, x_size=1, y_size=1, x_stride=1)
    if bad.insn["sram_base"] >= 1 << 13:
        bad = load(b.config, memory, index=8, x_size=9000, y_size=1, x_stride=9000)
    fault = await b.run_to_error([at_end, bad, after], JITTER)
    assert fault == {"cause": Cause.INDEX_RANGE, "index": 8, "channel": 0, "address": 0}
    assert b.done == [7]


@cocotb.test()
async def bus_fault(dut: Any) -> None:
    """A faulty beat is reported with channel and address; everything asked for is drained; nothing hangs."""
    b = await bench(dut)
    memory = memory_of(b.config, b.memories[-1])
    beat = b.config.axi_data_bytes
    count = min(memory.depth, max(4, 3 * b.config.axi_burst_beats * beat // memory.elem_bytes))
    op = load(b.config, b.memories[-1], index=3, base=1 << 40, dram_base=1, x_size=count, y_size=1, x_stride=count)
    middle = (op.row_address(0) + count * memory.elem_bytes // 2) // beat * beat
    b.port.faults = {middle}
    good = load(b.config, b.memories[-1], index=2, x_size=1, y_size=1, x_stride=1)
    fault = await b.run_to_error([good, op, good], SLOW)
    assert fault == {
        "cause": Cause.BUS_READ,
        "index": 3,
        "channel": int(os.environ["OPENVTA_CHANNEL"]),
        "address": middle,
    }
    assert b.done == [2]


@cocotb.test()
async def halt_drains(dut: Any) -> None:
    """With halt nothing is asked for, taken or completed, and beats in flight are drained."""
    b = await bench(dut)
    b.port.timing = JITTER
    count = min(b.memory.depth, 40)
    b.waiting.extend(load(b.config, b.memories[0], index=n, x_size=count, y_size=1, x_stride=count) for n in range(6))
    while len(b.port.bursts) < 3 or not b.done:
        await b.step()
    b.dut.io_halt.value = 1
    await b.step()
    await b.step()
    asked = len(b.port.bursts)
    done = len(b.done)
    for _ in range(100 + 3 * b.port.outstanding):
        await b.step()
    assert len(b.port.bursts) == asked
    assert len(b.done) == done
    assert b.port.outstanding == 0
    assert not b.errors


@cocotb.test()
async def bus_rate(dut: Any) -> None:
    """Back-to-back loads without pads take one beat a cycle from a memory that gives one."""
    b = await bench(dut)
    memory = memory_of(b.config, b.memories[0])
    beat = b.config.axi_data_bytes
    window = b.config.axi_burst_beats * beat
    count = min(memory.depth, max(1, 2 * beat // memory.elem_bytes, window // memory.elem_bytes))
    ops = [load(b.config, b.memories[0], index=n, x_size=count, y_size=1, x_stride=count) for n in range(20)]
    await b.run(ops, IDEAL)
    span = b.port.last_beat - b.port.first_beat + 1
    assert b.port.beats == 20 * count * memory.elem_bytes // beat
    assert span == b.port.beats, f"{b.port.beats} beats took {span} cycles"
