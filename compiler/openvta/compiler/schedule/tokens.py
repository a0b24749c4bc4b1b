# SPDX-License-Identifier: Apache-2.0
"""The token planner: from what steps read and write to the tokens that order the units.

Dependences are found by walking the steps in program order with, for every element of a shared memory, the last
instruction of each unit that wrote and read it. An instruction must come after every earlier one of another unit that
its accesses conflict with. A vector clock (how far each unit is known to be when an instruction starts) tells which of
these are already implied; each of the rest becomes one push and one pop. Load and store have no queue between them:
their order goes through a compute instruction that is already late enough, or through a compute no-op put in between.

Why the result is legal for every queue and token depth:

- Sources and targets of the tokens of one queue both rise, so the n-th pop takes the n-th push.
- Every token goes forward in program order. Fetch dispatches in program order, so the oldest instruction that is not
  retired has always been dispatched and its tokens have been pushed: some unit can always proceed, whatever queue is
  full. No deadlock.
- A queue holds at most ``depth`` tokens: the pop of token n - depth must be known to happen before push n. Where
  it is not, it is made a dependence of its own (or pushes are merged), and planning starts again with it.
- Every push has a pop, so all queues are empty at the end.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from openvta.compiler.errors import CompileError
from openvta.compiler.schedule.steps import Memory, Planned, Step
from openvta.spec.insn import Insn, make
from openvta.spec.isa import Opcode, Unit

Places = npt.NDArray[np.int32]
Clock = tuple[int, int, int]
Key = tuple[int, int]

_UNITS = (Unit.LOAD, Unit.COMPUTE, Unit.STORE)
_LOAD, _COMPUTE, _STORE = 0, 1, 2
_PUSH = {(0, 1): "push_next", (1, 0): "push_prev", (1, 2): "push_next", (2, 1): "push_prev"}
_POP = {(0, 1): "pop_prev", (1, 0): "pop_next", (1, 2): "pop_prev", (2, 1): "pop_next"}
_QUEUES = tuple(_PUSH)
_ROUNDS = 200

NOOP: Insn = make(Opcode.GEMM)
"""A compute instruction that only moves tokens (no loop counts)."""


@dataclass
class _Entry:
    """A planned instruction: ``key`` is (step number, 0 for a no-op put before it, 1 for the step itself)."""

    key: Key
    step: Step
    flags: set[str] = field(default_factory=set)


class _Pass:
    """One walk over the steps with some extra dependences."""

    def __init__(self, steps: Sequence[Step], sizes: dict[Memory, int], extra: dict[Key, list[Key]]) -> None:
        self.steps = steps
        self.extra = extra
        self.order: list[_Entry] = []
        self.units: tuple[list[_Entry], ...] = ([], [], [])
        self.clocks: tuple[list[Clock], ...] = ([], [], [])
        self.places: dict[Key, tuple[int, int]] = {}
        self.edges: dict[tuple[int, int], list[tuple[int, int]]] = {queue: [] for queue in _QUEUES}
        self.store_seen: list[int] = []
        self.load_seen: list[int] = []
        self._sizes = sizes
        self._written: dict[Memory, list[tuple[int, Places]]] = {memory: [] for memory in Memory}
        self._read: dict[Memory, list[tuple[int, Places]]] = {memory: [] for memory in Memory}

    def run(self) -> None:
        slots = {unit: k for k, unit in enumerate(_UNITS)}
        for number, step in enumerate(self.steps):
            unit = slots[step.unit]
            needs = self._conflicts(step, unit)
            self._add((number, 1), step, unit, needs)
            self._note(step, unit, len(self.units[unit]) - 1)

    def _conflicts(self, step: Step, unit: int) -> list[int]:
        """The last instruction of every other unit that touched what the step touches, unless both only read."""
        needs = [-1, -1, -1]
        for spans, tables in ((step.reads, (self._written,)), (step.writes, (self._written, self._read))):
            for span in spans:
                for table in tables:
                    for other, places in table[span.memory]:
                        if other != unit:
                            last = int(places[span.low : span.high].max(initial=-1))
                            if last > needs[other]:
                                needs[other] = last
        return needs

    def _note(self, step: Step, unit: int, place: int) -> None:
        for spans, table in ((step.reads, self._read), (step.writes, self._written)):
            for span in spans:
                for other, places in table[span.memory]:
                    if other == unit:
                        places[span.low : span.high] = place
                        break
                else:
                    fresh = np.full(self._sizes[span.memory], -1, np.int32)
                    fresh[span.low : span.high] = place
                    table[span.memory].append((unit, fresh))

    def _add(self, key: Key, step: Step, unit: int, needs: list[int]) -> int:
        """Append an instruction that must follow instruction ``needs[u]`` of each unit u; return its place."""
        for source in self.extra.get(key, ()):
            if source in self.places:
                other, place = self.places[source]
                needs[other] = max(needs[other], place)
        clock = self._base(unit)
        if unit != _COMPUTE:
            far, seen = (_STORE, self.store_seen) if unit == _LOAD else (_LOAD, self.load_seen)
            if needs[far] > clock[far]:
                carrier = bisect_left(seen, needs[far])
                if carrier == len(seen):
                    bridge = [-1, -1, -1]
                    bridge[far] = needs[far]
                    carrier = self._add((key[0], 0), Step(NOOP, step.layer), _COMPUTE, bridge)
                needs[_COMPUTE] = max(needs[_COMPUTE], carrier)
            needs[far] = -1
        entry = _Entry(key, step)
        place = len(self.units[unit])
        for other in (_LOAD, _STORE) if unit == _COMPUTE else (_COMPUTE,):
            source_place = needs[other]
            if source_place > clock[other]:
                self.units[other][source_place].flags.add(_PUSH[other, unit])
                entry.flags.add(_POP[other, unit])
                self.edges[other, unit].append((source_place, place))
                clock = _join(clock, self.clocks[other][source_place], other, source_place)
        self.units[unit].append(entry)
        self.order.append(entry)
        self.clocks[unit].append(clock)
        self.places[key] = (unit, place)
        if unit == _COMPUTE:
            self.store_seen.append(clock[_STORE])
            self.load_seen.append(clock[_LOAD])
        return place

    def _base(self, unit: int) -> Clock:
        if not self.clocks[unit]:
            return (-1, -1, -1)
        previous = list(self.clocks[unit][-1])
        previous[unit] = len(self.clocks[unit]) - 1
        return previous[0], previous[1], previous[2]

    def overflows(self, depth: int) -> dict[Key, list[Key]]:
        """Return the dependences (by target) that keep every queue within ``depth`` tokens; empty if it does."""
        position = {entry.key: k for k, entry in enumerate(self.order)}
        found: dict[Key, list[Key]] = {}
        for (source, target), edges in self.edges.items():
            for n in range(depth, len(edges)):
                push, pop = edges[n][0], edges[n - depth][1]
                if self.clocks[source][push][target] >= pop:
                    continue
                pusher, popper = self.units[source][push].key, self.units[target][pop].key
                if position[popper] < position[pusher]:
                    found.setdefault(pusher, []).append(popper)
                else:
                    found.setdefault(popper, []).append(pusher)
        return found


def _join(mine: Clock, other: Clock, unit: int, place: int) -> Clock:
    merged = [a if a > b else b for a, b in zip(mine, other, strict=True)]
    merged[unit] = max(merged[unit], place)
    return merged[0], merged[1], merged[2]


def plan_tokens(steps: Sequence[Step], sizes: dict[Memory, int], token_depth: int) -> tuple[Planned, ...]:
    """Return the steps in program order with tokens, and the no-ops that carry order between load and store.

    Args:
        steps: instructions in a legal sequential order.
        sizes: elements of each shared memory.
        token_depth: tokens a queue holds.

    Raises:
        CompileError: no plan within the token depth was found.
    """
    extra: dict[Key, list[Key]] = {}
    for _ in range(_ROUNDS):
        walk = _Pass(steps, sizes, extra)
        walk.run()
        more = walk.overflows(token_depth)
        if not more:
            return tuple(Planned(entry.step, tuple(sorted(entry.flags))) for entry in walk.order)
        for target, sources in more.items():
            extra.setdefault(target, []).extend(sources)
    raise CompileError(f"schedule: token_depth = {token_depth}: no token plan found in {_ROUNDS} rounds")
