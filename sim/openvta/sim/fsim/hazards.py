# SPDX-License-Identifier: Apache-2.0
"""Races and reads of never-written data, by vector clocks over every scratchpad element and stored byte.

Each unit numbers its instructions from 1. An instruction's clock holds, for every unit, the number of that unit's
instructions known to be complete before it starts; a token carries the clock of the instruction that pushed it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from openvta.sim.fsim.access import Span
from openvta.sim.fsim.loops import Indices
from openvta.sim.fsim.machine import Machine
from openvta.sim.fsim.op import BASES, Op
from openvta.sim.fsim.schedule import EXECUTING, QUEUES
from openvta.sim.fsim.scratchpads import Memory
from openvta.sim.fsim.stream import Decoded, Stream
from openvta.sim.fsim.transfer import Store
from openvta.sim.memory import PAGE_BYTES
from openvta.spec import Queue, Unit

SHARED = (Memory.INP, Memory.WGT, Memory.OUT)
"""Scratchpads that more than one unit touches."""
KEEP = 20

Clock = tuple[int, ...]


@dataclass(frozen=True)
class Race:
    """Two instructions of different units, what each does, and where."""

    where: str
    first: Decoded
    first_does: str
    second: Decoded
    second_does: str


@dataclass(frozen=True)
class Unwritten:
    """An instruction that reads what nothing wrote."""

    where: str
    item: Decoded


class Marks:
    """Per cell and unit, the number of the unit's last reading and last writing instruction (0: none)."""

    def __init__(self, cells: int) -> None:
        self.reads = {unit: np.zeros(cells, np.int32) for unit in EXECUTING}
        self.writes = {unit: np.zeros(cells, np.int32) for unit in EXECUTING}


