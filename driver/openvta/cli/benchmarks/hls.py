# SPDX-License-Identifier: Apache-2.0
"""Speed of the HLS kernel in this process: seconds an image for native and for fixed-width integers, and for fsim, in one run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from openvta.cli.benchmarks import BenchmarkError, Figures
from openvta.cli.demo import MODELS, load_digits
from openvta.compiler import compile as compile_model
from openvta.driver import open_device
from openvta.sim.cosim.toolchain import repository

PATHS: tuple[tuple[str, str, dict[str, str], int], ...] = (
    ("fsim", "fsim", {}, 200),
    ("fast", "hls", {"integers": "native"}, 100),
    ("wide", "hls", {"integers": "wide"}, 10),
)
"""Name, device, its options, images."""
REPEATS = 3


def run(config_name: str, memory: str, say: Callable[[str], None]) -> Figures:
    """The median of some repeats after a first run. ``memory`` is not used.

    ``fast_vs_fsim`` and ``wide_vs_fsim``: seconds an image over fsim's, the largest of the networks.

    Raises:
        BenchmarkError: logits that differ from fsim's.
    """
    data = repository() / "examples" / "digits"
    _, inputs, _ = load_digits(data)
    rows: list[dict[str, Any]] = []
    ratios: dict[str, list[float]] = {"fast": [], "wide": []}
    for model in MODELS:
        bundle = compile_model(data / model.file, config=config_name)
        feed, output = next(iter(bundle.inputs)), next(iter(bundle.outputs))
        expected: np.ndarray[Any, Any] | None = None
        base = 0.0
        for name, device_name, options, images in PATHS:
            say(f"{model.name}: {name}, {REPEATS} times {images} images")
            seconds = []
            with open_device(device_name, config=bundle.config, jobs=1, **options) as device:
                for _ in range(REPEATS + 1):
                    result = device.run(bundle, {feed: inputs[:images]})
                    seconds.append(result.elapsed / images)
            logits = result.outputs[output]
            if expected is None:
                expected = logits
            if not np.array_equal(logits, expected[:images]):
                raise BenchmarkError(f"{model.name}: logits of {name} differ from those of fsim: no figure")
            each = sorted(seconds[1:])[REPEATS // 2]
            if name == "fsim":
                base = each
            else:
                ratios[name].append(each / base)
            rows.append(
                {
                    "network": model.name,
                    "path": name,
                    "images": images,
                    "seconds_per_image": round(each, 6),
                    "vs_fsim": round(each / base, 3),
                }
            )
    summary: dict[str, Any] = {"logits_equal_fsim": True}
    summary |= {f"{name}_vs_fsim": round(max(values), 3) for name, values in ratios.items()}
    return Figures(rows, summary)
