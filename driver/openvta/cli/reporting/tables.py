# SPDX-License-Identifier: Apache-2.0
"""The report in the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from openvta.cli import console
from openvta.cli.reporting.charts import scale_start
from openvta.cli.reporting.waterfall import STEPS, unit_counters, waterfall

WIDTH = 32
_EIGHTHS = " ▏▎▍▌▋▊▉"


def bar(share: float, width: int = WIDTH) -> str:
    """A bar of up to ``width`` characters, in eighths of one."""
    eighths = round(max(0.0, min(1.0, share)) * width * 8)
    return "█" * (eighths // 8) + (_EIGHTHS[eighths % 8] if eighths % 8 else "")


def _level(share: float, start: float) -> tuple[str, str]:
    """A share of peak as text and as a bar on an axis from ``start`` to 1."""
    return f"{100 * share:.2f} %", bar((share - start) / (1 - start))


def show(title: str, records: Mapping[str, Mapping[str, Any]]) -> None:
    """Print waterfall, layers and counters of every run."""
    for run, record in records.items():
        layers, peak = record["layers"], record["macs_per_cycle"]
        whole = waterfall(layers, peak)
        start = scale_start(whole.reached)
        rows: list[list[object]] = [["peak", "", *_level(1.0, start)]]
        for step in whole.steps:
            if step.cycles:
                rows.append([f"- {step.name}", f"{step.cycles:,}", *_level(step.left, start)])
        rows.append(["reached", f"{whole.cycles:,}", *_level(whole.reached, start)])
        axis = f"{start:.0%}".ljust(WIDTH - 5) + "100 %"
        console.table(f"{title}, {run} memory: from peak to reached", ["", "cycles", "of peak", axis], rows, bars=True)
        reasons = [name for name, _, _ in STEPS if any(s.name == name and s.cycles for s in whole.steps)]
        cells: list[list[object]] = []
        for layer in layers:
            own = waterfall([layer], peak)
            lost = {step.name: step.cycles for step in own.steps}
            losses = [f"{lost[name]:,}" if lost[name] else "" for name in reasons]
            cells.append([layer["name"], f"{own.cycles:,}", f"{own.reached:.1%}", *losses])
        console.table(f"{title}, {run} memory: layers", ["layer", "cycles", "of peak", *reasons], cells)
        counters = [[u, what, f"{n:,}", f"{share:.1%}", bar(share, 20)] for u, what, n, share in unit_counters(record)]
        console.table(
            f"{title}, {run} memory: units", ["unit", "", "cycles", "of run", " " * 20], counters, left=2, bars=True
        )
