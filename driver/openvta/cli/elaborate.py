# SPDX-License-Identifier: Apache-2.0
"""`openvta elaborate`: SystemVerilog of a configuration."""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

from openvta.cli import console
from openvta.spec import hash_text, load_config, named_configs

EXAMPLE = "openvta elaborate --config tiny --out build/tiny"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    parser.add_argument("--config", default="default", help=f"a TOML file, or one of {', '.join(named_configs())}")
    parser.add_argument(
        "--out", type=Path, required=True, help="folder for the SystemVerilog, filelist.f and manifest.json"
    )
    parser.add_argument("--top", default="VtaTop", help="module to elaborate (default VtaTop)")
    parser.add_argument("--simulator", action="store_true", help="build the fast simulator too")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(options: argparse.Namespace) -> int:
    """Elaborate and copy the files."""
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
