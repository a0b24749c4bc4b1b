# SPDX-License-Identifier: Apache-2.0
"""Tests of the LoadUnit inside the simulator: both loaders, tokens, order of pushes and retirement, faults."""

from __future__ import annotations

import os
import random
from collections import deque
from itertools import zip_longest
from typing import Any

import cocotb
import load_cases
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge
from load_model import Load, apply, load, memory_of
from read_port import IDEAL, JITTER, SLOW, PortTiming, ReadPortMemory, ScratchpadModel
from unit_ports import Unit

from openvta.sim.cosim.bfm.stream import value
from openvta.spec.config import load_config
from openvta.spec.isa import Cause, MemId

NAMES = {MemId.INP: "Inp", MemId.WGT: "Wgt"}
CHANNELS = {MemId.INP: 2, MemId.WGT: 3}


class Bench:
    """The LoadUnit with two memories, two scratchpads and the two token queues.

    Tokens come from ``tokens``, which a test fills. Scratchpads are checked at every retirement: what an instruction
    and all before it write must be there, and cells that no instruction in hand writes must be as they were.
    """

    def __init__(self, dut: Any) -> None:
        self.dut = dut
        self.config = load_config(os.environ["OPENVTA_CONFIG"])
        self.random = random.Random(cocotb.RANDOM_SEED)
        self.ports = {m: ReadPortMemory(dut, f"io_read{n}", self.config, 7 + m) for m, n in NAMES.items()}
        self.pads = {}
        for m, name in NAMES.items():
            memory = memory_of(self.config, m)
            self.pads[m] = ScratchpadModel(dut, f"io_write{name}", memory.elem_bits, memory.depth, self.config)
        self.bases = {m: load_cases.random_base(self.random) for m in NAMES}
        self.expected: dict[MemId, dict[int, int]] = {m: {} for m in NAMES}
        self.bytes = dict.fromkeys(NAMES, 0)
        self.waiting: deque[Load] = deque()
        self.running: deque[Load] = deque()
        self.retired: list[int] = []
        self.errors: list[dict[str, int]] = []
        self.tokens = self.pushed = self.popped = 0
        self.token_chance = 1.0
        self.token_supply = 0
        self.insn_gap = 0.0
        self.cycle = 0
        self._offered = False

    async def reset(self) -> None:
        """Start the clock and reset."""
        self.dut.io_insn_valid.value = 0
        self.dut.io_halt.value = 0
        self.dut.io_popFromCompute_ready.value = 0
        self.dut.io_baseInp.value = self.bases[MemId.INP]
        self.dut.io_baseWgt.value = self.bases[MemId.WGT]
        self.dut.reset.value = 1
        Clock(self.dut.clock, 2, "ns").start()
        for _ in range(3):
            await RisingEdge(self.dut.clock)
        self.dut.reset.value = 0

    def make(self, memory: MemId, index: int, **fields: int) -> Load:
        """A load with the base register's value."""
        return load(self.config, memory, base=self.bases[memory], index=index, **fields)

    async def step(self) -> None:
        """One clock cycle."""
        await RisingEdge(self.dut.clock)
        self.cycle += 1
        self._sample()
        self._drive()

    def _sample(self) -> None:
        dut = self.dut
        if value(dut.io_popFromCompute_pop):
            assert self.tokens, "a token was taken that is not there"
            self.tokens -= 1
            self.popped += 1
        if self._offered and value(dut.io_insn_ready):
            self.running.append(self.waiting.popleft())
            self._offered = False
        for memory, name in NAMES.items():
            self.ports[memory].sample(self.cycle)
            self.pads[memory].sample()
            self.bytes[memory] += value(getattr(dut, f"io_{name.lower()}Bytes"))
        pushes = value(dut.io_pushToCompute_push)
        self.pushed += pushes
        if value(dut.io_retire_valid):
            self._check_retired(pushes)
        else:
            assert not pushes, "a push without a retirement"
        if value(dut.io_error_valid):
            names = ("cause", "index", "channel", "address")
            self.errors.append({name: value(getattr(dut, f"io_error_bits_{name}")) for name in names})

    def _check_retired(self, pushes: int) -> None:
        op = self.running.popleft()
        memory = op.memory.memory_id
        assert value(self.dut.io_retire_index) == op.index
        assert pushes == op.insn["push_next"], f"{op}: push {pushes}"
        self.retired.append(op.index)
        apply(op, self.expected[memory])
        later = [other for other in self.running if other.memory.memory_id is memory]
        busy = {other.insn["sram_base"] + k for other in later for k in range(other.elements)}
        got, want = self.pads[memory].cells, self.expected[memory]
        wrong = [k for k in sorted({*got, *want} - busy) if got.get(k) != want.get(k)]
        assert not wrong, f"{op}: elements {wrong[:8]} are wrong"

    def _drive(self) -> None:
        if not self._offered and self.waiting and self.random.random() >= self.insn_gap:
            op = self.waiting[0]
            self.dut.io_insn_bits_word.value = op.word(self.config)
            self.dut.io_insn_bits_index.value = op.index
            self._offered = True
        self.dut.io_insn_valid.value = int(self._offered)
        if self.token_supply and self.random.random() < self.token_chance:
            self.tokens += 1
            self.token_supply -= 1
        self.dut.io_popFromCompute_ready.value = int(self.tokens > 0)
        for port in self.ports.values():
            port.drive(self.cycle)

    async def run(self, ops: list[Load], timing: PortTiming, *, bound: int = 400_000) -> None:
        """Execute instructions to the end and check what they leave."""
        for port in self.ports.values():
            port.timing = timing
        self.waiting.extend(ops)
        self.token_supply += sum(op.insn["pop_next"] for op in ops)
        pushed, bytes_before, start = self.pushed, dict(self.bytes), self.cycle
        while self.waiting or self.running:
            await self.step()
            assert self.cycle - start < bound, f"no end after {bound} cycles, waiting for {list(self.running)[:1]}"
            assert not self.errors, self.errors
        for _ in range(5):
            await self.step()
        assert not value(self.dut.io_busy)
        assert self.tokens == 0 and self.token_supply == 0
        assert self.pushed - pushed == sum(op.insn["push_next"] for op in ops)
        for memory in NAMES:
            assert self.pads[memory].cells == self.expected[memory]
            read = sum(op.bytes_read for op in ops if op.memory.memory_id is memory)
            assert self.bytes[memory] - bytes_before[memory] == read

    async def run_to_error(self, ops: list[Load], timing: PortTiming, *, bound: int = 100_000) -> dict[str, int]:
        """Execute until the first fault and until all beats are drained; returns the fault."""
        for port in self.ports.values():
            port.timing = timing
        self.waiting.extend(ops)
        self.token_supply += sum(op.insn["pop_next"] for op in ops)
        start = self.cycle
        while not self.errors:
            await self.step()
            assert self.cycle - start < bound, "no fault was raised"
        retired, pushed = len(self.retired), self.pushed
        for _ in range(100):
            await self.step()
        while any(port.outstanding for port in self.ports.values()):
            await self.step()
            assert self.cycle - start < bound, "beats are not drained"
        assert len(self.errors) == 1, self.errors
        assert len(self.retired) == retired and self.pushed == pushed, "retired after the fault"
        return self.errors[0]


