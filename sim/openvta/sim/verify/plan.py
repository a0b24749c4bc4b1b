# SPDX-License-Identifier: Apache-2.0
"""Tokens for random programs: enough that no two units race, few enough that units overlap, never a deadlock.

Every token goes forward in program order, so the oldest instruction that has not retired can always go on. Where a token
would find its queue full, the push is put where its unit knows that the one that makes room was taken.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from openvta.spec import HardwareConfig, Insn, MemId, Opcode, Program, Queue, Unit, make
from openvta.spec.isa import unit_of

Cells = npt.NDArray[np.int64]
UNITS = (Unit.LOAD, Unit.COMPUTE, Unit.STORE)
SPACES = ("inp", "wgt", "out", "memory")
"""Where units meet: three scratchpads (elements), and the device memory that STORE writes (bytes of its area)."""
FLAGS: dict[tuple[Unit, Unit], tuple[Queue, str, str]] = {
    (Unit.LOAD, Unit.COMPUTE): (Queue.LOAD_TO_COMPUTE, "push_next", "pop_prev"),
    (Unit.COMPUTE, Unit.LOAD): (Queue.COMPUTE_TO_LOAD, "push_prev", "pop_next"),
    (Unit.COMPUTE, Unit.STORE): (Queue.COMPUTE_TO_STORE, "push_next", "pop_prev"),
    (Unit.STORE, Unit.COMPUTE): (Queue.STORE_TO_COMPUTE, "push_prev", "pop_next"),
}


class PlanFull(Exception):
    """No push can be placed: the queue would be full. The program has to end here."""


@dataclass(frozen=True)
class Draft:
    """An instruction without tokens, the cells of shared spaces it reads and writes, and what it stands for.

    ``bins``: names of functional bins it fills (:mod:`openvta.spec.bins`).
    """

    opcode: Opcode
    values: Mapping[str, int] = field(default_factory=dict)
    reads: Mapping[str, Cells] = field(default_factory=dict)
    writes: Mapping[str, Cells] = field(default_factory=dict)
    bins: tuple[str, ...] = ()

    @property
    def unit(self) -> Unit:
        """The unit that executes it."""
        return unit_of(self.opcode, self.values.get("memory_id", 0))


@dataclass
class _Step:
    draft: Draft
    flags: dict[str, int]
    known: list[int]


class Planner:
    """Builds a program instruction by instruction.

    Args:
        config: for token depths and sizes.
        area: bytes of the area that STORE writes.
        rng: decides which of the possible pushes is used, and adds tokens nobody needs.
    """

    def __init__(self, config: HardwareConfig, area: int, rng: np.random.Generator) -> None:
        self._config = config
        self._rng = rng
        self.steps: list[_Step] = []
        self._of: dict[Unit, list[int]] = {unit: [] for unit in UNITS}
        self._known = {unit: [-1] * 4 for unit in UNITS}
        self._pairs: dict[Queue, list[tuple[int, int]]] = {queue: [] for queue in Queue}
        sizes = {"inp": config.inp_depth, "wgt": config.wgt_depth, "out": config.acc_depth, "memory": area}
        self._last = {
            (space, unit, kind): np.full(sizes[space], -1, np.int64)
            for space, unit, kind in (
                ("inp", Unit.LOAD, "write"), ("inp", Unit.COMPUTE, "read"),
                ("wgt", Unit.LOAD, "write"), ("wgt", Unit.COMPUTE, "read"),
                ("out", Unit.COMPUTE, "write"), ("out", Unit.STORE, "read"),
                ("memory", Unit.STORE, "write"), ("memory", Unit.LOAD, "read"), ("memory", Unit.COMPUTE, "read"),
            )
        }  # fmt: skip

    def add(self, draft: Draft, *, extra: float = 0.0) -> None:
        """Append an instruction with the tokens it needs; with probability ``extra`` one more.

        Raises:
            PlanFull: see there; the steps so far are still a legal program.
        """
        needs = self._needs(draft)
        unit = draft.unit
        if self._rng.random() < extra:
            other = Unit.COMPUTE if unit is not Unit.COMPUTE else (Unit.LOAD, Unit.STORE)[int(self._rng.integers(2))]
            if self._of[other]:
                needs[other] = max(needs.get(other, -1), self._of[other][int(self._rng.integers(len(self._of[other])))])
        for other, position in sorted(needs.items()):
            if {unit, other} == {Unit.LOAD, Unit.STORE} and self._known[unit][other] < position:
                self._append(Draft(Opcode.LOAD, {"memory_id": int(MemId.UOP)}), {other: position})
                needs[Unit.COMPUTE] = len(self.steps) - 1
        self._append(draft, needs)
        here = len(self.steps) - 1
        for kind, cells in (("read", draft.reads), ("write", draft.writes)):
            for space, where in cells.items():
                last = self._last.get((space, unit, kind))
                if last is not None:
                    last[where] = here

    def _needs(self, draft: Draft) -> dict[Unit, int]:
        needs: dict[Unit, int] = {}
        for (space, unit, kind), last in self._last.items():
            if unit is draft.unit:
                continue
            touched = [draft.writes.get(space)] if kind == "read" else [draft.writes.get(space), draft.reads.get(space)]
            for cells in touched:
                if cells is not None and cells.size:
                    needs[unit] = max(needs.get(unit, -1), int(last[cells].max()))
        return needs

    def _append(self, draft: Draft, needs: Mapping[Unit, int]) -> None:
        unit, here = draft.unit, len(self.steps)
        chosen = []
        for other, position in needs.items():
            if abs(other - unit) == 1 and self._known[unit][other] < position:
                chosen.append((other, self._push(other, unit, position)))
        step = _Step(draft, {}, list(self._known[unit]))
        for other, push in chosen:
            queue, push_flag, pop_flag = FLAGS[other, unit]
            self.steps[push].flags[push_flag] = 1
            step.flags[pop_flag] = 1
            self._pairs[queue].append((push, here))
            step.known[other] = max(step.known[other], push)
            for third in UNITS:
                step.known[third] = max(step.known[third], self.steps[push].known[third])
        self._known[unit] = list(step.known)
        self.steps.append(step)
        self._of[unit].append(here)

    def _push(self, source: Unit, target: Unit, position: int) -> int:
        queue, push_flag, _ = FLAGS[source, target]
        pairs = self._pairs[queue]
        first = max(position, pairs[-1][0] + 1 if pairs else 0)
        room = pairs[len(pairs) - self._config.token_depth][1] if len(pairs) >= self._config.token_depth else -1
        possible = [
            at
            for at in self._of[source]
            if at >= first and push_flag not in self.steps[at].flags and self.steps[at].known[target] >= room
        ]
        if not possible:
            raise PlanFull(f"{queue.name.lower()}: {len(pairs)} tokens so far")
        return possible[int(self._rng.integers(len(possible)))]

    def program(self) -> Program:
        """The steps so far and FINISH, assembled."""
        return Program.assemble(self._config, [*self.instructions(), make(Opcode.FINISH)])

    def instructions(self) -> list[Insn]:
        """The steps so far."""
        return [make(step.draft.opcode, **{**step.draft.values, **step.flags}) for step in self.steps]
