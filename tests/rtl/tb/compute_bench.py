# SPDX-License-Identifier: Apache-2.0
"""A ComputeUnit in the simulator: instructions in, tokens, device memory, and shadows of acc and out.

Every program is also run by the naive machine; acc, out, retirement and tokens must agree.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge

from naive_machine import NaiveMachine
from openvta.sim.cosim.bfm.stream import value
from openvta.spec import HardwareConfig, Insn, MemId, Opcode, encode, make
from openvta.spec.dtypes import DType
from openvta.spec.insn import isa_of

UOP_BASE, ACC_BASE = 0x1_0000_1000, 0x2_0000_2000
UOP_AREA = 1 << 16
SPAN = 64
"""Elements of inp, wgt and acc that have known contents (all, where a scratchpad has fewer)."""


@dataclass
class Timing:
    """Chances per cycle: no instruction, no token, no command taken, no beat; and the longest read latency."""

    insn_gap: float = 0.0
    token_gap: float = 0.0
    stall: float = 0.0
    gap: float = 0.0
    latency: int = 3


IDEAL = Timing()
SLOW = Timing(insn_gap=0.3, token_gap=0.5, stall=0.4, gap=0.4, latency=25)


class Areas:
    """Device memory of two areas, uop and acc, with the reads and writes the naive machine needs."""

    def __init__(self, acc_bytes: int) -> None:
        self.parts = {UOP_BASE: bytearray(UOP_AREA), ACC_BASE: bytearray(acc_bytes)}

    def _find(self, address: int) -> tuple[bytearray, int]:
        base = ACC_BASE if address >= ACC_BASE else UOP_BASE
        return self.parts[base], address - base

    def read(self, address: int, size: int) -> npt.NDArray[np.uint8]:
        """``size`` bytes; zero beyond an area (a beat may reach further than its elements)."""
        part, at = self._find(address)
        return np.frombuffer(bytes(part[max(0, at) : at + size]).ljust(size, b"\0"), np.uint8)

    def write(self, address: int, data: bytes) -> None:
        """Put bytes."""
        part, at = self._find(address)
        if not 0 <= at <= len(part) - len(data):
            raise IndexError(f"{len(data)} bytes at {address:#x} leave the area of {len(part)} bytes")
        part[at : at + len(data)] = data


class _ReadPort:
    """Answers one read port from the areas, in order."""

    def __init__(self, bench: ComputeBench, prefix: str) -> None:
        self._bench = bench
        dut = bench.dut
        self._command = [getattr(dut, f"{prefix}_command_{name}") for name in ("valid", "bits_address", "bits_beats")]
        self._ready = getattr(dut, f"{prefix}_command_ready")
        self._valid, self._data, self._last, self._fault = (
            getattr(dut, f"{prefix}_data_{name}") for name in ("valid", "bits_data", "bits_last", "bits_fault")
        )
        self._taken = getattr(dut, f"{prefix}_data_ready")
        self._beats: deque[tuple[int, int, bool]] = deque()
        self._driving = False
        self._accepts = False
        self.faults: set[int] = set()
        for handle in (self._ready, self._valid, self._data, self._last, self._fault):
            handle.value = 0

    def step(self, cycle: int) -> None:
        """One rising edge."""
        bench, timing = self._bench, self._bench.timing
        size = bench.config.axi_data_bytes
        if self._driving and value(self._taken):
            self._beats.popleft()
            self._driving = False
        if self._accepts and value(self._command[0]):
            address, beats = value(self._command[1]), value(self._command[2])
            ready = cycle + 1 + bench.random.randrange(timing.latency + 1)
            self._beats += [(ready, address + k * size, k + 1 == beats) for k in range(beats)]
        self._accepts = bench.random.random() >= timing.stall
        self._ready.value = int(self._accepts)
        if not self._driving and self._beats and self._beats[0][0] <= cycle and bench.random.random() >= timing.gap:
            _, address, last = self._beats[0]
            self._data.value = int.from_bytes(bench.areas.read(address, size).tobytes(), "little")
            self._last.value = int(last)
            self._fault.value = int(address in self.faults)
            self._driving = True
        self._valid.value = int(self._driving)


class _Shadow:
    """What a scratchpad holds, from the writes on its port (a port that firtool removed is a constant one)."""

    def __init__(self, memory: Any, elem_bits: int, beat_bits: int) -> None:
        def pin(name: str) -> Any:
            return getattr(memory, f"io_write_{name}", None)

        self._valid, self._index, self._data = pin("valid"), pin("bits_index"), pin("bits_data")
        self._masks = pin("bits_elemMask"), pin("bits_partMask")
        self._bits = elem_bits
        self._elems, self._parts = max(1, beat_bits // elem_bits), max(1, elem_bits // beat_bits)
        self.cells: dict[int, int] = {}

    def step(self) -> None:
        """One rising edge."""
        if not value(self._valid):
            return
        index, data = value(self._index), value(self._data)
        elems = 1 if self._masks[0] is None else value(self._masks[0])
        parts = (1 << self._parts) - 1 if self._masks[1] is None else value(self._masks[1])
        width = self._bits // self._parts
        mask = sum(((1 << width) - 1) << (width * k) for k in range(self._parts) if parts >> k & 1)
        for k in range(self._elems):
            if elems >> k & 1:
                element = data >> (k * self._bits) & ((1 << self._bits) - 1)
                self.cells[index + k] = self.cells.get(index + k, 0) & ~mask | element & mask


@dataclass
class Log:
    """What the unit did during one program."""

    retired: list[int] = field(default_factory=list)
    pushes: list[int] = field(default_factory=lambda: [0, 0])
    pops: list[int] = field(default_factory=lambda: [0, 0])
    errors: list[dict[str, int]] = field(default_factory=list)
    pulses: dict[str, list[int]] = field(default_factory=dict)
    finished: int = 0
    cycles: int = 0


class ComputeBench:
    """One ComputeUnit. ``run`` executes a program and compares it with the naive machine."""

    PULSES = ("gemmUop", "aluUop", "requantVector", "accWrite")

    def __init__(self, dut: Any, config: HardwareConfig, seed: int) -> None:
        self.dut, self.config = dut, config
        self.random = random.Random(seed)
        self.rng = np.random.default_rng(seed)
        self.timing = IDEAL
        self.areas = Areas(2 * config.acc_depth * config.acc_bytes)
        self.naive = NaiveMachine(config, self.areas, {"uop": UOP_BASE, "acc": ACC_BASE})  # type: ignore[arg-type]
        self.acc = _Shadow(dut.accMem, config.acc_bytes * 8, config.axi_data_bits)
        self.out = _Shadow(dut.outMem, config.out_bytes * 8, config.axi_data_bits)
        self.ports = (_ReadPort(self, "io_readUop"), _ReadPort(self, "io_readAcc"))
        self.uops = 0
        self.index = 0
        self.pulses = False

    async def start(self) -> None:
        """Clock, reset, and random inp and wgt."""
        dut = self.dut
        for name in ("insn_valid", "popFromLoad_ready", "popFromStore_ready", "writeInp_valid", "writeWgt_valid"):
            getattr(dut, f"io_{name}").value = 0
        for name in ("outRead_enable", "quiet", "halt"):
            getattr(dut, f"io_{name}").value = 0
        dut.io_baseUop.value, dut.io_baseAcc.value = UOP_BASE, ACC_BASE
        Clock(dut.clock, 2, "ns").start()
        await self.reset()
        await self._fill("writeInp", self.naive.inp, self.config.inp_type, self.config.inp_bytes)
        await self._fill("writeWgt", self.naive.wgt, self.config.wgt_type, self.config.wgt_bytes)
        count = min(SPAN, self.config.acc_depth)
        await self.load_acc(0, self.rng.integers(-(1 << 31), 1 << 31, self.acc_shape(count)))

    async def reset(self) -> None:
        """Reset; scratchpads keep what they hold."""
        self.dut.reset.value = 1
        for _ in range(3):
            await RisingEdge(self.dut.clock)
        self.dut.reset.value = 0
        await RisingEdge(self.dut.clock)

    def acc_shape(self, count: int) -> tuple[int, int, int]:
        """Shape of ``count`` acc elements."""
        return count, self.config.batch, self.config.block

    async def _fill(self, port: str, target: npt.NDArray[np.int64], lane: DType, elem_bytes: int) -> None:
        """Random values for the first elements, through the write port; extremes are frequent."""
        target = target[:SPAN]
        extreme = self.rng.choice([lane.minimum, lane.maximum], target.shape)
        anything = self.rng.integers(lane.minimum, lane.maximum + 1, target.shape)
        target[:] = np.where(self.rng.random(target.shape) < 0.2, extreme, anything)
        pins = {
            name: getattr(self.dut, f"io_{port}_{name}")
            for name in ("valid", "bits_index", "bits_elemMask", "bits_partMask", "bits_data")
        }
        beat = self.config.axi_data_bytes
        elems, parts = max(1, beat // elem_bytes), max(1, elem_bytes // beat)
        raw = lane.pack(target.reshape(len(target), -1)).tobytes()
        pins["valid"].value = 1
        for index in range(0, len(target), elems):
            for part in range(parts):
                chunk = raw[index * elem_bytes : (index + elems) * elem_bytes]
                pins["bits_index"].value = index
                pins["bits_elemMask"].value = (1 << elems) - 1
                pins["bits_partMask"].value = 1 << part
                pins["bits_data"].value = int.from_bytes(chunk, "little")
                await RisingEdge(self.dut.clock)
        pins["valid"].value = 0

    # program pieces ------------------------------------------------------------------------------

    def acc_load(self, first: int, values: npt.ArrayLike) -> Insn:
        """A LOAD of acc elements ``[n, batch, block]`` to ``first``; the values are put into device memory."""
        array = np.asarray(values, np.int64)
        place = self.random.randrange(self.config.acc_depth)
        raw = self.config.acc_type.pack(array.reshape(len(array), -1)).tobytes()
        self.areas.write(ACC_BASE + place * self.config.acc_bytes, raw)
        return make(
            Opcode.LOAD,
            memory_id=int(MemId.ACC),
            sram_base=first,
            dram_base=place,
            y_size=1,
            x_size=len(array),
            x_stride=len(array),
        )

    async def load_acc(self, first: int, values: npt.ArrayLike) -> None:
        """Load acc elements now."""
        await self.run([self.acc_load(first, values)])

    def uop_load(self, uops: Sequence[tuple[int, ...]], place: int | None = None) -> tuple[Insn, dict[str, int]]:
        """A LOAD of micro-ops (dst, src, wgt) and the ``uop_begin`` and ``uop_end`` that use them."""
        layout = isa_of(self.config).uop
        words = [layout.encode(dict(zip(("dst", "src", "wgt"), uop, strict=False))) for uop in uops]
        if (self.uops + len(words)) * 4 > UOP_AREA:
            self.uops = 0
        self.areas.write(UOP_BASE + self.uops * 4, np.array(words, "<u4").tobytes())
        begin = self.random.randrange(self.config.uop_depth - len(words) + 1) if place is None else place
        load = make(
            Opcode.LOAD,
            memory_id=int(MemId.UOP),
            sram_base=begin,
            dram_base=self.uops,
            y_size=1,
            x_size=len(words),
            x_stride=len(words),
        )
        self.uops += len(words)
        return load, {"uop_begin": begin, "uop_end": begin + len(words)}

    # running -------------------------------------------------------------------------------------

    async def run(self, insns: list[Insn], *, check: bool = True, bound: int = 200_000) -> Log:
        """Run instructions to the retirement of the last, then compare acc and out with the naive machine."""
        log = await self.drive(insns, bound=bound, until=len(insns))
        assert not log.errors, f"error {log.errors[0]} of {len(insns)} instructions"
        assert log.retired == list(range(self.index - len(insns), self.index)), f"retired {log.retired}"
        for number, (push, pop) in enumerate((("push_prev", "pop_prev"), ("push_next", "pop_next"))):
            assert log.pushes[number] == sum(insn[push] for insn in insns), f"{push}: {log.pushes}"
            assert log.pops[number] == sum(insn[pop] for insn in insns), f"{pop}: {log.pops}"
        self.naive.run([encode(self.config, insn) for insn in insns])
        if check:
            self.compare()
        return log

    def forget(self) -> None:
        """After an error: what acc and out hold is no longer known; acc must be loaded anew."""
        self.acc.cells.clear()
        self.out.cells.clear()
        self.naive.acc[:] = 0
        self.naive.out[:] = 0

    def compare(self) -> None:
        """acc and out as they are against the naive machine."""
        for name, shadow, lane, truth in (
            ("acc", self.acc, self.config.acc_type, self.naive.acc),
            ("out", self.out, self.config.out_type, self.naive.out),
        ):
            size = truth[0].size * lane.bits // 8
            for index, raw in shadow.cells.items():
                got = lane.unpack(np.frombuffer(raw.to_bytes(size, "little"), np.uint8)).reshape(truth[index].shape)
                if not np.array_equal(got, truth[index]):
                    raise AssertionError(f"{name}[{index}] = {got.tolist()}, must be {truth[index].tolist()}")
            missing = [k for k in range(len(truth)) if k not in shadow.cells and truth[k].any()]
            assert not missing, f"{name}: never wrote elements {missing[:8]}"

    async def drive(self, insns: list[Insn], *, bound: int, until: int, quiet_after: int = 0, extra: int = 6) -> Log:
        """Feed instructions; stop some cycles after ``until`` retirements or an error; fail after ``bound`` cycles."""
        dut, log, timing = self.dut, Log(), self.timing
        words = deque((encode(self.config, insn), self.index + k) for k, insn in enumerate(insns))
        self.index += len(insns)
        tokens = [sum(insn["pop_prev"] for insn in insns), sum(insn["pop_next"] for insn in insns)]
        ready = [dut.io_popFromLoad_ready, dut.io_popFromStore_ready]
        pops = [dut.io_popFromLoad_pop, dut.io_popFromStore_pop]
        pushes = [dut.io_pushToLoad_push, dut.io_pushToStore_push]
        shown = [0, 0]
        driving = False
        dut.io_insn_valid.value = 0
        left = extra
        for cycle in range(bound):
            for number in (0, 1):
                if shown[number] < tokens[number] and self.random.random() >= timing.token_gap:
                    shown[number] += 1
                ready[number].value = int(shown[number] > log.pops[number])
            dut.io_quiet.value = int(cycle >= quiet_after and self.random.random() >= timing.token_gap)
            await RisingEdge(dut.clock)
            log.cycles = cycle
            if driving and value(dut.io_insn_ready):
                words.popleft()
                driving = False
            if not driving and words and self.random.random() >= timing.insn_gap:
                dut.io_insn_bits_word.value, dut.io_insn_bits_index.value = words[0]
                driving = True
            dut.io_insn_valid.value = int(driving)
            for port in self.ports:
                port.step(cycle)
            self.acc.step()
            self.out.step()
            for number in (0, 1):
                log.pops[number] += value(pops[number])
                log.pushes[number] += value(pushes[number])
            if value(dut.io_retire_valid):
                log.retired.append(value(dut.io_retire_index))
                log.finished += value(dut.io_finished)
            if value(dut.io_error_valid):
                log.errors.append(
                    {
                        name: value(getattr(dut, f"io_error_bits_{name}"))
                        for name in ("cause", "index", "channel", "address")
                    }
                )
            if self.pulses:
                for name in self.PULSES:
                    if value(getattr(dut, f"io_{name}")):
                        log.pulses.setdefault(name, []).append(cycle)
            if len(log.retired) >= until or log.errors:
                if left == 0:
                    dut.io_insn_valid.value = 0
                    return log
                left -= 1
        raise AssertionError(
            f"{len(log.retired)} of {len(insns)} retired after {bound} cycles, pops {log.pops}, errors {log.errors}"
        )
