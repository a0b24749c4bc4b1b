# SPDX-License-Identifier: Apache-2.0
"""Trace events of the functional machine."""

from __future__ import annotations

import numpy as np

from openvta.sim.fsim.access import Accesses, Span
from openvta.sim.fsim.machine import Machine
from openvta.sim.fsim.op import Op
from openvta.sim.fsim.scratchpads import Memory
from openvta.sim.fsim.stream import Decoded
from openvta.sim.trace import Cells, TraceEvent, hash_cells


class Tracer:
    """Collects one event an instruction of a machine's runs (image 0, where several run in lockstep)."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._accesses = Accesses()
        self.events: list[TraceEvent] = []
        machine.observers.before.append(self._before)
        machine.observers.after.append(self._after)

    def start(self) -> None:
        """Forget the events of earlier runs."""
        self.events = []

    def _before(self, item: Decoded, op: Op) -> None:
        self._accesses = op.accesses()

    def _after(self, item: Decoded, op: Op) -> None:
        pads = self._machine.core.pads
        groups = [
            Cells(int(memory), elements, pads.raw(memory, elements)) for memory, elements in self._accesses.writes
        ]
        if self._accesses.store is not None:
            groups.append(self._stored(self._accesses.store))
        self.events.append(TraceEvent(item.unit, item.index, item.insn.opcode, hash_cells(groups)))

    def _stored(self, span: Span) -> Cells:
        """Device memory a STORE wrote, one cell a byte."""
        memory = self._machine.memory
        rows = [memory.read(span.address + row * span.pitch, span.row_bytes) for row in range(span.rows)]
        starts = np.array([span.address + row * span.pitch for row in range(span.rows)], np.uint64)
        addresses = np.add.outer(starts, np.arange(span.row_bytes, dtype=np.uint64)).reshape(-1)
        return Cells(int(Memory.DRAM), addresses, np.concatenate(rows).reshape(-1, 1))
