# SPDX-License-Identifier: Apache-2.0
"""The first divergence of two traces, unit by unit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

from openvta.sim.describe import describe
from openvta.sim.trace import Trace, TraceError, TraceEvent
from openvta.spec import Unit

UNITS = (Unit.LOAD, Unit.COMPUTE, Unit.STORE)


@dataclass(frozen=True)
class Divergence:
    """Where a unit's events part: the position in its own order, both events (None: one ended), and the reason."""

    unit: Unit
    position: int
    first: TraceEvent | None
    second: TraceEvent | None
    text: str


def _difference(a: TraceEvent | None, b: TraceEvent | None) -> str | None:
    if a is None or b is None:
        return "has no more events" if a is not b else None
    if a.index != b.index:
        return f"instruction {a.index} against instruction {b.index}"
    if a.opcode is not b.opcode:
        return f"opcode {a.opcode.name} against {b.opcode.name}"
    if a.hash is not None and b.hash is not None and a.hash != b.hash:
        return f"wrote other values (hash {a.hash} against {b.hash})"
    return None


def _where(event: TraceEvent | None) -> str:
    return "" if event is None or event.cycle is None else f" at cycle {event.cycle}"


def diff_traces(first: Trace, second: Trace) -> list[Divergence]:
    """The first divergence of every unit that has one, in unit order; empty where the traces agree.

    Raises:
        TraceError: they are of different streams.
    """
    if first.program != second.program:
        raise TraceError(
            f"traces of different streams: {first.backend} ran {len(first.program)} instructions, "
            f"{second.backend} {len(second.program)}, and their words differ"
        )
    found = []
    for unit in UNITS:
        for position, (a, b) in enumerate(zip_longest(first.of(unit), second.of(unit))):
            reason = _difference(a, b)
            if reason is None:
                continue
            event = a or b
            if event is None:
                continue
            ended = first.backend if a is None else second.backend
            what = f"{ended} {reason}; the other goes on with" if a is None or b is None else f"{reason}:"
            text = (
                f"{unit.name.lower()} unit, event {position}: {what} instruction {event.index} "
                f"[{describe(first.config, first.program[event.index])}]"
                f" ({first.backend}{_where(a)}, {second.backend}{_where(b)})"
            )
            found.append(Divergence(unit, position, a, b, text))
            break
    return found


def format_divergences(divergences: Sequence[Divergence]) -> str:
    """Divergences as lines of text."""
    return "\n".join(divergence.text for divergence in divergences) or "no divergence"
