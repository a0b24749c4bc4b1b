# SPDX-License-Identifier: Apache-2.0
"""What one instruction reads and writes: the ground of race checks, never-written checks and traces."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from openvta.sim.fsim.loops import Indices
from openvta.sim.fsim.scratchpads import Memory
from openvta.spec import Insn


@dataclass(frozen=True)
class Span:
    """Rows of device memory: ``row_bytes`` at ``address + row * pitch``, row 0 .. rows - 1."""

    address: int
    rows: int
    row_bytes: int
    pitch: int

    def intervals(self) -> list[tuple[int, int]]:
        """(first, last + 1) of every run of consecutive bytes."""
        if self.rows == 1 or self.pitch == self.row_bytes:
            return [(self.address, self.address + (self.rows - 1) * self.pitch + self.row_bytes)]
        starts = (self.address + row * self.pitch for row in range(self.rows))
        return [(start, start + self.row_bytes) for start in starts]


@dataclass(frozen=True)
class Accesses:
    """Scratchpad elements (each once, ascending) and device memory an instruction touches.

    ``reads`` holds only elements whose value from before the instruction matters.
    """

    reads: tuple[tuple[Memory, Indices], ...] = ()
    writes: tuple[tuple[Memory, Indices], ...] = ()
    load: Span | None = None
    store: Span | None = None


NOTHING = Accesses()


def merged(parts: list[Accesses]) -> Accesses:
    """The accesses of instruction pieces that run one after the other."""
    if len(parts) == 1:
        return parts[0]
    written: dict[Memory, Indices] = {}
    read: dict[Memory, Indices] = {}
    for part in parts:
        for memory, elements in part.reads:
            fresh = np.setdiff1d(elements, written[memory]) if memory in written else elements
            read[memory] = np.union1d(read[memory], fresh) if memory in read else fresh
        for memory, elements in part.writes:
            written[memory] = np.union1d(written[memory], elements) if memory in written else elements
    return Accesses(tuple(read.items()), tuple(written.items()))


def with_uops(insn: Insn, accesses: Accesses) -> Accesses:
    """The accesses of a GEMM or ALU instruction, its micro-ops included."""
    uops = np.arange(insn["uop_begin"], insn["uop_end"], dtype=np.int64)
    return Accesses(((Memory.UOP, uops), *accesses.reads), accesses.writes)