async def bench(dut: Any) -> Bench:
    """The bench for the design under test, after reset."""
    made = Bench(Unit(dut, "load"))
    await made.reset()
    return made


def random_program(b: Bench, count: int, first: int) -> list[Load]:
    """Random loads of both memories with random tokens."""
    ops = []
    for n in range(count):
        memory = b.random.choice((MemId.INP, MemId.WGT))
        op = load_cases.random_load(b.config, memory, b.random, first + n)
        fields = {k: v for k, v in op.insn.fields.items() if k != "memory_id"}
        fields["pop_next"], fields["push_next"] = b.random.randint(0, 1), b.random.randint(0, 1)
        if b.random.random() < 0.1:
            fields["x_size"] = 0
        ops.append(b.make(memory, first + n, **fields))
    return ops


@cocotb.test()
async def long_rows_with_every_pad(dut: Any) -> None:
    """Rows longer than a burst, 16 combinations of pads, inp and wgt at the same time."""
    b = await bench(dut)
    cases = [load_cases.padded_long_rows(b.config, memory) for memory in NAMES]
    ops = [op for pair in zip_longest(*cases) for op in pair if op is not None]
    await b.run([b.make(op.memory.memory_id, n, **_fields(op)) for n, op in enumerate(ops)], IDEAL)


@cocotb.test()
async def every_offset_and_count(dut: Any) -> None:
    """Odd and even starts and lengths, and bursts around their windows and pages."""
    b = await bench(dut)
    for memory in NAMES:
        ops = load_cases.offsets_and_counts(b.config, memory)[:: 1 if memory is MemId.INP else 7]
        ops += load_cases.window_edges(b.config, memory)
        await b.run([b.make(memory, n, **_fields(op)) for n, op in enumerate(ops)], IDEAL)


