# SPDX-License-Identifier: Apache-2.0
"""A timeline in the trace-event format, which Perfetto and chrome://tracing open. One cycle is shown as one microsecond.

Only complete slices are used, and on every track they nest: layers on the array's track hold its GEMM instructions, the
other tracks hold one instruction after the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

TRACKS = {"gemm": (1, "layers and GEMM"), "compute": (2, "compute: other"), "load": (3, "load"), "store": (4, "store")}


def trace_events(records: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the trace of some runs by name, a process each, ready for JSON."""
    events: list[dict[str, Any]] = []
    for process, (run, record) in enumerate(records.items(), 1):
        events.append({"ph": "M", "pid": process, "name": "process_name", "args": {"name": run}})
        for track, label in TRACKS.values():
            events.append({"ph": "M", "pid": process, "tid": track, "name": "thread_name", "args": {"name": label}})
        for layer in record["layers"]:
            cycles = layer["end"] - layer["start"]
            stalls = {reason: count for reason, count in layer["stalls"].items() if count}
            details = {"micro-ops": layer["uops"], "bytes": layer["bytes"], **stalls}
            if cycles:
                events.append(_slice(process, 1, layer["name"], layer["start"], cycles, details))
        for name, label, start, cycles in record["slices"]:
            events.append(_slice(process, TRACKS[name][0], label, start, cycles))
    return {"traceEvents": events, "displayTimeUnit": "ns"}


def _slice(
    process: int, track: int, name: str, start: int, cycles: int, details: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    event: dict[str, Any] = {"ph": "X", "pid": process, "tid": track, "name": name, "ts": start, "dur": cycles}
    return event | ({"args": dict(details)} if details else {})


def nesting_fault(trace: Mapping[str, Any]) -> str | None:
    """Return the first pair of slices on a track that overlap without one holding the other, or None."""
    tracks: dict[tuple[int, int], list[tuple[int, int, str]]] = {}
    for event in trace["traceEvents"]:
        if event["ph"] == "X":
            tracks.setdefault((event["pid"], event["tid"]), []).append((event["ts"], -event["dur"], event["name"]))
    for place, found in tracks.items():
        stack: list[tuple[int, str]] = []
        for start, minus, name in sorted(found):
            while stack and stack[-1][0] <= start:
                stack.pop()
            if stack and start - minus > stack[-1][0]:
                return f"track {place}: '{name}' from {start} to {start - minus} leaves '{stack[-1][1]}'"
            stack.append((start - minus, name))
    return None
