# SPDX-License-Identifier: Apache-2.0
"""`openvta compile`: a quantized ONNX model into a bundle."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path

from openvta.cli import console
from openvta.spec import named_configs

EXAMPLE = "openvta compile resnet8.onnx --config default --strict -o resnet8.bundle"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    parser.add_argument("model", type=Path, help="quantized ONNX file (QDQ or QOperator)")
    parser.add_argument("-o", "--out", type=Path, help="bundle to write (default: the model's name with .bundle)")
    parser.add_argument("--config", default="default", help=f"a TOML file, or one of {', '.join(named_configs())}")
    parser.add_argument("--strict", action="store_true", help="refuse to leave any node to the host")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(options: argparse.Namespace) -> int:
    """Compile, write the bundle, show the placement."""
    from openvta.compiler import compile as compile_model

    bundle = compile_model(options.model, config=options.config, strict=options.strict)
    out = options.out or options.model.with_suffix(".bundle").name
    bundle.save(out)
    instructions = sum(len(segment.program) for segment in bundle.segments)
    if options.json:
        console.show_json(
            {
                "bundle": str(out),
                "config": bundle.config.name,
                "config_hash": bundle.config_hash,
                "memory_bytes": bundle.memory_bytes,
                "instructions": instructions,
                "layers": [asdict(layer) for layer in bundle.layers],
            }
        )
        return 0
    rows = [
        (layer.name, layer.op, layer.where, f"{layer.macs:,}", f"{layer.dram_bytes:,}", layer.reason)
        for layer in bundle.layers
    ]
    console.table(
        f"{bundle.name} on {bundle.config.name} ({bundle.config_hash})",
        ("layer", "operator", "where", "MAC", "bytes moved", "reason"),
        rows,
        left=3,
    )
    console.out(f"{out}: {instructions} instructions, {bundle.memory_bytes:,} bytes of device memory")
    return 0
