# SPDX-License-Identifier: Apache-2.0
"""Speed of the functional simulator: nanoseconds per multiply-accumulate on the digit networks, everything included.

As it comes (images shared among one process a processor), and in one process.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np

from openvta.cli.benchmarks import BenchmarkError, Figures
from openvta.cli.demo import MODELS, load_digits
from openvta.compiler import compile as compile_model
from openvta.compiler.importers import import_onnx
from openvta.compiler.reference import Reference
from openvta.driver import open_device
from openvta.driver.forks import jobs_wanted
from openvta.sim.cosim.toolchain import repository

IMAGES = 200
REPEATS = 5


def run(config_name: str, memory: str, say: Callable[[str], None]) -> Figures:
    """The median of some repeats after a first run, host steps and packing included. ``memory`` is not used.

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
        row: dict[str, Any] = {"network": model.name, "images": IMAGES, "macs": macs}
        for suffix, jobs in (("", jobs_wanted()), ("_one_process", 1)):
            say(f"{model.name}: {REPEATS} times {IMAGES} images, processes: {jobs}")
            with open_device("fsim", config=bundle.config, jobs=jobs) as device:
                results = [device.run(bundle, {feed: inputs}) for _ in range(REPEATS + 1)]
            if not all(np.array_equal(result.outputs[output], expected) for result in results):
                raise BenchmarkError(f"{model.name}: logits differ from the reference: no figure")
            seconds = median(result.elapsed for result in results[1:])
            if not suffix:
                row |= {"processes": jobs, "first_seconds": round(results[0].elapsed, 4)}
                row |= {"images_per_second": round(IMAGES / seconds, 1)}
            row[f"ns_per_mac{suffix}"] = round(seconds * 1e9 / (macs * IMAGES), 4)
        rows.append(row)
    names = ("ns_per_mac", "ns_per_mac_one_process")
    return Figures(rows, {name: max(row[name] for row in rows) for name in names})
