# SPDX-License-Identifier: Apache-2.0
"""Traces that every backend shares: one event an instruction retired, per unit, and their JSON-lines form.

Only the order inside a unit means something. The hash of an event covers the final value of every cell the instruction
wrote, whatever the order or number of writes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from openvta.sim.errors import SimError
from openvta.spec import HardwareConfig, Opcode, Unit, hash_text
from openvta.spec.cellhash import HASH_NAME, cells_hash

TRACE_VERSION = 2


class TraceError(SimError):
    """A trace file that is damaged or of another kind."""


@dataclass(frozen=True)
class Cells:
    """Cells of one memory (a memory id, or 15 for device memory, whose cells are bytes).

    ``addresses``: integers ``[n]``, element indices of a scratchpad or byte addresses; ``values``: what they hold at
    the end, uint8 ``[n, bytes]`` as it lies in device memory, always as many bytes in one memory.
    """

    memory: int
    addresses: npt.NDArray[np.int64] | npt.NDArray[np.uint64]
    values: npt.NDArray[np.uint8]


def hash_cells(groups: Iterable[Cells]) -> str:
    """The event hash (:mod:`openvta.spec.cellhash`) as 16 hex digits.

    A cell given twice counts once, with the value given last.
    """
    by_memory: dict[int, list[Cells]] = {}
    for group in groups:
        by_memory.setdefault(group.memory, []).append(group)
    total = 0
    for memory, parts in by_memory.items():
        addresses = np.concatenate([part.addresses.astype(np.uint64) for part in parts])
        values = np.concatenate([part.values for part in parts])
        _, latest = np.unique(addresses[::-1], return_index=True)
        if len(latest) != len(addresses):
            latest = len(addresses) - 1 - latest
            addresses, values = addresses[latest], values[latest]
        total += cells_hash(memory, addresses, values)
    return f"{total & (1 << 64) - 1:016x}"


@dataclass(frozen=True)
class TraceEvent:
    """One instruction retired: its unit, its index in the stream, its opcode, the hash of what it wrote, and when."""

    unit: Unit
    index: int
    opcode: Opcode
    hash: str | None = None
    cycle: int | None = None


@dataclass(frozen=True)
class Trace:
    """Events of one run, in any order that keeps each unit's own.

    ``program`` is the stream, so that events can be shown disassembled.
    """

    backend: str
    config: HardwareConfig
    program: tuple[int, ...]
    events: tuple[TraceEvent, ...]

    def of(self, unit: Unit) -> list[TraceEvent]:
        """A unit's events, in order."""
        return [event for event in self.events if event.unit is unit]


def write_trace(path: Path, trace: Trace) -> None:
    """Write a trace as JSON lines: a head, then an event a line."""
    with path.open("w", encoding="utf-8") as file:
        for line in _lines(trace):
            file.write(json.dumps(line, separators=(",", ":")) + "\n")


def _lines(trace: Trace) -> Iterator[dict[str, object]]:
    yield {
        "trace": TRACE_VERSION,
        "backend": trace.backend,
        "config": trace.config.knobs(),
        "name": trace.config.name,
        "config_hash": hash_text(trace.config),
        "hash": HASH_NAME,
        "program": [f"{word:032x}" for word in trace.program],
    }
    for event in trace.events:
        line: dict[str, object] = {
            "unit": event.unit.name,
            "index": event.index,
            "opcode": event.opcode.name,
        }
        if event.hash is not None:
            line["hash"] = event.hash
        if event.cycle is not None:
            line["cycle"] = event.cycle
        yield line


def read_trace(path: Path) -> Trace:
    """Read what :func:`write_trace` wrote.

    Raises:
        TraceError: the file is damaged, of another version or hash; the message names the line.
    """
    from openvta.spec import config_from_mapping

    lines = path.read_text("utf-8").splitlines()
    line_number = 1
    try:
        head = json.loads(lines[0]) if lines else {}
        if head.get("trace") != TRACE_VERSION or head.get("hash") != HASH_NAME:
            raise TraceError(f"{path}: not a trace of version {TRACE_VERSION} with hash {HASH_NAME}; record it again")
        config = config_from_mapping(head["config"], name=head["name"])
        program = tuple(int(word, 16) for word in head["program"])
        events = []
        for line_number, line in enumerate(lines[1:], 2):  # noqa: B007 - for the message
            value = json.loads(line)
            events.append(
                TraceEvent(
                    Unit[value["unit"]],
                    int(value["index"]),
                    Opcode[value["opcode"]],
                    value.get("hash"),
                    value.get("cycle"),
                )
            )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise TraceError(f"{path}: line {line_number}: damaged ({error}); record it again") from error
    return Trace(str(head["backend"]), config, program, tuple(events))
