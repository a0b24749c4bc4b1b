# SPDX-License-Identifier: Apache-2.0
"""Checking mode: what a stream relies on by luck.

Reported are unsynchronised accesses (races), reads of data nobody wrote, deadlocks, token overflow in any
interleaving, and tokens left over. Races come from the partial order that the units' own order and the tokens make,
not from the order that happened to run: one legal run finds them all as long as it gets to both instructions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from openvta.sim.describe import describe
from openvta.sim.errors import SimError
from openvta.sim.fsim.hazards import HazardChecker
from openvta.sim.fsim.machine import Machine, Outcome
from openvta.sim.fsim.schedule import (
    CONSUMERS,
    EXECUTING,
    PRODUCERS,
    QUEUES,
    Schedule,
    Stop,
    Waiting,
    fullest,
    play,
    round_robin,
    seeded,
)
from openvta.sim.fsim.stream import Decoded, Stream
from openvta.spec import Cause, Queue

MAX_FINDINGS = 20


class Kind(Enum):
    """What a finding is about."""

    RACE = "race"
    NEVER_WRITTEN = "read of never-written data"
    DEADLOCK = "deadlock"
    LEFTOVER_TOKEN = "leftover token"
    TOKEN_OVERFLOW = "token overflow"


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong: the kind, the instructions it is about (indices), and the whole message."""

    kind: Kind
    instructions: tuple[int, ...]
    message: str


@dataclass(frozen=True)
class CheckReport:
    """The outcome of the run, and what the checks found (at most :data:`MAX_FINDINGS`)."""

    outcome: Outcome
    findings: tuple[Finding, ...]


class CheckError(SimError):
    """The checks found something; ``report`` has the details."""

    def __init__(self, report: CheckReport) -> None:
        count = len(report.findings)
        lines = "\n".join(f"- {finding.kind.value}: {finding.message}" for finding in report.findings)
        super().__init__(f"checked run: {count} finding{'s' if count > 1 else ''}\n{lines}")
        self.report = report


def check_run(
    machine: Machine, address: int, count: int, bases: Mapping[str, int] | None = None, *, seed: int | None = None
) -> CheckReport:
    """:meth:`Machine.run` with every check on.

    Raises:
        LockstepError: images differ in micro-ops or weights.
    """
    data, missing = machine.fetch(address, count)
    if missing is not None:
        return CheckReport(Outcome(missing), ())
    return check_stream(machine, data, bases, seed=seed)


def check_stream(
    machine: Machine, data: bytes, bases: Mapping[str, int] | None = None, *, seed: int | None = None
) -> CheckReport:
    """:meth:`Machine.run_stream` with every check on."""
    stream = machine.compile(data).stream
    tokens = [machine.tokens[queue] for queue in QUEUES]
    schedule = play(stream, tokens, round_robin if seed is None else seeded(seed))
    namer = _Namer(stream)
    findings = _overflows(namer, tokens)
    findings += _stuck(namer, schedule, tokens)
    hazards = HazardChecker(machine, stream, tokens, bases or {})
    machine.observers.before.append(hazards.before)
    machine.observers.after.append(hazards.after)
    try:
        outcome = machine.run_stream(data, bases, seed=seed)
    finally:
        machine.observers.before.remove(hazards.before)
        machine.observers.after.remove(hazards.after)
    for race in hazards.races:
        text = (
            f"{race.where}: {namer.name(race.first)} {race.first_does} and {namer.name(race.second)} "
            f"{race.second_does}, and no chain of tokens orders them"
        )
        findings.append(Finding(Kind.RACE, (race.first.index, race.second.index), text))
    for read in hazards.never_written:
        text = f"{namer.name(read.item)} reads {read.where}, which nothing wrote"
        findings.append(Finding(Kind.NEVER_WRITTEN, (read.item.index,), text))
    return CheckReport(outcome, tuple(findings[:MAX_FINDINGS]))


