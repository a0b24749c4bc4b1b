# SPDX-License-Identifier: Apache-2.0
"""`openvta demo`: run the demo, show its tables, say whether it kept its promises."""

from __future__ import annotations

import argparse
from pathlib import Path

from openvta.cli import console
from openvta.cli.main import EXIT_NO

EXAMPLE = "openvta demo --out build/demo"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    parser.add_argument(
        "--out", type=Path, default=Path("build/demo"), help="folder for report.json, index.html and the bundles"
    )
    parser.add_argument("--config", default="default", help="configuration to compile for and to build the RTL of")
    parser.add_argument("--rtl-images", type=int, default=20, help="digits of each network on the RTL")
    parser.add_argument("--data", type=Path, help="folder with the networks and digits")


def run(options: argparse.Namespace) -> int:
    """Run the demo."""
    from openvta.cli.demo import failures, run_demo
    from openvta.sim.cosim.toolchain import repository
    from openvta.spec import load_config

    data = options.data or repository() / "examples" / "digits"
    report = run_demo(data, options.out, config_name=options.config, rtl_images=options.rtl_images, say=console.say)
    for name, model in report["models"].items():
        rows = [
            (
                layer["name"], layer["op"], layer["where"], f"{layer['macs']:,}",
                "" if layer["cycles"] is None else f"{layer['cycles']:,}",
                "" if layer["utilization"] is None else f"{100 * layer['utilization']:.1f} %",
            )
            for layer in model["layers"]
        ]  # fmt: skip
        console.table(name, ("layer", "operator", "where", "MAC", "cycles", "MAC utilization"), rows, left=3)
        console.out(
            f"{name}: {100 * model['accuracy']:.1f} % of {model['images']} digits right; logits equal to the integer reference "
            f"{model['logits_equal_reference']} of {model['logits']}, to onnxruntime {model['logits_equal_onnxruntime']}; "
            f"RTL equal to fsim on {model['rtl_equal_fsim']} of {model['rtl_images']} images; {model['cycles']:,} cycles an image"
        )
    console.out(f"report: {options.out / 'report.json'}, page: {options.out / 'index.html'}, {report['seconds']} s")
    broken = failures(report, load_config(options.config))
    for line in broken:
        console.out(f"FAILED: {line}")
    return EXIT_NO if broken else 0
