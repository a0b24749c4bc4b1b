# SPDX-License-Identifier: Apache-2.0
"""`openvta bench`: figures with the configuration hash and the commit they were measured at."""

from __future__ import annotations

import argparse
import json
import platform
from importlib import import_module
from pathlib import Path
from typing import Any

from openvta.cli import console
from openvta.cli.commit import commit
from openvta.spec import hash_text, load_config, named_configs

EXAMPLE = "openvta bench layer --json layer.json"
BENCHMARKS = {
    "layer": "one 3x3 convolution, 28x28, 128 to 128 channels, on the RTL",
    "fsim": "the functional simulator on the digit networks",
    "scaling": "the same network on arrays of 16x16, 32x32 and 64x64",
    "cosim": "a layer in a plain C++ loop and under cocotb, build time, the whole network",
    "hls": "the HLS kernel on the digit networks, native and fixed-width integers, against fsim",
    "resnet18": "the 19 convolutions of ResNet-18 after its stem, one program on the RTL, ideal memory and DRAM",
}
SCHEMA = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    parser.add_argument("name", choices=sorted(BENCHMARKS), help="; ".join(f"{k}: {v}" for k, v in BENCHMARKS.items()))
    parser.add_argument("--config", default="default", help=f"a TOML file, or one of {', '.join(named_configs())}")
    parser.add_argument("--memory", choices=("ideal", "dram"), default="ideal", help="memory timing of the RTL")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to FILE as well")


def run(options: argparse.Namespace) -> int:
    """Measure, show, write."""
    module = import_module(f"openvta.cli.benchmarks.{options.name}")
    config = load_config(options.config)
    measured = module.run(options.config, options.memory, console.say)
    rows, summary = measured.rows, measured.summary
    figures: dict[str, Any] = {
        "schema": SCHEMA,
        "benchmark": options.name,
        "config": config.name,
        "config_hash": hash_text(config),
        "commit": commit(),
        "machine": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
        "rows": rows,
        "summary": summary,
        **measured.details,
    }
    shown = [key for key in rows[0] if not isinstance(rows[0][key], dict)]
    cells = [[f"{row[key]:,}" if isinstance(row.get(key), int) else row.get(key) for key in shown] for row in rows]
    console.table(f"{options.name} ({BENCHMARKS[options.name]})", shown, cells)
    console.out(", ".join(f"{key} {value}" for key, value in summary.items()))
    console.out(f"configuration {config.name} ({figures['config_hash']}), commit {figures['commit']}")
    if options.json is not None:
        console.write_file(options.json, json.dumps(figures, indent=1) + "\n")
    return 0
