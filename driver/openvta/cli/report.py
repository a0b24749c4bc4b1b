# SPDX-License-Identifier: Apache-2.0
"""`openvta report`: where the cycles went, from a benchmark's JSON file or by running a bundle on the RTL."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from openvta.cli import console
from openvta.cli.reporting import ReportError
from openvta.cli.reporting.page import page
from openvta.cli.reporting.perfetto import nesting_fault, trace_events
from openvta.cli.reporting.tables import show
from openvta.cli.timeline import run_record
from openvta.cli.timing import analyse
from openvta.driver import open_device
from openvta.spec.bundle import Bundle

EXAMPLE = "openvta report resnet18.json --html resnet18.html --trace resnet18-trace.json"
FIELDS = ("cycles", "macs_per_cycle", "bus_bytes", "layers", "counters", "slices")
SEED = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    parser.add_argument(
        "source", type=Path, metavar="BUNDLE|JSON", help="a bundle (run on the RTL), or what bench wrote"
    )
    parser.add_argument("--memory", choices=("ideal", "dram"), default="ideal", help="memory timing for a bundle")
    parser.add_argument("--html", type=Path, metavar="FILE", help="write a page")
    parser.add_argument("--trace", type=Path, metavar="FILE", help="write a timeline for Perfetto (ui.perfetto.dev)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the run records")


def run(options: argparse.Namespace) -> int:
    """Show, write."""
    source: Path = options.source
    data = source.read_bytes()
    if data[:2] == b"PK":
        title, records = run_bundle(Bundle.load(source), options.memory)
    else:
        title, records = read_records(source, data)
    show(title, records)
    if options.html is not None:
        console.write_file(options.html, page(title, records))
        console.say(f"page: {options.html}")
    if options.trace is not None:
        trace = trace_events(records)
        fault = nesting_fault(trace)
        if fault is not None:
            raise ReportError(f"{source}: the timeline's slices do not nest: {fault}")
        console.write_file(options.trace, json.dumps(trace, separators=(",", ":")))
        console.say(f"timeline: {options.trace} (open it in ui.perfetto.dev; one cycle is shown as 1 us)")
    if options.json is not None:
        console.write_file(options.json, json.dumps({"title": title, "runs": records}) + "\n")
    return 0


def read_records(source: Path, data: bytes) -> tuple[str, dict[str, Any]]:
    """Return (title, run records by name) of a benchmark's JSON file.

    Raises:
        ReportError: it is none, or has no runs.
    """
    try:
        figures = json.loads(data)
    except ValueError as error:
        raise ReportError(f"{source}: neither a bundle nor JSON: {error}") from None
    runs = figures.get("runs") if isinstance(figures, dict) else None
    if not isinstance(runs, dict) or not runs:
        raise ReportError(f"{source}: no 'runs' in it: give a bundle, or the JSON file of `openvta bench resnet18`")
    for name, record in runs.items():
        missing = [field for field in FIELDS if not isinstance(record, dict) or field not in record]
        if missing:
            raise ReportError(f"{source}: run '{name}' has no '{missing[0]}': the file is damaged")
    title = figures.get("title") or f"{figures.get('benchmark', 'run')} on {figures.get('config', '?')}"
    return str(title), runs


def run_bundle(bundle: Bundle, memory: str) -> tuple[str, Mapping[str, Any]]:
    """Run a bundle once on the RTL with random inputs; (title, run records by name).

    Raises:
        ReportError: the bundle has nothing for the accelerator.
    """
    if not bundle.segments:
        raise ReportError(f"bundle '{bundle.name}': nothing runs on the accelerator, so there are no cycles to explain")
    rng = np.random.default_rng(SEED)
    records = {}
    with open_device("cosim", config=bundle.config, memory=memory, progress=console.say) as device:
        placed = device.load(bundle)
        for spec in bundle.tensors:
            if spec.role == "input":
                placed.write_tensor(spec, rng.integers(-128, 128, spec.shape).astype(np.int8))
        for segment in range(len(bundle.segments)):
            console.say(f"running segment {segment} on the RTL, {memory} memory")
            launch = device.launch(bundle, segment)
            name = memory if len(bundle.segments) == 1 else f"{memory}, segment {segment}"
            records[name] = run_record(bundle, launch, analyse(bundle, launch))
    return f"{bundle.name} on {bundle.config.name}", records
