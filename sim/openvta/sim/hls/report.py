# SPDX-License-Identifier: Apache-2.0
"""What Vitis HLS reports after synthesis (``*_csynth.xml``): initiation intervals, latency, resources."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import Path

from openvta.sim.errors import SimError

RESOURCES = ("BRAM_18K", "DSP", "FF", "LUT", "URAM")


@dataclass(frozen=True)
class Loop:
    """A loop: name, initiation interval (None where it is not pipelined), iteration latency."""

    name: str
    interval: int | None
    latency: str


@dataclass(frozen=True)
class Report:
    """One synthesized function: worst latency as the tool writes it, estimated clock in ns, loops, resources used."""

    name: str
    clock_ns: float
    latency: str
    loops: tuple[Loop, ...]
    resources: dict[str, int]


def read_reports(folder: Path) -> list[Report]:
    """Every function's report, by name.

    Raises:
        SimError: no report there, or one that cannot be read.
    """
    files = sorted(folder.glob("*_csynth.xml"))
    if not files:
        raise SimError(f"{folder}: no *_csynth.xml: run the step csynth first")
    return [read_report(path) for path in files]


def read_report(path: Path) -> Report:
    """One report.

    Raises:
        SimError: not a synthesis report.
    """
    try:
        root = ET.parse(path).getroot()
        name = _text(root, "UserAssignments/TopModelName") or path.name[: -len("_csynth.xml")]
        clock = float(_text(root, "PerformanceEstimates/SummaryOfTimingAnalysis/EstimatedClockPeriod") or "nan")
        latency = _text(root, "PerformanceEstimates/SummaryOfOverallLatency/Worst-caseLatency") or "undef"
        found = root.find("PerformanceEstimates/SummaryOfLoopLatency")
        loops = tuple(_loop(item) for item in (found if found is not None else ()))
        area = root.find("AreaEstimates/Resources")
        resources = {
            item.tag: int(item.text or 0) for item in (area if area is not None else ()) if item.tag in RESOURCES
        }
    except (ET.ParseError, ValueError, OSError) as error:
        raise SimError(f"{path}: not a synthesis report: {error}") from error
    return Report(name, clock, latency, loops, resources)


def _text(root: ET.Element, path: str) -> str | None:
    found = root.find(path)
    return found.text.strip() if found is not None and found.text else None


def _loop(item: ET.Element) -> Loop:
    interval = _text(item, "PipelineII")
    return Loop(
        _text(item, "Name") or item.tag, int(interval) if interval else None, _text(item, "IterationLatency") or "undef"
    )
