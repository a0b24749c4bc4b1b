# SPDX-License-Identifier: Apache-2.0
"""`openvta demo`: trained digit networks from ONNX to three equal answers, with a report and a page."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from openvta.cli.commit import commit
from openvta.cli.console import write_file
from openvta.cli.demo_page import render
from openvta.compiler import compile as compile_model
from openvta.compiler.importers import import_onnx
from openvta.compiler.reference import Reference, plain_session
from openvta.driver import Device, open_device
from openvta.spec import hash_text, load_config
from openvta.spec.bundle import Bundle
from openvta.spec.config import HardwareConfig

NDArray = npt.NDArray[Any]
Say = Callable[[str], None]

SCHEMA = 1
SHOWN = 20
BORDER = ("Quantize", "Dequantize")
"""Operators at the model's border, which turn real numbers into integers and back on the host."""


@dataclass(frozen=True)
class DemoModel:
    """One network of the demo: a short name, its file, and what it is."""

    name: str
    file: str
    description: str


MODELS = (
    DemoModel("resnet8-pot", "resnet8_mnist_pot.onnx", "ResNet-8, int8, every scale a power of two."),
    DemoModel(
        "resnet8-per-channel",
        "resnet8_mnist_s8s8_sym_pc.onnx",
        "ResNet-8, int8, real scales, one per output channel of every weight.",
    ),
)


def load_digits(data: Path) -> tuple[NDArray, NDArray, NDArray]:
    """(pixels uint8 [N, 28, 28], network input float32 [N, 1, 28, 28], labels [N])."""
    with np.load(data / "mnist_subset.npz", allow_pickle=False) as archive:
        pixels, labels = archive["test_x"], archive["test_y"]
    pixels = pixels.reshape(-1, 28, 28)
    inputs = ((pixels.astype(np.float32) - 128) / 128)[:, None]
    return pixels, np.ascontiguousarray(inputs), labels.astype(np.int64)


def run_demo(data: Path, out: Path, *, config_name: str, rtl_images: int, say: Say) -> dict[str, Any]:
    """Run the whole demo and write ``report.json``, ``index.html`` and the bundles into ``out``.

    Returns the report. Every figure in it was measured in this run.
    """
    config = load_config(config_name)
    pixels, inputs, labels = load_digits(data)
    started = time.monotonic()
    models: dict[str, Any] = {}
    for model in MODELS:
        say(f"{model.name}: compiling {model.file} for '{config.name}', nothing may stay on the host (strict)")
        bundle = compile_model(data / model.file, config=config_name, strict=True)
        out.mkdir(parents=True, exist_ok=True)
        bundle.save(out / f"{model.name}.bundle")
        models[model.name] = _one(model, data / model.file, bundle, pixels, inputs, labels, rtl_images, say)
    first = models[MODELS[0].name]
    report: dict[str, Any] = {
        "schema": SCHEMA,
        "config": config.name,
        "config_hash": hash_text(config),
        "commit": commit(),
        "macs_per_cycle": config.macs_per_cycle,
        "seconds": round(time.monotonic() - started, 1),
        **{key: first[key] for key in first if key not in ("samples", "description")},
        "models": models,
    }
    write_file(out / "report.json", json.dumps(report, indent=1) + "\n")
    write_file(out / "index.html", render(report))
    return report


