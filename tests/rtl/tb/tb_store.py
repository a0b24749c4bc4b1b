# SPDX-License-Identifier: Apache-2.0
"""Tests of the store unit, inside the simulator."""

from __future__ import annotations

import os
import random
from collections import deque
from itertools import product
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge
from write_port import WritePortMemory, WriteTiming

from openvta.sim.cosim.bfm.stream import value
from openvta.spec.config import HardwareConfig, load_config
from openvta.spec.insn import Insn, encode, make
from openvta.spec.isa import Cause, MemId, Opcode

FAST = WriteTiming()
TIMINGS = (
    FAST,
    WriteTiming(stall_data=0.5, latency=10),
    WriteTiming(stall_address=0.8, latency=3),
    WriteTiming(stall_address=0.3, stall_data=0.3, gap=0.6, latency=40),
)


def store(**values: int) -> Insn:
    """A STORE from field values."""
    return make(Opcode.STORE, memory_id=MemId.OUT, **values)


class Bench:
    """The store unit with a known out scratchpad, a token source and a memory."""

    def __init__(self, dut: Any, config: HardwareConfig, seed: int) -> None:
        self.dut, self.config = dut, config
        self.random = random.Random(seed)
        self.out = [self.random.getrandbits(config.out_bytes * 8) for _ in range(config.acc_depth)]
        self.elems = max(1, config.axi_data_bytes // config.out_bytes)
        self.memory = WritePortMemory(dut, "io_axiWrite", config, seed)
        self.waiting: deque[tuple[int, Insn]] = deque()
        self.retired: list[int] = []
        self.pushes = 0
        self.pops = 0
        self.tokens = 0
        self.token_chance = 1.0
        self.errors: list[tuple[int, int, int, int]] = []
        self.bytes = 0
        self.cycle = 0
        self.base = 0
        self._offered = False

    async def reset(self) -> None:
        """Start the clock (once) and reset."""
        for name in ("insn_valid", "halt", "popFromCompute_ready", "baseOut", "outRead_data"):
            getattr(self.dut, f"io_{name}").value = 0
        self._offered = False
        self.memory.restart()
        self.waiting.clear()
        self.retired.clear()
        self.errors.clear()
        self.pushes = self.pops = self.tokens = self.bytes = 0
        self.dut.reset.value = 1
        if not self.cycle:
            cocotb.start_soon(Clock(self.dut.clock, 2, "ns").start())
        for _ in range(3):
            await RisingEdge(self.dut.clock)
            self.cycle += 1
        self.dut.reset.value = 0

    async def step(self) -> None:
        """One clock cycle."""
        await RisingEdge(self.dut.clock)
        self.cycle += 1
        dut = self.dut
        self.memory.sample(self.cycle)
        if self._offered and value(dut.io_insn_ready):
            self.waiting.popleft()
            self._offered = False
        if value(dut.io_outRead_enable):
            at = value(dut.io_outRead_index)
            data = 0
            for k in range(self.elems):
                data |= self.out[(at + k) % len(self.out)] << (8 * self.config.out_bytes * k)
            dut.io_outRead_data.value = data
        else:
            dut.io_outRead_data.value = self.random.getrandbits(self.elems * 8 * self.config.out_bytes)
        if value(dut.io_popFromCompute_pop):
            assert self.tokens > 0, "popped a token that is not there"
            self.tokens -= 1
            self.pops += 1
        if value(dut.io_retire_valid):
            self.retired.append(value(dut.io_retire_index))
        pushed = value(dut.io_pushToCompute_push)
        assert not pushed or value(dut.io_retire_valid), "a push without a retirement"
        self.pushes += pushed
        if value(dut.io_error_valid):
            fields = ("cause", "index", "channel", "address")
            self.errors.append(tuple(value(getattr(dut, f"io_error_bits_{f}")) for f in fields))  # type: ignore[arg-type]
        self.bytes += value(dut.io_outBytes)
        self.memory.drive(self.cycle)
        if self.tokens < 3 and self.random.random() < self.token_chance:
            self.tokens += 1
        dut.io_popFromCompute_ready.value = int(self.tokens > 0)
        if not self._offered and self.waiting:
            index, insn = self.waiting[0]
            dut.io_insn_bits_word.value = encode(self.config, insn)
            dut.io_insn_bits_index.value = index
            self._offered = True
        dut.io_insn_valid.value = int(self._offered)

    async def run(self, insns: list[Insn], base: int, *, bound: int = 60000) -> None:
        """Execute instructions from index 0 on and wait for the end."""
        self.base = base
        self.dut.io_baseOut.value = base
        self.retired.clear()
        self.memory.written.clear()
        self.memory.bursts.clear()
        self.memory.beats.clear()
        self.pushes = self.pops = self.bytes = 0
        self.waiting.extend(enumerate(insns))
        for _ in range(bound):
            await self.step()
            if len(self.retired) >= len(insns) and not value(self.dut.io_busy) and self.memory.idle:
                return
        raise AssertionError(f"{len(self.retired)} of {len(insns)} retired within {bound} cycles")

    def expected(self, insns: list[Insn]) -> dict[int, int]:
        """Bytes in memory afterwards."""
        size, cells = self.config.out_bytes, {}
        for insn in insns:
            for y, x in product(range(insn["y_size"]), range(insn["x_size"])):
                element = self.out[insn["sram_base"] + y * insn["x_size"] + x]
                first = self.base + (insn["dram_base"] + y * insn["x_stride"] + x) * size
                for lane, byte in enumerate(element.to_bytes(size, "little")):
                    cells[(first + lane) % (1 << 64)] = byte
        return cells

    def check(self, insns: list[Insn]) -> None:
        """Memory, order, tokens and counters are as they must be."""
        assert not self.errors, f"errors {self.errors}"
        assert self.retired == list(range(len(insns))), f"retired {self.retired}"
        want = self.expected(insns)
        wrong = {a for a in want.keys() | self.memory.written.keys() if want.get(a) != self.memory.written.get(a)}
        assert not wrong, f"{len(wrong)} bytes differ, first at {min(wrong):#x} of {insns}"
        assert self.pushes == sum(i["push_prev"] for i in insns)
        assert self.pops == sum(i["pop_prev"] for i in insns)
        assert self.bytes == self.config.out_bytes * sum(i["x_size"] * i["y_size"] for i in insns)


def random_store(config: HardwareConfig, rng: random.Random) -> Insn:
    """A store in range with any stride, offset and tokens; sometimes a no-op."""
    largest = min(config.acc_depth, 80)
    while True:
        x, y = rng.choice((1, 2, 3, rng.randint(1, largest))), rng.choice((1, 1, 2, 3, rng.randint(1, 9)))
        if x * y <= largest:
            break
    stride = rng.choice((x, x, x + rng.randint(0, 20), 0, rng.randint(0, 65535)))
    flags = {"pop_prev": rng.randrange(2), "push_prev": rng.randrange(2)}
    if rng.random() < 0.15:
        x, y = rng.choice(((0, y), (x, 0), (0, 0)))
    return store(
        sram_base=rng.randint(0, config.acc_depth - x * y), dram_base=rng.choice((rng.randint(0, 80), rng.getrandbits(32))),
        x_size=x, y_size=y, x_stride=stride, **flags,
    )  # fmt: skip


async def bench_of(dut: Any) -> Bench:
    """A bench after reset."""
    bench = Bench(dut, load_config(os.environ["OPENVTA_CONFIG"]), int(os.environ["COCOTB_RANDOM_SEED"]))
    await bench.reset()
    return bench


@cocotb.test()
async def at_random(dut: Any) -> None:
    """Groups of stores with any shape and timing."""
    bench = await bench_of(dut)
    rng = bench.random
    for _ in range(30):
        bench.memory.timing = rng.choice(TIMINGS)
        bench.token_chance = rng.choice((1.0, 0.2))
        insns = [random_store(bench.config, rng) for _ in range(rng.randint(1, 8))]
        await bench.run(insns, rng.choice((0, 0x1000, rng.getrandbits(50) << 12)))
        bench.check(insns)


@cocotb.test()
async def stalled_beats(dut: Any) -> None:
    """WREADY low 0 to 3 cycles at every beat position gives the beats of the run without stalls."""
    bench = await bench_of(dut)
    size, beat = bench.config.out_bytes, bench.config.axi_data_bytes
    for tiles in (2, 3, 17):
        insn = [store(sram_base=1, dram_base=1, x_size=tiles, y_size=1, x_stride=tiles, push_prev=1)]
        bench.memory.take_beat = None
        bench.memory.timing = FAST
        await bench.run(insn, 0x1000)
        bench.check(insn)
        plain = list(bench.memory.beats)
        assert len(plain) == -(-(size % beat + tiles * size) // beat) if size < beat else tiles * size // beat
        positions = range(len(plain))
        if tiles == 2:
            patterns = [dict(zip(positions, lows, strict=True)) for lows in product(range(4), repeat=len(plain))]
        else:
            patterns = [{p: bench.random.randrange(4) for p in positions} for _ in range(12)]
        for pattern in patterns:
            bench.memory.take_beat = lambda stalled, lows=pattern: stalled >= lows.get(len(bench.memory.beats), 0)
            await bench.run(insn, 0x1000)
            bench.check(insn)
            assert bench.memory.beats == plain, f"beats differ with stalls {pattern}"
    bench.memory.take_beat = None


@cocotb.test()
async def windows(dut: Any) -> None:
    """Rows that begin and end around burst windows and 4 KiB pages, and whole-scratchpad stores."""
    bench = await bench_of(dut)
    config = bench.config
    window = config.axi_burst_beats * config.axi_data_bytes
    insns = []
    for edge, before, after in product((window, 4096, 3 * window), (1, 2, 3), (1, 2, 5)):
        first = edge // config.out_bytes - before
        if first >= 0:
            insns.append(store(sram_base=before, dram_base=first, x_size=before + after, y_size=1, x_stride=1))
    total = min(config.acc_depth, 4 * window // config.out_bytes)
    insns.append(store(sram_base=0, dram_base=3, x_size=total, y_size=1, x_stride=total))
    insns.append(store(sram_base=0, dram_base=1, x_size=2, y_size=total // 2, x_stride=2))
    for timing in TIMINGS[:2]:
        bench.memory.timing = timing
        await bench.run(insns, 0x40000)
        bench.check(insns)


@cocotb.test()
async def throughput(dut: Any) -> None:
    """With a free bus one beat a cycle, across rows and instructions."""
    bench = await bench_of(dut)
    config = bench.config
    x = max(8, 64 * config.axi_data_bytes // config.out_bytes // 2)
    x = min(x, config.acc_depth // 2)
    insns = [store(sram_base=0, dram_base=4096 * n, x_size=x, y_size=2, x_stride=x + 64) for n in range(6)]
    start = bench.cycle
    await bench.run(insns, 0)
    bench.check(insns)
    beats, spent = len(bench.memory.beats), bench.cycle - start
    assert spent <= beats + 40, f"{spent} cycles for {beats} beats"


@cocotb.test()
async def bus_faults(dut: Any) -> None:
    """An error response names the instruction and its burst; nothing later retires; everything drains."""
    bench = await bench_of(dut)
    config, rng = bench.config, bench.random
    for _ in range(12):
        await bench.reset()
        bench.memory.timing = rng.choice(TIMINGS)
        insns = [
            store(sram_base=0, dram_base=4096 * n, x_size=min(20, config.acc_depth), y_size=1, x_stride=1, push_prev=1)
            for n in range(5)
        ]
        bad = rng.randrange(5)
        size = config.out_bytes
        first = 4096 * bad * size
        beats = max(1, 20 * size // config.axi_data_bytes)
        fault = first + rng.randrange(beats) * config.axi_data_bytes
        bench.memory.faults = {fault}
        bench.waiting.extend(enumerate(insns))
        dut.io_baseOut.value = 0
        for _ in range(1500):
            await bench.step()
            if bench.errors:
                dut.io_halt.value = 1
        window = config.axi_burst_beats * config.axi_data_bytes
        burst = max(first, fault // window * window)
        assert bench.errors == [(Cause.BUS_WRITE, bad, 8, burst)], f"{bench.errors}, must name {bad} and {burst:#x}"
        assert bench.retired == list(range(bad)) and bench.pushes == bad
        assert bench.memory.idle, "not drained"
        bench.memory.faults = set()


@cocotb.test()
async def out_of_range(dut: Any) -> None:
    """Elements beyond the depth are an error before anything of the instruction is written; the last ones are not."""
    bench = await bench_of(dut)
    depth = bench.config.acc_depth
    fine = [
        store(sram_base=depth - 1, x_size=1, y_size=1, x_stride=1),
        store(sram_base=depth - 6, x_size=2, y_size=3, x_stride=9, dram_base=64),
    ]
    await bench.run(fine, 0x2000)
    bench.check(fine)
    for x, y, at in (
        (2, 1, depth - 1),
        (2, 3, depth - 5),
        (65535, 65535, 0),
        (1, 1, min(depth, 8191) + (depth < 8192)),
    ):
        if at + x * y <= depth:
            continue
        await bench.reset()
        good = store(sram_base=0, x_size=1, y_size=1, x_stride=1)
        bench.waiting.extend(enumerate([good, store(sram_base=at, x_size=x, y_size=y, x_stride=x)]))
        dut.io_baseOut.value = 0
        for _ in range(200):
            await bench.step()
        assert bench.errors == [(Cause.INDEX_RANGE, 1, 0, 0)], f"{bench.errors} for {x}x{y} at {at}"
        assert bench.retired == [0] and set(bench.memory.written) == set(range(bench.config.out_bytes))


@cocotb.test()
async def halt(dut: Any) -> None:
    """After halt no burst begins; what was begun is finished."""
    bench = await bench_of(dut)
    config = bench.config
    bench.memory.timing = TIMINGS[3]
    insn = store(sram_base=0, x_size=min(64, config.acc_depth // 2), y_size=2, x_stride=4096)
    for wait in range(0, 60, 7):
        await bench.reset()
        bench.waiting.extend(enumerate([insn] * 4))
        for _ in range(wait + 5):
            await bench.step()
        dut.io_halt.value = 1
        for _ in range(2000):
            await bench.step()
        assert bench.memory.idle and not bench.errors
        beats = sum(beats for _, beats in bench.memory.bursts)
        assert beats == len(bench.memory.beats)