class _Namer:
    """Instructions as text, and questions about a stream's tokens."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream

    def name(self, item: Decoded) -> str:
        """Index, unit and disassembly."""
        return f"instruction {item.index} ({item.unit.name.lower()}) [{describe(self.stream.config, item.word)}]"

    def short_pop(self, queue: Queue, initial: int) -> Decoded | None:
        """The first instruction that, in stream order, pops a token nothing before it pushed."""
        balance = initial
        for item in self.stream.items:
            if queue in item.pops:
                balance -= 1
                if balance < 0:
                    return item
            if queue in item.pushes:
                balance += 1
        return None

    def silent_before(self, queue: Queue, pop: Decoded) -> Decoded | None:
        """Of the instructions that could push for ``pop``, the last before it that does not push."""
        for item in reversed(self.stream.items[: pop.index]):
            if item.unit is PRODUCERS[queue] and queue not in item.pushes:
                return item
        return None

    def missing_pop(self, queue: Queue, initial: int) -> tuple[Decoded | None, Decoded | None]:
        """The push whose token is left over in stream order, and the instruction after it that should have popped."""
        balance = initial
        left: Decoded | None = None
        for item in self.stream.items:
            if queue in item.pops:
                balance -= 1
            if balance <= 0:
                left = None
            if queue in item.pushes:
                if balance <= 0:
                    left = item
                balance += 1
        after = left.index if left is not None else -1
        consumer = CONSUMERS[queue]
        silent = [
            item
            for item in self.stream.items
            if item.unit is consumer and item.index > after and queue not in item.pops
        ]
        pushes = [item for item in self.stream.items if queue in item.pushes]
        return left or (pushes[-1] if pushes else None), silent[0] if silent else None


def _overflows(namer: _Namer, tokens: list[int]) -> list[Finding]:
    """Pushes that can find their queue full in some interleaving."""
    stream = namer.stream
    found: dict[int, Finding] = {}
    for lazy in EXECUTING:
        schedule = fullest(stream, tokens, lazy)
        stop = schedule.stop
        if stop is None or stop.cause is not Cause.TOKEN_OVERFLOW or stop.index in found:
            continue
        done = set(schedule.order)
        behind = [item for item in stream.of(lazy) if item.index not in done]
        text = f"{namer.name(stream.items[stop.index])}: {stop.detail} (depth {stream.config.token_depth})"
        if behind:
            text += f", if the {lazy.name.lower()} unit is still at {namer.name(behind[0])}"
        found[stop.index] = Finding(Kind.TOKEN_OVERFLOW, (stop.index, *(item.index for item in behind[:1])), text)
    return list(found.values())


def _stuck(namer: _Namer, schedule: Schedule, tokens: list[int]) -> list[Finding]:
    stop = schedule.stop
    if stop is None or stop.cause is not Cause.WATCHDOG or not stop.waiting:
        return []
    if all(waiting.finish for waiting in stop.waiting):
        return _leftovers(namer, schedule, tokens)
    counts = ", ".join(f"{queue.name.lower()} {count}" for queue, count in zip(QUEUES, schedule.tokens, strict=True))
    parts: list[str] = []
    involved: list[int] = []
    done = set(schedule.order)
    for waiting in stop.waiting:
        involved.append(waiting.item.index)
        parts.append(_wait_text(namer, waiting, stop, done, involved))
    parts += _suspects(namer, tokens, involved)
    text = f"no unit can go on; tokens: {counts}; " + "; ".join(parts)
    return [Finding(Kind.DEADLOCK, tuple(dict.fromkeys(involved)), text)]


def _wait_text(namer: _Namer, waiting: Waiting, stop: Stop, done: set[int], involved: list[int]) -> str:
    text = f"{namer.name(waiting.item)} waits for "
    if waiting.finish:
        return text + "units, queues and tokens to become empty"
    reasons = []
    for queue in waiting.queues:
        reason = f"a token of {queue.name.lower()}"
        producer = PRODUCERS[queue]
        left = [
            item
            for item in namer.stream.of(producer)
            if item.index not in done and queue in item.pushes and item.index != waiting.item.index
        ]
        blocked = [other.item for other in stop.waiting if other.item.unit is producer]
        if left:
            involved.append(left[0].index)
            reason += f", which {namer.name(left[0])} would push"
            if blocked and blocked[0].index != left[0].index:
                reason += f" but stands behind {namer.name(blocked[0])}"
            elif not blocked:
                reason += " but it cannot be dispatched: a queue before it is full"
        else:
            reason += f", and no {producer.name.lower()} instruction left pushes one"
        reasons.append(reason)
    return text + " and ".join(reasons)


def _suspects(namer: _Namer, tokens: list[int], involved: list[int]) -> list[str]:
    """Instructions that should have pushed, as far as stream order tells: one for every queue that runs short."""
    found = []
    for queue in QUEUES:
        pop = namer.short_pop(queue, tokens[queue])
        if pop is None:
            continue
        silent = namer.silent_before(queue, pop)
        if silent is not None:
            involved += [silent.index, pop.index]
            found.append(
                f"in stream order {namer.name(pop)} pops a token of {queue.name.lower()} nothing before it pushed: "
                f"{namer.name(silent)} does not push and probably should"
            )
    return found


def _leftovers(namer: _Namer, schedule: Schedule, tokens: list[int]) -> list[Finding]:
    found = []
    for queue, count in zip(QUEUES, schedule.leftover, strict=True):
        if not count:
            continue
        text = f"{count} token{'s' if count > 1 else ''} of {queue.name.lower()} left when FINISH runs"
        push, pop = namer.missing_pop(queue, tokens[queue])
        involved = [item.index for item in (push, pop) if item is not None]
        if push is not None:
            text += f"; {namer.name(push)} pushes"
        if pop is not None:
            text += f"; {namer.name(pop)} does not pop and probably should"
        found.append(Finding(Kind.LEFTOVER_TOKEN, tuple(involved), text))
    return found
