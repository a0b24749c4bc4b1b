# SPDX-License-Identifier: Apache-2.0
"""A model of the machine's timing: when every instruction of a planned program starts and ends.

Load, compute and store work side by side; tokens order them as in the instruction set. GEMM takes one micro-op a cycle,
REQUANT runs beside it (an instruction that touches acc elements still to be requantized waits), loads of the compute
unit wait for what is before them. All reads share one data channel of the bus, work-conserving; writes have their own.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from openvta.compiler.schedule.steps import Memory, Planned, Step
from openvta.spec.config import HardwareConfig
from openvta.spec.isa import INSN_BYTES, Opcode, Unit

GEMM_LATENCY = 12
"""Cycles from the last micro-op of a GEMM to its retirement."""
REQUANT_LATENCY = 24
"""Cycles a REQUANT takes beside its vectors."""
LOAD_LATENCY = 16
"""Cycles from a LOAD's start to its first data and from its last data to its token, on memory that answers at once."""
STORE_LATENCY = 10
"""The same for a STORE."""
FLIGHT = 16
"""Instructions the load unit has in hand."""
BUCKET = 64
"""Cycles of bus time that are counted together."""


@dataclass(frozen=True)
class MemoryTiming:
    """The memory: cycles from address to data, from last data to response, and the share of cycles it is open."""

    read_latency: int = 1
    write_latency: int = 1
    open_share: float = 1.0


@dataclass(frozen=True)
class Prediction:
    """Cycles of a program, and for each layer the cycle its last GEMM micro-op is taken."""

    cycles: int
    ends: tuple[int, ...]

    def layers(self) -> tuple[int, ...]:
        """Cycles of each layer: the first counts from launch, the last to the end."""
        edges = (0, *self.ends[:-1], self.cycles)
        return tuple(b - a for a, b in itertools.pairwise(edges))


class Channel:
    """One data channel of the bus: transfers fill free time from a given cycle on, whatever order they are made in."""

    def __init__(self, share: float) -> None:
        self._room = BUCKET * share
        self._left: dict[int, float] = {}
        self._full = 0

    def transfer(self, start: float, beats: float) -> float:
        """Return when ``beats`` beats that may begin at ``start`` are through."""
        if beats <= 0:
            return start
        place = int(start) // BUCKET
        while True:
            left = self._left.get(place, self._room)
            if place == int(start) // BUCKET:
                left = min(left, self._room * (1 - (start - place * BUCKET) / BUCKET))
            take = min(left, beats)
            if take > 0:
                self._left[place] = self._left.get(place, self._room) - take
                beats -= take
            if beats <= 1e-9:
                used = self._room - self._left[place]
                return max(start, place * BUCKET + BUCKET * used / self._room)
            place += 1


def compute_cycles(step: Step, config: HardwareConfig) -> int:
    """Cycles the compute unit's engine needs for an instruction, transfers and latencies not counted."""
    insn = step.insn
    if insn.opcode is Opcode.GEMM:
        return step.uops
    if insn.opcode is Opcode.ALU:
        return step.uops * (1 if insn["use_imm"] else 2)
    if insn.opcode is Opcode.REQUANT:
        return insn["iter_out"] * insn["iter_in"] * config.requant_cycles
    return 0


