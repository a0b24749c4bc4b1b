# SPDX-License-Identifier: Apache-2.0
"""`openvta elaborate`: SystemVerilog of a configuration, or a project of its HLS twin."""

from __future__ import annotations

import argparse
import shutil
from dataclasses import asdict
from pathlib import Path

from openvta.cli import console
from openvta.cli.main import EXIT_USAGE
from openvta.spec import hash_text, load_config, named_configs

EXAMPLE = "openvta elaborate --config tiny --out build/tiny"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    parser.add_argument("--config", default="default", help=f"a TOML file, or one of {', '.join(named_configs())}")
    parser.add_argument(
        "--out", type=Path, required=True, help="folder for the SystemVerilog, filelist.f and manifest.json"
    )
    parser.add_argument("--top", default="VtaTop", help="module to elaborate (default VtaTop)")
    parser.add_argument("--hls", action="store_true", help="write a project for Vitis HLS instead (--part, --clock)")
    parser.add_argument("--part", help="device of the HLS project, such as xc7z020clg400-1")
    parser.add_argument("--clock", type=float, default=10.0, help="clock period of the HLS project in ns (default 10)")
    parser.add_argument(
        "--synthesize", action="store_true", help="run vitis_hls on the HLS project, where it is on PATH"
    )
    parser.add_argument("--simulator", action="store_true", help="build the fast simulator too")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(options: argparse.Namespace) -> int:
    """Elaborate and copy the files, or write the HLS project."""
    if options.hls:
        return _write_project(options)
    if options.part is not None or options.synthesize:
        console.say("--part and --synthesize mean something with --hls only")
        return EXIT_USAGE
    from openvta.sim.cosim.build import elaborate, fast_harness, verilate

    config = load_config(options.config)
    design = elaborate(config, top=options.top, progress=console.say)
    options.out.mkdir(parents=True, exist_ok=True)
    names = [path.name for path in design.files] + ["filelist.f", "manifest.json"]
    for name in names:
        if (design.folder / name).is_file():
            shutil.copyfile(design.folder / name, options.out / name)
    facts: dict[str, object] = {
        "config": config.name,
        "config_hash": hash_text(config),
        "top": design.top,
        "out": str(options.out),
        "files": [path.name for path in design.files],
    }
    if options.simulator:
        model = verilate(design, fast_harness(config), progress=console.say)
        facts |= {"simulator": str(model.executable), "build_seconds": model.build_seconds}
    if options.json:
        console.show_json(facts)
    else:
        console.out(
            f"{options.out}: {len(design.files)} SystemVerilog files of {design.top}, configuration {config.name} ({hash_text(config)})"
        )
    return 0


def _write_project(options: argparse.Namespace) -> int:
    from openvta.sim.hls.project import write_project
    from openvta.sim.hls.vendor import synthesize

    if options.part is None:
        console.say("--hls needs --part, the device's full name, such as --part xc7z020clg400-1")
        return EXIT_USAGE
    config = load_config(options.config)
    project = write_project(config, options.out, part=options.part, clock_ns=options.clock)
    reports = synthesize(options.out, progress=console.say) if options.synthesize else []
    if options.json:
        facts = {
            "config": config.name,
            "config_hash": hash_text(config),
            "part": options.part,
            "clock_ns": options.clock,
        }
        files = {"out": str(options.out), "files": list(project.files)}
        console.show_json({**facts, **files, "reports": [asdict(report) for report in reports]})
        return 0
    console.out(f"{options.out}: {len(project.files)} files for {options.part}; run: vitis_hls -f run_hls.tcl")
    rows = []
    for report in reports:
        loops = ", ".join(f"{loop.name} {loop.interval}" for loop in report.loops if loop.interval is not None)
        used = ", ".join(f"{name} {count}" for name, count in report.resources.items() if count)
        rows.append((report.name, report.latency, f"{report.clock_ns:g}", loops, used))
    if rows:
        console.table("synthesis", ("function", "latency", "clock ns", "initiation intervals", "resources"), rows)
    return 0
