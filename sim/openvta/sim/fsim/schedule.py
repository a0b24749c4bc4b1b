# SPDX-License-Identifier: Apache-2.0
"""Token play without data: a legal order of execution, or why there is none.

Streams have no branches, so which instructions can run does not depend on the order chosen; the order only decides
how full the token queues get.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from openvta.sim.fsim.stream import Decoded, Stream
from openvta.spec import Cause, Queue, Unit

EXECUTING = (Unit.LOAD, Unit.COMPUTE, Unit.STORE)
QUEUES = tuple(Queue)

CONSUMERS: dict[Queue, Unit] = {
    Queue.LOAD_TO_COMPUTE: Unit.COMPUTE,
    Queue.COMPUTE_TO_LOAD: Unit.LOAD,
    Queue.COMPUTE_TO_STORE: Unit.STORE,
    Queue.STORE_TO_COMPUTE: Unit.COMPUTE,
}
PRODUCERS: dict[Queue, Unit] = {
    Queue.LOAD_TO_COMPUTE: Unit.LOAD,
    Queue.COMPUTE_TO_LOAD: Unit.COMPUTE,
    Queue.COMPUTE_TO_STORE: Unit.COMPUTE,
    Queue.STORE_TO_COMPUTE: Unit.STORE,
}


@dataclass(frozen=True)
class Waiting:
    """A unit whose next instruction cannot start: the empty queues it needs, or FINISH waiting for quiet."""

    item: Decoded
    queues: tuple[Queue, ...]
    finish: bool = False


@dataclass(frozen=True)
class Stop:
    """Why the play ended early: ``cause`` TOKEN_OVERFLOW, WATCHDOG (deadlock) or a decode fault at ``index``."""

    cause: Cause
    unit: Unit
    index: int
    detail: str
    waiting: tuple[Waiting, ...] = ()


@dataclass(frozen=True)
class Schedule:
    """``order``: instruction indices as they complete; ``tokens``: queue counts at the end; ``stop``: None if finished.

    Where a push overflows, the pushing instruction is the last of ``order`` although it does not retire.
    ``peak``: the most tokens each queue held.
    """

    order: tuple[int, ...]
    tokens: tuple[int, ...]
    peak: tuple[int, ...]
    stop: Stop | None
    leftover: tuple[int, ...]


Chooser = Callable[[Sequence[Unit]], Sequence[Unit]]
"""Given the units, the order in which to try them this round; fetch is one of them."""


def round_robin(units: Sequence[Unit]) -> Sequence[Unit]:
    """Everyone once, in pipeline order."""
    return units


def seeded(seed: int) -> Chooser:
    """One unit at a time, drawn at random."""
    source = random.Random(seed)

    def choose(units: Sequence[Unit]) -> Sequence[Unit]:
        return source.sample(list(units), len(units))[:1]

    return choose


class Player:
    """State of the play: what fetch dispatched, what every unit did, how many tokens every queue holds.

    ``places``: instructions that may wait in front of a unit; by default, what the configuration promises.
    """

    def __init__(self, stream: Stream, tokens: Sequence[int], places: Mapping[Unit, int] | None = None) -> None:
        self.stream = stream
        self.places = places or dict.fromkeys(EXECUTING, stream.config.queue_depth)
        self.tokens = list(tokens)
        self.peak = list(tokens)
        self.next = 0
        self.queued: dict[Unit, deque[Decoded]] = {unit: deque() for unit in EXECUTING}
        self.order: list[int] = []
        self.stop: Stop | None = None
        self.finished = False

    def step(self, unit: Unit) -> bool:
        """Let a unit do one thing; whether it could."""
        return self._fetch() if unit is Unit.FETCH else self._execute(unit)

    def _fetch(self) -> bool:
        stream = self.stream
        if self.next == len(stream.items):
            if stream.fault is None:
                return False
            self.stop = Stop(stream.fault.cause, Unit.FETCH, self.next, stream.fault.detail)
            return True
        item = stream.items[self.next]
        queue = self.queued[item.unit]
        if len(queue) >= self.places[item.unit]:
            return False
        queue.append(item)
        self.next += 1
        return True

    def _execute(self, unit: Unit) -> bool:
        queue = self.queued[unit]
        if not queue:
            return False
        item = queue[0]
        tokens = self.tokens
        if any(tokens[pop] == 0 for pop in item.pops) or (item.is_finish and not self._quiet(item)):
            return False
        queue.popleft()
        for pop in item.pops:
            tokens[pop] -= 1
        self.order.append(item.index)
        for push in item.pushes:
            if tokens[push] >= self.stream.config.token_depth:
                self.stop = Stop(
                    Cause.TOKEN_OVERFLOW,
                    unit,
                    item.index,
                    f"push into {push.name.lower()}, which already holds {tokens[push]} tokens",
                )
                return True
            tokens[push] += 1
            self.peak[push] = max(self.peak[push], tokens[push])
        self.finished = item.is_finish
        return True

    def _quiet(self, finish: Decoded) -> bool:
        """Whether nothing but FINISH itself is left."""
        return not (self.queued[Unit.LOAD] or self.queued[Unit.STORE] or any(self._beyond(finish)))

    def _beyond(self, finish: Decoded) -> tuple[int, ...]:
        """Tokens left when the pops of FINISH are taken off."""
        return tuple(self.tokens[queue] - (queue in finish.pops) for queue in QUEUES)

    def waiting(self) -> tuple[Waiting, ...]:
        """Every unit whose next instruction cannot start, in pipeline order."""
        found = []
        for unit in EXECUTING:
            if self.queued[unit]:
                item = self.queued[unit][0]
                empty = tuple(pop for pop in item.pops if self.tokens[pop] == 0)
                found.append(Waiting(item, empty, finish=item.is_finish and not empty))
        return tuple(found)

    def schedule(self) -> Schedule:
        """What happened; a play that can go no further is a deadlock."""
        if not self.finished and self.stop is None:
            waiting = self.waiting()
            if waiting:
                first = next((unit for unit in waiting if unit.queues), waiting[0])
                self.stop = Stop(Cause.WATCHDOG, first.item.unit, first.item.index, self._explain(waiting), waiting)
            else:
                self.stop = Stop(Cause.FINISH_ORDER, Unit.FETCH, 0, "the stream has no instruction", ())
        leftover = tuple(self.tokens)
        if self.stop is not None and self.stop.waiting and self.stop.waiting[-1].finish:
            leftover = self._beyond(self.stop.waiting[-1].item)
        return Schedule(tuple(self.order), tuple(self.tokens), tuple(self.peak), self.stop, leftover)

    def _explain(self, waiting: tuple[Waiting, ...]) -> str:
        counts = ", ".join(f"{queue.name.lower()} {self.tokens[queue]}" for queue in QUEUES)
        units = "; ".join(
            f"{item.item.unit.name.lower()} waits at instruction {item.item.index} for "
            + (" and ".join(queue.name.lower() for queue in item.queues) or "units, queues and tokens to become empty")
            for item in waiting
        )
        return f"no unit can go on: {units}; tokens: {counts}"


def play(
    stream: Stream, tokens: Sequence[int], choose: Chooser = round_robin, *, places: Mapping[Unit, int] | None = None
) -> Schedule:
    """Run the tokens of a stream until it finishes, stops or can go no further; ``places`` as in :class:`Player`."""
    player = Player(stream, tokens, places)
    units = (Unit.FETCH, *EXECUTING)
    while not player.finished and player.stop is None:
        moved = False
        for unit in choose(units):
            moved |= player.step(unit)
            if player.finished or player.stop is not None:
                break
        if not moved and not any(player.step(unit) for unit in units):
            break
    return player.schedule()


def fullest(stream: Stream, tokens: Sequence[int], lazy: Unit) -> Schedule:
    """The play in which one unit moves only when nothing else can: its incoming queues get as full as they ever can."""
    player = Player(stream, tokens)
    eager = [unit for unit in (Unit.FETCH, *EXECUTING) if unit is not lazy]
    while not player.finished and player.stop is None:
        moved = False
        for unit in eager:
            while player.stop is None and not player.finished and player.step(unit):
                moved = True
        if not moved and (player.finished or player.stop is not None or not player.step(lazy)):
            break
    return player.schedule()