class Machine:
    """Walks a planned program in order; see the module."""

    def __init__(self, config: HardwareConfig, memory: MemoryTiming) -> None:
        self.config = config
        self.memory = memory
        self.reads = Channel(memory.open_share)
        self.writes = Channel(memory.open_share)
        self.queues: dict[tuple[int, int], deque[float]] = {}
        self.issue = dict.fromkeys((Unit.LOAD, Unit.COMPUTE, Unit.STORE), 0.0)
        self.done = dict.fromkeys((Unit.LOAD, Unit.COMPUTE, Unit.STORE), 0.0)
        self.path = {Memory.INP: 0.0, Memory.WGT: 0.0}
        self.flight: deque[float] = deque()
        self.gemm = self.requant = 0.0
        self.pending: list[tuple[int, int, float]] = []
        self.dispatched = 0.0
        self.starts: dict[Unit, deque[float]] = {unit: deque() for unit in self.issue}

    def step(self, item: Planned) -> float:
        """Advance over one instruction; return when its last micro-op is taken (GEMM) or it is complete."""
        step, unit = item.step, item.step.unit
        waiting = self.starts[unit]
        room = waiting.popleft() if len(waiting) >= self.config.queue_depth else 0.0
        self.dispatched = max(self.dispatched + INSN_BYTES / self.config.axi_data_bytes, room)
        start = max(self.issue[unit], self.dispatched + 2, self._pop(item, unit))
        if unit is Unit.LOAD:
            start, end, issue = self._load(step, start)
        elif unit is Unit.STORE:
            start, end, issue = self._store(step, start)
        else:
            start, end, issue = self._compute(step, start)
        self.issue[unit] = issue
        waiting.append(start)
        self.done[unit] = max(self.done[unit], end)
        self._push(item, unit, self.done[unit])
        return self.gemm if step.insn.opcode is Opcode.GEMM and unit is Unit.COMPUTE else end

    def _pop(self, item: Planned, unit: Unit) -> float:
        when = 0.0
        for flag, other in (("pop_prev", -1), ("pop_next", 1)):
            if flag in item.flags:
                when = max(when, self.queues[int(unit) + other, int(unit)].popleft())
        return when

    def _push(self, item: Planned, unit: Unit, when: float) -> None:
        for flag, other in (("push_prev", -1), ("push_next", 1)):
            if flag in item.flags:
                self.queues.setdefault((int(unit), int(unit) + other), deque()).append(when + 2)

    def _beats(self, moved: int) -> float:
        return moved / self.config.axi_data_bytes

    def _load(self, step: Step, start: float) -> tuple[float, float, float]:
        memory = step.writes[0].memory if step.writes else Memory.INP
        if len(self.flight) >= FLIGHT:
            start = max(start, self.flight.popleft())
        latency = LOAD_LATENCY + self.memory.read_latency
        end = self.reads.transfer(start + latency, self._beats(step.moved))
        written = sum(span.high - span.low for span in step.writes) / max(
            1, self.config.axi_data_bytes // self.config.inp_bytes
        )
        end = max(end, self.path[memory] + (written if memory is Memory.INP else 0), start + latency)
        self.path[memory] = end
        self.flight.append(max(end, self.done[Unit.LOAD]))
        return start, end + 2, start + 1

    def _store(self, step: Step, start: float) -> tuple[float, float, float]:
        end = self.writes.transfer(start + STORE_LATENCY, self._beats(step.moved))
        return start, end + self.memory.write_latency + 2, end - STORE_LATENCY

    def _compute(self, step: Step, start: float) -> tuple[float, float, float]:
        opcode, cycles = step.insn.opcode, compute_cycles(step, self.config)
        if opcode is Opcode.GEMM:
            start = max(start, self.gemm, *(t for low, high, t in self.pending if self._touches(step, low, high)))
            self.gemm = start + cycles
            return start, self.gemm + GEMM_LATENCY, self.gemm
        if opcode is Opcode.REQUANT:
            begin = max(start, self.gemm + GEMM_LATENCY, self.requant)
            self.requant = begin + cycles
            end = self.requant + REQUANT_LATENCY
            self.pending = [p for p in self.pending if p[2] > start]
            self.pending += [(span.low, span.high, end) for span in step.writes]
            return start, end, start + 1
        if opcode is Opcode.LOAD:
            start = max(start, self.done[Unit.COMPUTE])
            latency = LOAD_LATENCY + self.memory.read_latency
            end = self.reads.transfer(start + latency, self._beats(step.moved)) + 2
        else:
            start = max(start, self.done[Unit.COMPUTE])
            end = start + cycles + GEMM_LATENCY
        self.gemm = max(self.gemm, end)
        return start, end, end

    @staticmethod
    def _touches(step: Step, low: int, high: int) -> bool:
        return any(span.low < high and low < span.high for span in step.writes)


def predict(
    planned: Sequence[Planned], layers: int, config: HardwareConfig, memory: MemoryTiming | None = None
) -> Prediction:
    """Return the predicted cycles of a planned program with ``layers`` layers."""
    machine = Machine(config, memory or MemoryTiming())
    ends = [0.0] * layers
    last = 0.0
    for item in planned:
        when = machine.step(item)
        last = max(last, when, *machine.done.values())
        if item.step.insn.opcode in (Opcode.GEMM, Opcode.ALU):
            ends[item.step.layer] = when
    for k in range(1, layers):
        ends[k] = max(ends[k], ends[k - 1])
    return Prediction(int(last), tuple(int(end) for end in ends))
