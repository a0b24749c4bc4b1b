# SPDX-License-Identifier: Apache-2.0
"""Speed of the functional simulator: nanoseconds per multiply-accumulate on the digit networks, everything included."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from openvta.cli.benchmarks import BenchmarkError, Figures
from openvta.cli.demo import MODELS, load_digits
from openvta.compiler import compile as compile_model
from openvta.compiler.importers import import_onnx
from openvta.compiler.reference import Reference
from openvta.driver import open_device
from openvta.sim.cosim.toolchain import repository

IMAGES = 200
REPEATS = 5


def run(config_name: str, memory: str, say: Callable[[str], None]) -> Figures:
    """Figures; the median of some repeats, host steps and packing included. ``memory`` is not used.

    Raises:
        BenchmarkError: logits that differ from the reference.
    """
    data = repository() / "examples" / "digits"
    _, inputs, _ = load_digits(data)
    inputs = inputs[:IMAGES]
    rows: list[dict[str, Any]] = []
    for model in MODELS:
        path = data / model.file
        bundle = compile_model(path, config=config_name)
        feed, output = next(iter(bundle.inputs)), next(iter(bundle.outputs))
        macs = sum(layer.macs for layer in bundle.layers)
        expected = Reference(import_onnx(path).graph).run({feed: inputs})[output]
        say(f"{model.name}: {REPEATS} times {IMAGES} images")
        with open_device("fsim", config=bundle.config) as device:
            seconds = []
            for _ in range(REPEATS + 1):
                result = device.run(bundle, {feed: inputs})
                seconds.append(result.elapsed)
        if not np.array_equal(result.outputs[output], expected):
            raise BenchmarkError(f"{model.name}: logits differ from the reference: no figure")
        counted = sorted(seconds[1:])
        median = counted[len(counted) // 2]
        rows.append(
            {
                "network": model.name,
                "images": IMAGES,
                "macs": macs,
                "seconds": round(median, 4),
                "first_seconds": round(seconds[0], 4),
                "images_per_second": round(IMAGES / median, 1),
                "ns_per_mac": round(median * 1e9 / (macs * IMAGES), 4),
            }
        )
    return Figures(rows, {"ns_per_mac": max(row["ns_per_mac"] for row in rows)})
