# SPDX-License-Identifier: Apache-2.0
"""Tests of fetch, inside the simulator."""

from __future__ import annotations

import os
import random
from typing import Any

import cocotb
import words
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge
from read_port import IDEAL, JITTER, SLOW, PortTiming, ReadPortMemory

from openvta.sim.cosim.bfm.stream import value
from openvta.spec.config import HardwareConfig, load_config
from openvta.spec.insn import decode
from openvta.spec.isa import INSN_BYTES, Cause, Opcode, Unit

QUEUES = {Unit.LOAD: "load", Unit.COMPUTE: "compute", Unit.STORE: "store"}


class Bench:
    """Fetch with its instruction memory and three consumers."""

    def __init__(self, dut: Any, config: HardwareConfig, seed: int) -> None:
        self.dut, self.config = dut, config
        self.random = random.Random(seed)
        self.stream: bytes = b""
        self.base = 0
        self.port = ReadPortMemory(dut, "io_read", config, seed, self._bytes)
        self.got: dict[Unit, list[tuple[int, int]]] = {unit: [] for unit in QUEUES}
        self.errors: list[tuple[int, int, int, int]] = []
        self.stall = dict.fromkeys(QUEUES, 0.0)
        self.cycle = 0
        self.read = 0
        self._ready = dict.fromkeys(QUEUES, False)

    def _bytes(self, address: int, count: int) -> bytes:
        at = (address - self.base) % (1 << 64)
        if at >= 1 << 63:
            at -= 1 << 64
        return bytes(self.stream[at + k] if 0 <= at + k < len(self.stream) else 0xA5 for k in range(count))

    async def reset(self) -> None:
        """Start the clock and reset."""
        for name in ("start", "halt", "base", "count"):
            getattr(self.dut, f"io_{name}").value = 0
        for name in QUEUES.values():
            getattr(self.dut, f"io_{name}_ready").value = 0
        self.dut.reset.value = 1
        cocotb.start_soon(Clock(self.dut.clock, 2, "ns").start())
        for _ in range(3):
            await RisingEdge(self.dut.clock)
        self.dut.reset.value = 0

    async def step(self) -> None:
        """One clock cycle."""
        await RisingEdge(self.dut.clock)
        self.cycle += 1
        if value(self.dut.io_read_data_valid):
            assert value(self.dut.io_read_data_ready), "read data had to wait"
        self.port.sample(self.cycle)
        for unit, name in QUEUES.items():
            if self._ready[unit] and value(getattr(self.dut, f"io_{name}_valid")):
                bits = (value(getattr(self.dut, f"io_{name}_bits_{field}")) for field in ("index", "word"))
                self.got[unit].append(tuple(bits))  # type: ignore[arg-type]
        if value(self.dut.io_error_valid):
            fields = ("cause", "index", "channel", "address")
            self.errors.append(tuple(value(getattr(self.dut, f"io_error_bits_{f}")) for f in fields))  # type: ignore[arg-type]
        self.read += value(self.dut.io_insnRead)
        self.dut.io_start.value = 0
        self.port.drive(self.cycle)
        for unit, name in QUEUES.items():
            self._ready[unit] = self.random.random() >= self.stall[unit]
            getattr(self.dut, f"io_{name}_ready").value = int(self._ready[unit])

    def start(self, stream: list[int], base: int, count: int | None = None) -> None:
        """Begin a run."""
        self.stream = b"".join(word.to_bytes(INSN_BYTES, "little") for word in stream)
        self.base = base
        self.dut.io_base.value = base
        self.dut.io_count.value = len(stream) if count is None else count
        self.dut.io_start.value = 1
        self.got = {unit: [] for unit in QUEUES}
        self.read = 0

    async def until_idle(self, bound: int = 40000) -> None:
        """Run until nothing is left to do."""
        await self.step()
        for _ in range(bound):
            await self.step()
            waiting = any(value(getattr(self.dut, f"io_{name}_valid")) for name in QUEUES.values())
            if not value(self.dut.io_busy) and not waiting and not self.port.outstanding:
                return
        raise AssertionError(
            f"fetch does not come to an end within {bound} cycles: {[len(g) for g in self.got.values()]}"
        )


def expected(config: HardwareConfig, stream: list[int]) -> dict[Unit, list[tuple[int, int]]]:
    """What every queue must carry."""
    result: dict[Unit, list[tuple[int, int]]] = {unit: [] for unit in QUEUES}
    for index, word in enumerate(stream):
        result[decode(config, word).unit].append((index, word))
    return result


def program(config: HardwareConfig, rng: random.Random, length: int) -> list[int]:
    """Legal instructions of any kind, FINISH last."""
    return [words.legal(config, rng) for _ in range(length - 1)] + [words.legal(config, rng, last=True)]


async def bench_of(dut: Any) -> Bench:
    """A bench after reset."""
    bench = Bench(dut, load_config(os.environ["OPENVTA_CONFIG"]), int(os.environ["COCOTB_RANDOM_SEED"]))
    await bench.reset()
    return bench


