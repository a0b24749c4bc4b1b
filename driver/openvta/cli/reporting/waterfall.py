# SPDX-License-Identifier: Apache-2.0
"""From 100 % of peak down to what was reached: every cycle of a run or a layer has one reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from openvta.cli.reporting import ReportError

Record = Mapping[str, Any]

STEPS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("padding", "micro-ops on empty lanes, and those that clear acc", ()),
    ("fill and drain", "before the first micro-op, after the last", ("fill", "drain")),
    ("memory", "GEMM waits for loads", ("load",)),
    ("tokens", "GEMM waits for stores", ("store",)),
    ("requantization", "not hidden behind GEMM", ("requant",)),
    ("constants", "loads of micro-ops and parameters", ("constants",)),
    ("ALU", "vector operations", ("alu",)),
    ("other", "dispatch and pipelines", ("other",)),
)
"""What takes cycles away: name, meaning, and the stalls of a layer it sums. Padding is not a stall."""


@dataclass(frozen=True)
class Step:
    """One loss: its cycles, and the share of peak that is left after it."""

    name: str
    meaning: str
    cycles: int
    left: float


@dataclass(frozen=True)
class Waterfall:
    """``useful`` of ``cycles`` cycles did multiply-accumulates of the model; ``steps`` are the others by reason."""

    cycles: int
    useful: float
    steps: tuple[Step, ...]

    @property
    def reached(self) -> float:
        """Share of peak."""
        return self.useful / self.cycles if self.cycles else 0.0


def waterfall(layers: Sequence[Record], macs_per_cycle: int) -> Waterfall:
    """Return the waterfall of some layers of a record.

    Raises:
        ReportError: cycles that are not accounted for: the record is damaged.
    """
    cycles = sum(layer["end"] - layer["start"] for layer in layers)
    useful = sum(layer["macs"] for layer in layers) / macs_per_cycle
    left = float(cycles)
    steps = []
    for name, meaning, reasons in STEPS:
        lost = sum(layer["stalls"].get(reason, 0) for layer in layers for reason in reasons)
        if name == "padding":
            lost = round(sum(layer["uops"] for layer in layers) - useful)
        left -= lost
        steps.append(Step(name, meaning, lost, left / cycles if cycles else 0.0))
    if abs(left - useful) > 1:
        raise ReportError(f"run record: {left - useful:.0f} of {cycles} cycles have no reason: the file is damaged")
    return Waterfall(cycles, useful, tuple(steps))


def unit_counters(record: Record) -> list[tuple[str, str, int, float]]:
    """(unit, what, cycles, share of the run) of every counter that counts cycles, in the record's order."""
    total = record["counters"].get("cycles", 0)
    found = []
    for name, value in record["counters"].items():
        unit, _, what = name.partition("_")
        counts_cycles = what and not what.endswith(("bytes", "uops", "vectors", "retired", "writes"))
        if counts_cycles and total:
            found.append((unit, what.replace("_", " "), value, value / total))
    return found
