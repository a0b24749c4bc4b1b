# SPDX-License-Identifier: Apache-2.0
"""Traces that every backend shares: one event an instruction retired, per unit, and their JSON-lines form.

Only the order inside a unit means something. The hash of an event covers the final value of every cell the instruction
wrote, whatever the order or number of writes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from openvta.sim.errors import SimError
from openvta.spec import HardwareConfig, Opcode, Unit, hash_text

HASH_NAME = "cells-sha256-64"
"""Name of the event hash, in the head of every trace."""
TRACE_VERSION = 1


class TraceError(SimError):
    """A trace file that is damaged or of another kind."""


@dataclass(frozen=True)
class Cells:
    """Cells of one memory (a memory id, or 15 for device memory).

    ``addresses``: integers ``[n]``, element indices of a scratchpad or byte addresses; ``values``: what they hold at
    the end, uint8 ``[n, bytes]`` as it lies in device memory.
    """

    memory: int
    addresses: npt.NDArray[np.int64] | npt.NDArray[np.uint64]
    values: npt.NDArray[np.uint8]


def hash_cells(groups: Iterable[Cells]) -> str:
    """The event hash: 16 hex digits of SHA-256 over the cells sorted by (memory, address).

    A cell enters as memory (1 byte), address (8 bytes), number of value bytes (4 bytes), all little endian, and the
    value. A cell given twice counts once, with the value given last. No cells hash like the empty string.
    """
    cells: dict[tuple[int, int], bytes] = {}
    for group in groups:
        for address, value in zip(group.addresses.tolist(), group.values, strict=True):
            cells[group.memory, address] = value.tobytes()
    digest = hashlib.sha256()
    for memory, address in sorted(cells):
        value = cells[memory, address]
        digest.update(memory.to_bytes(1, "little"))
        digest.update((address & (1 << 64) - 1).to_bytes(8, "little"))
        digest.update(len(value).to_bytes(4, "little"))
        digest.update(value)
    return digest.hexdigest()[:16]


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