@cocotb.test()
async def streams(dut: Any) -> None:
    """Any length, base and timing: every queue gets its words in order."""
    bench = await bench_of(dut)
    rng = bench.random
    for number in range(40):
        bench.port.timing = rng.choice((IDEAL, JITTER, SLOW, PortTiming(latency_min=1, latency_max=1)))
        bench.stall = {unit: rng.choice((0.0, 0.3, 0.9)) for unit in QUEUES}
        length = rng.choice((1, 2, 3, 4, 5, 31, 32, 33, 65, 130))
        base = rng.choice((0x1000, rng.getrandbits(40) << 12, (rng.getrandbits(56) << 4) % (1 << 62)))
        stream = program(bench.config, rng, length)
        bench.start(stream, base)
        await bench.until_idle()
        want = expected(bench.config, stream)
        assert bench.got == want, f"run {number}: length {length} base {base:#x}"
        assert not bench.errors and bench.read == length


@cocotb.test()
async def throughput(dut: Any) -> None:
    """With a free bus the words come at bus rate, at most one a cycle, without a bubble."""
    bench = await bench_of(dut)
    bench.port.timing = PortTiming(latency_min=8, latency_max=8)
    length = 400
    stream = program(bench.config, bench.random, length)
    bench.start(stream, 0x4000)
    start = bench.cycle
    await bench.until_idle()
    per_word = max(1.0, INSN_BYTES / bench.config.axi_data_bytes)
    spent = bench.cycle - start
    # The agent gives one burst at a time and pauses a cycle in between at most.
    assert spent <= length * per_word * 1.3 + 60, f"{spent} cycles for {length} words"
    assert bench.got == expected(bench.config, stream)


@cocotb.test()
async def illegal_words(dut: Any) -> None:
    """The first illegal word stops the stream; everything before it was sent, nothing after it."""
    bench = await bench_of(dut)
    config, rng = bench.config, bench.random
    for _ in range(10):
        dut.reset.value = 1
        for _ in range(3):
            await bench.step()
        dut.reset.value = 0
        await bench.step()
        bench.errors.clear()
        length = rng.randint(2, 40)
        bad = rng.randrange(length - 1)
        stream = program(config, rng, length)
        stream[bad] = int(Opcode.FINISH) if rng.random() < 0.5 else 5
        bench.start(stream, 0x2000)
        for _ in range(60 * length):
            await bench.step()
        cause = Cause.FINISH_ORDER if stream[bad] == Opcode.FINISH else Cause.ILLEGAL_OPCODE
        assert bench.errors == [(cause, bad, 0, 0)], f"errors {bench.errors}, must be {cause.name} at {bad}"
        assert bench.got == expected(config, stream[:bad])


@cocotb.test()
async def bus_faults(dut: Any) -> None:
    """A beat that is a bus error is reported with its address and the instruction it belongs to."""
    bench = await bench_of(dut)
    config, rng = bench.config, bench.random
    beat = config.axi_data_bytes
    for _ in range(10):
        dut.reset.value = 1
        for _ in range(3):
            await bench.step()
        dut.reset.value = 0
        await bench.step()
        bench.errors.clear()
        bench.port.faults.clear()
        length, base = rng.randint(1, 50), 0x3000
        stream = program(config, rng, length)
        at = rng.randrange(length * INSN_BYTES) // beat * beat
        bench.port.faults.add(base + at)
        bench.start(stream, base)
        for _ in range(60 * length + 100):
            await bench.step()
        index = at // INSN_BYTES
        address = base + (at if beat < INSN_BYTES else index * INSN_BYTES)
        assert bench.errors == [(Cause.BUS_READ, index, 0, address)], f"{bench.errors} for a fault at {base + at:#x}"
        assert bench.got == expected(config, stream[:index])


@cocotb.test()
async def empty_stream(dut: Any) -> None:
    """No instruction at all: the last one is not FINISH."""
    bench = await bench_of(dut)
    bench.start([], 0x1000)
    for _ in range(20):
        await bench.step()
    assert bench.errors == [(Cause.FINISH_ORDER, 0, 0, 0)] and not bench.port.bursts


@cocotb.test()
async def halt(dut: Any) -> None:
    """After halt nothing is asked for; what was asked for is taken."""
    bench = await bench_of(dut)
    bench.port.timing = JITTER
    bench.stall = dict.fromkeys(QUEUES, 0.5)
    bench.start(program(bench.config, bench.random, 300), 0x8000)
    for _ in range(120):
        await bench.step()
    dut.io_halt.value = 1
    for _ in range(3):
        await bench.step()
    bursts = len(bench.port.bursts)
    sent = sum(len(got) for got in bench.got.values())
    for _ in range(400):
        await bench.step()
    assert len(bench.port.bursts) <= bursts + 1 and not bench.port.outstanding
    held = 3 * bench.config.queue_depth
    assert sum(len(got) for got in bench.got.values()) <= sent + held