def _one(
    model: DemoModel,
    path: Path,
    bundle: Bundle,
    pixels: NDArray,
    inputs: NDArray,
    labels: NDArray,
    rtl_images: int,
    say: Say,
) -> dict[str, Any]:
    feed, result = next(iter(bundle.inputs)), next(iter(bundle.outputs))
    imported = import_onnx(path).graph
    say(f"{model.name}: integer reference and onnxruntime (graph optimisation off) on {len(inputs):,} digits")
    reference = Reference(imported).run({feed: inputs})[result]
    session = plain_session(path.read_bytes())
    # The exported shape may name its batch, so one digit at a time is always accepted; a batch is faster where it works.
    runtime = session.run([result], {feed: inputs})[0]
    say(f"{model.name}: functional simulator on {len(inputs):,} digits")
    began = time.monotonic()
    with open_device("fsim", config=bundle.config) as device:
        logits = device.run(bundle, {feed: inputs}).outputs[result]
    fsim_seconds = time.monotonic() - began
    say(f"{model.name}: RTL under Verilator, driven by cocotb, on {rtl_images} digits")
    began = time.monotonic()
    with open_device("cosim", config=bundle.config, progress=say) as device:
        rtl, layers, cycles = _rtl(device, bundle, feed, result, inputs[:rtl_images])
    rtl_seconds = time.monotonic() - began
    predicted = logits.argmax(1)
    equal_rows = (rtl == logits[:rtl_images]).reshape(rtl_images, -1).all(1)
    return {
        "description": model.description,
        "images": len(inputs),
        "accuracy": float((predicted == labels).mean()),
        "logits": int(logits.size),
        "logits_equal_reference": int((logits == reference).sum()),
        "logits_equal_onnxruntime": int((logits == runtime).sum()),
        "predictions_equal_onnxruntime": int((predicted == runtime.argmax(1)).sum()),
        "rtl_images": rtl_images,
        "rtl_equal_fsim": int(equal_rows.sum()),
        "cycles": cycles,
        "layers": layers,
        "fsim_seconds": round(fsim_seconds, 2),
        "rtl_seconds": round(rtl_seconds, 2),
        "config_hash": bundle.config_hash,
        "samples": _samples(pixels, predicted, labels),
    }


def _rtl(
    device: Device, bundle: Bundle, feed: str, result: str, inputs: NDArray
) -> tuple[NDArray, list[dict[str, Any]], int]:
    answer = device.run(bundle, {feed: inputs})
    peak = bundle.config.macs_per_cycle
    layers = []
    for layer in bundle.layers:
        cycles = answer.layer_cycles.get(layer.name)
        utilization = layer.macs * bundle.config.batch / (cycles * peak) if cycles and layer.macs else None
        layers.append(
            {
                "name": layer.name,
                "op": layer.op,
                "where": layer.where,
                "macs": layer.macs,
                "cycles": cycles,
                "utilization": None if utilization is None else round(utilization, 4),
            }
        )
    return answer.outputs[result], layers, answer.counters["cycles"]


def _samples(pixels: NDArray, predicted: NDArray, labels: NDArray) -> list[dict[str, Any]]:
    wrong = [int(n) for n in np.flatnonzero(predicted != labels)[: SHOWN // 4]]
    right = [n for n in range(len(labels)) if predicted[n] == labels[n]][: SHOWN - len(wrong)]
    return [
        {
            "index": n,
            "label": int(labels[n]),
            "prediction": int(predicted[n]),
            "width": int(pixels.shape[2]),
            "pixels": pixels[n].astype(np.uint8).tobytes().hex(),
        }
        for n in (*right, *wrong)
    ]


def failures(report: dict[str, Any], config: HardwareConfig) -> list[str]:
    """What the demo promises and this run did not show; empty if all is well."""
    found = []
    for name, model in report["models"].items():
        if model["accuracy"] < 0.989:
            found.append(f"{name}: accuracy {model['accuracy']:.3f} is below 0.989")
        if model["logits_equal_reference"] != model["logits"]:
            found.append(
                f"{name}: {model['logits'] - model['logits_equal_reference']} logits differ from the integer reference"
            )
        if model["rtl_equal_fsim"] != model["rtl_images"]:
            found.append(
                f"{name}: {model['rtl_images'] - model['rtl_equal_fsim']} images differ between RTL and simulator"
            )
        if any(layer["where"] != "accelerator" and layer["op"] not in BORDER for layer in model["layers"]):
            found.append(f"{name}: a layer is not on the accelerator")
    exact = report["models"][MODELS[0].name]
    if exact["logits_equal_onnxruntime"] != exact["logits"]:
        found.append(
            f"{MODELS[0].name}: {exact['logits'] - exact['logits_equal_onnxruntime']} logits differ from onnxruntime"
        )
    real = report["models"][MODELS[1].name]
    if (
        real["logits"] - real["logits_equal_onnxruntime"] > 50
        or real["predictions_equal_onnxruntime"] != real["images"]
    ):
        found.append(f"{MODELS[1].name}: more than 50 logits, or a prediction, differ from onnxruntime")
    if report["config_hash"] != hash_text(config):
        found.append("the report is of another configuration")
    return found