class HazardChecker:
    """Observer of one run of a machine.

    Args:
        machine: the machine.
        stream: what it is about to run.
        tokens: token counts before the run; such tokens order nothing.
        bases: base addresses of the run.
    """

    def __init__(self, machine: Machine, stream: Stream, tokens: Sequence[int], bases: Mapping[str, int]) -> None:
        self._machine = machine
        self._items = {unit: stream.of(unit) for unit in EXECUTING}
        self._clocks: dict[Unit, list[int]] = {unit: [0, 0, 0] for unit in EXECUTING}
        self._tokens: dict[Queue, deque[Clock]] = {queue: deque([(0, 0, 0)] * tokens[queue]) for queue in QUEUES}
        self._marks = {memory: Marks(machine.core.pads.depth(memory)) for memory in SHARED}
        machine.core.bases.update({name: bases.get(name, 0) for name in BASES})
        self._pages = self._stored_pages(machine.compile_ops(stream))
        self._dram = Marks(len(self._pages) * PAGE_BYTES)
        self._seen: set[tuple[int, int]] = set()
        self.races: list[Race] = []
        self.never_written: list[Unwritten] = []

    @staticmethod
    def _stored_pages(ops: Sequence[Op]) -> dict[int, int]:
        """Slot of every page that some STORE writes."""
        pages: set[int] = set()
        for op in ops:
            if isinstance(op, Store):
                for first, last in op.span().intervals():
                    pages.update(range(first // PAGE_BYTES, (last - 1) // PAGE_BYTES + 1))
        return {page: slot for slot, page in enumerate(sorted(pages))}

    def before(self, item: Decoded, op: Op) -> None:
        """Take the tokens and look at what the instruction is about to touch."""
        clock = self._clocks[item.unit]
        for queue in item.pops:
            token = self._tokens[queue].popleft()
            clock[:] = [max(a, b) for a, b in zip(clock, token, strict=True)]
        clock[EXECUTING.index(item.unit)] += 1
        accesses = op.accesses()
        written = self._machine.core.pads.written
        for memory, elements in accesses.reads:
            if memory in self._marks:
                self._scratchpad(item, memory, elements, write=False)
            blank = elements[~written[memory][elements]]
            if len(blank):
                self._unwritten(item, f"{memory.name.lower()} {_ranges(blank)}")
        for memory, elements in accesses.writes:
            if memory in self._marks:
                self._scratchpad(item, memory, elements, write=True)
        if accesses.load is not None:
            self._device(item, accesses.load, write=False)
            self._device_unwritten(item, accesses.load)
        if accesses.store is not None:
            self._device(item, accesses.store, write=True)

    def after(self, item: Decoded, op: Op) -> None:
        """Release the tokens; the instruction's results exist now."""
        written = self._machine.core.pads.written
        for memory, elements in op.accesses().writes:
            written[memory][elements] = True
        clock = tuple(self._clocks[item.unit])
        for queue in item.pushes:
            self._tokens[queue].append(clock)

    def _scratchpad(self, item: Decoded, memory: Memory, elements: Indices, *, write: bool) -> None:
        found = self._conflict(self._marks[memory], elements, item, write=write)
        if found is not None:
            bad, other, does = found
            where = f"{memory.name.lower()} {_ranges(elements[bad])}"
            self._race(where, other, does, item, write=write)

    def _conflict(
        self, marks: Marks, cells: Indices | slice, item: Decoded, *, write: bool
    ) -> tuple[npt.NDArray[np.bool_], Decoded, str] | None:
        """Which cells an unordered access of another unit touched, that access, and whether it reads or writes."""
        clock = self._clocks[item.unit]
        result = None
        for number, unit in enumerate(EXECUTING):
            if unit is item.unit:
                continue
            for does, table in (("writes", marks.writes), ("reads", marks.reads)):
                if does == "reads" and not write:
                    continue
                last = table[unit][cells]
                bad = last > clock[number]
                if result is None and bool(bad.any()):
                    result = bad, self._items[unit][int(last[bad][0]) - 1], does
        table = marks.writes if write else marks.reads
        table[item.unit][cells] = clock[EXECUTING.index(item.unit)]
        return result

    def _device(self, item: Decoded, span: Span, *, write: bool) -> None:
        for first, last in span.intervals():
            here = first
            while here < last:
                page, offset = divmod(here, PAGE_BYTES)
                end = min(last, (page + 1) * PAGE_BYTES)
                slot = self._pages.get(page)
                if slot is not None:
                    start = slot * PAGE_BYTES + offset
                    cells = slice(start, start + end - here)
                    found = self._conflict(self._dram, cells, item, write=write)
                    if found is not None:
                        bad, other, does = found
                        at = here + int(np.argmax(bad))
                        where = f"device memory from {at:#x} ({int(bad.sum())} bytes of its page)"
                        self._race(where, other, does, item, write=write)
                here = end

    def _device_unwritten(self, item: Decoded, span: Span) -> None:
        for first, last in span.intervals():
            at = self._machine.memory.first_unwritten(first, last - first)
            if at is not None:
                self._unwritten(item, f"device memory at {at:#x}")
                return

    def _race(self, where: str, other: Decoded, other_does: str, item: Decoded, *, write: bool) -> None:
        pair = (other.index, item.index)
        if pair in self._seen or len(self.races) >= KEEP:
            return
        self._seen.add(pair)
        does = "writes" if write else "reads"
        first, second = (other, other_does), (item, does)
        if other.index > item.index:
            first, second = second, first
        self.races.append(Race(where, *first, *second))

    def _unwritten(self, item: Decoded, where: str) -> None:
        if len(self.never_written) < KEEP:
            self.never_written.append(Unwritten(where, item))


def _ranges(elements: Indices) -> str:
    """Ascending elements as ranges: the first three, and how many there are."""
    cuts = np.flatnonzero(np.diff(elements) != 1) + 1
    runs = np.split(elements, cuts)
    texts = [f"{run[0]}..{run[-1]}" if len(run) > 1 else f"{run[0]}" for run in runs[:3]]
    more = f" and more ({len(elements)} elements)" if len(runs) > 3 else ""
    return ", ".join(texts) + more
