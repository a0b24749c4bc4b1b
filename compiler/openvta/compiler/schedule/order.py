# SPDX-License-Identifier: Apache-2.0
"""The order of loads: every LOAD of inp and wgt goes as early as its place is free and its data is there.

Layers are emitted one after the other, each load right before the GEMM that needs it. Here loads are taken out and put
back where a simple model of the machine has the bus free: of the loads that may start, the one needed soonest goes
first. So weights of a layer arrive while the one before it computes, input rows as soon as they are stored, and a
load that has to wait never stands in the way of one that could go. Compute and store steps keep their order.

A load may start when the last instruction that reads what it overwrites has ended, every store of the tensor rows it
reads is complete, and every earlier load of the same place is ordered before it. The result is a legal sequential order
of the same steps, whatever the model says.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from openvta.compiler.schedule.machine import (
    LOAD_LATENCY,
    REQUANT_LATENCY,
    STORE_LATENCY,
    compute_cycles,
)
from openvta.compiler.schedule.steps import Memory, Step
from openvta.spec.config import HardwareConfig
from openvta.spec.isa import Opcode, Unit

MARGIN = 120
"""Cycles a store is given to be complete beyond its data: the response of a slow memory."""

AHEAD = 2048
"""Cycles before the bus is free for it that a load of stored rows may stand in the program."""


@dataclass
class _Load:
    """A LOAD of the load unit. It may stand before base steps ``after`` to ``need``: conflicts are before, its use and
    its place in program order behind.
    """

    step: Step
    number: int
    need: int
    after: int = 0
    stored: bool = False
    waits: int = 0
    release: float = 0.0
    start: float = 0.0
    followers: list[_Load] = field(default_factory=list)
    feeds: list[_Base] = field(default_factory=list)


@dataclass
class _Base:
    """A compute or store step, and the loads that wait for its end."""

    step: Step
    missing: int = 0
    data: float = 0.0
    start: float = 0.0
    waiting: list[_Load] = field(default_factory=list)


def order_loads(steps: Sequence[Step], sizes: dict[Memory, int], config: HardwareConfig) -> list[Step]:
    """Return the steps with loads moved forward.

    Args:
        steps: instructions in a legal sequential order.
        sizes: elements of each shared memory.
        config: the configuration, for the timing model.
    """
    base, loads = _dependences(steps, sizes)
    queue = _Simulation(base, config).run(loads)
    starts = [item.start for item in base]
    placed: list[list[Step]] = [[] for _ in range(len(base) + 1)]
    last = 0
    for load in queue:
        # What waits for a store goes a little before the bus is free: then it waits ahead of the next GEMM, not behind.
        soon = max(load.release, load.start - AHEAD) if load.stored else load.start
        last = place = min(max(bisect_left(starts, soon), load.after, last), load.need)
        placed[place].append(load.step)
        for follower in load.followers:
            follower.after = max(follower.after, place)
    ordered: list[Step] = []
    for number, item in enumerate(base):
        ordered += placed[number]
        ordered.append(item.step)
    return ordered + placed[len(base)]


def _dependences(steps: Sequence[Step], sizes: dict[Memory, int]) -> tuple[list[_Base], list[_Load]]:
    """All other steps, and the loads with what they wait for."""
    base: list[_Base] = []
    loads: list[_Load] = []
    reader = {m: np.full(sizes[m], -1, np.int32) for m in (Memory.INP, Memory.WGT)}
    writer = {m: np.full(sizes[m], -1, np.int32) for m in (Memory.INP, Memory.WGT)}
    stored = np.full(sizes[Memory.DATA], -1, np.int32)
    for step in steps:
        if step.unit is Unit.LOAD:
            load = _Load(step, len(loads), need=len(base))
            last = max((int(reader[s.memory][s.low : s.high].max(initial=-1)) for s in step.writes), default=-1)
            row = max((int(stored[s.low : s.high].max(initial=-1)) for s in step.reads), default=-1)
            load.after = max(last, row) + 1
            load.stored = row >= 0
            for place in {last, row} - {-1}:
                load.waits += 1
                base[place].waiting.append(load)
            earlier: set[int] = set()
            for span in step.writes:
                earlier |= set(np.unique(writer[span.memory][span.low : span.high]).tolist())
                writer[span.memory][span.low : span.high] = load.number
            for number in sorted(earlier - {-1}):
                load.waits += 1
                loads[number].followers.append(load)
            loads.append(load)
            continue
        item = _Base(step)
        wanted: set[int] = set()
        for span in step.reads:
            if span.memory in writer:
                wanted |= set(np.unique(writer[span.memory][span.low : span.high]).tolist())
                reader[span.memory][span.low : span.high] = len(base)
        for number in sorted(wanted - {-1}):
            item.missing += 1
            loads[number].feeds.append(item)
        if step.unit is Unit.STORE:
            for span in step.writes:
                stored[span.low : span.high] = len(base)
        base.append(item)
    return base, loads


class _Simulation:
    """Compute and store in order, one load after the other on the bus; times in cycles."""

    def __init__(self, base: list[_Base], config: HardwareConfig) -> None:
        self.base = base
        self.config = config
        self.next = 0
        self.array = self.requant = self.store = self.start = 0.0
        self.future: list[tuple[float, int, _Load]] = []

    def run(self, loads: list[_Load]) -> list[_Load]:
        """Give every load its start; return them in the order of the bus."""
        bus = 0.0
        ready: list[tuple[int, _Load]] = []
        done: list[_Load] = []
        for load in loads:
            if not load.waits:
                heapq.heappush(self.future, (0.0, load.number, load))
        while len(done) < len(loads):
            self._advance()
            while self.future and self.future[0][0] <= bus:
                load = heapq.heappop(self.future)[2]
                heapq.heappush(ready, (load.number, load))
            if not ready:
                bus = self.future[0][0]
                continue
            load = heapq.heappop(ready)[1]
            load.start = bus
            bus += max(1.0, load.step.moved / self.config.axi_data_bytes)
            done.append(load)
            for item in load.feeds:
                item.missing -= 1
                item.data = max(item.data, bus + LOAD_LATENCY)
            self._release(load.followers, load.start)
        self._advance()
        return done

    def _release(self, loads: list[_Load], when: float) -> None:
        for load in loads:
            load.waits -= 1
            load.release = max(load.release, when)
            if not load.waits:
                heapq.heappush(self.future, (load.release, load.number, load))

    def _advance(self) -> None:
        """Execute base steps as far as their loads have a time."""
        while self.next < len(self.base) and not self.base[self.next].missing:
            item = self.base[self.next]
            self.next += 1
            if item.step.unit is Unit.STORE:
                item.start = self.start
                self._store(item)
            else:
                item.start = self.start = max(self.array, item.data)
                self._compute(item)

    def _store(self, item: _Base) -> None:
        self.store = max(self.store, self.array, self.requant + REQUANT_LATENCY) + STORE_LATENCY
        self.store += item.step.moved / self.config.axi_data_bytes
        self._release(item.waiting, self.store + MARGIN)

    def _compute(self, item: _Base) -> None:
        opcode, cycles = item.step.insn.opcode, compute_cycles(item.step, self.config)
        if opcode is Opcode.REQUANT:
            self.requant = max(self.requant, item.start) + cycles
            self.array = max(self.array, item.start)
        else:
            self.array = item.start + cycles
            if opcode is Opcode.LOAD:
                self.array += LOAD_LATENCY + item.step.moved / self.config.axi_data_bytes
            elif opcode is Opcode.ALU:
                self.array = max(self.array, self.requant)
        self._release(item.waiting, self.array)