@cocotb.test()
async def random_programs(dut: Any) -> None:
    """Random programs with tokens, latency and back-pressure; pushes and retirement in order."""
    b = await bench(dut)
    first = 0
    for timing, chance, gap, count in (
        (IDEAL, 1.0, 0.0, 40),
        (JITTER, 0.1, 0.2, 30),
        (SLOW, 0.3, 0.0, 20),
        (IDEAL, 0.05, 0.5, 20),
    ):
        b.token_chance, b.insn_gap = chance, gap
        await b.run(random_program(b, count, first), timing)
        first += count


@cocotb.test()
async def waits_for_its_token(dut: Any) -> None:
    """Without a token nothing starts, earlier loads go on, and the unit says what it waits for."""
    b = await bench(dut)
    b.token_chance = 0.0
    b.waiting.append(b.make(MemId.INP, 0, x_size=2, y_size=1, x_stride=2, push_next=1))
    b.waiting.append(b.make(MemId.WGT, 1, x_size=2, y_size=1, x_stride=2, pop_next=1))
    b.waiting.append(b.make(MemId.INP, 2, x_size=1, y_size=1, x_stride=1))
    for _ in range(100):
        await b.step()
    assert b.retired == [0] and b.pushed == 1
    assert not b.ports[MemId.WGT].bursts
    assert value(b.dut.io_waitToken) and value(b.dut.io_waitTokens) == 2
    b.token_chance, b.token_supply = 1.0, 1
    for _ in range(100):
        await b.step()
    assert b.retired == [0, 1, 2] and b.popped == 1
    assert not value(b.dut.io_waitToken)


@cocotb.test()
async def fault_stops_both_loaders(dut: Any) -> None:
    """A bus fault of wgt stops inp too; nothing retires afterwards."""
    b = await bench(dut)
    ops = []
    count = min(memory_of(b.config, MemId.WGT).depth, 20)
    for n in range(8):
        ops.append(
            b.make(MemId.INP if n % 2 else MemId.WGT, n, dram_base=100 * n, x_size=count, y_size=1, x_stride=count)
        )
    address = ops[2].row_address(0) // b.config.axi_data_bytes * b.config.axi_data_bytes
    b.ports[MemId.WGT].faults = {address}
    fault = await b.run_to_error(ops, JITTER)
    assert fault == {"cause": Cause.BUS_READ, "index": 2, "channel": CHANNELS[MemId.WGT], "address": address}
    assert b.retired in ([0], [0, 1])


@cocotb.test()
async def index_range(dut: Any) -> None:
    """An element at the depth is a fault of its own instruction."""
    b = await bench(dut)
    depth = memory_of(b.config, MemId.INP).depth
    ops = [
        b.make(MemId.WGT, 0, x_size=2, y_size=1, x_stride=2),
        b.make(MemId.INP, 1, sram_base=depth - 2, x_size=2, y_size=1, x_stride=2, push_next=1),
        b.make(MemId.INP, 2, sram_base=depth - 2, x_size=2, y_size=1, x_stride=2, y_pad_1=1, push_next=1),
        b.make(MemId.WGT, 3, x_size=2, y_size=1, x_stride=2),
    ]
    fault = await b.run_to_error(ops, SLOW)
    assert fault == {"cause": Cause.INDEX_RANGE, "index": 2, "channel": 0, "address": 0}
    assert b.pushed <= 1 and 2 not in b.retired


@cocotb.test()
async def bus_rate(dut: Any) -> None:
    """Alternating loads keep each read port at a beat a cycle."""
    b = await bench(dut)
    ops = []
    for n in range(24):
        memory = MemId.INP if n % 2 else MemId.WGT
        kind = memory_of(b.config, memory)
        count = min(kind.depth, 4096 // kind.elem_bytes)
        ops.append(b.make(memory, n, x_size=count, y_size=1, x_stride=count))
    await b.run(ops, IDEAL)
    rates = {NAMES[m]: (port.beats, port.last_beat - port.first_beat + 1) for m, port in b.ports.items()}
    kinds = {m: memory_of(b.config, m) for m in NAMES}
    sizes = {m: min(k.depth, 4096 // k.elem_bytes) * k.elem_bytes for m, k in kinds.items()}
    slowest = max(sizes, key=lambda m: sizes[m])
    beats, cycles = rates[NAMES[slowest]]
    assert cycles <= beats + beats // 50, f"beats and cycles: {rates}"


def _fields(op: Load) -> dict[str, int]:
    return {name: value for name, value in op.insn.fields.items() if name != "memory_id"}
