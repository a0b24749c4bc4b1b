# SPDX-License-Identifier: Apache-2.0
"""One convolution on the RTL: cycles from launch to finish, requantization and every transfer included."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from openvta.cli.benchmarks import BenchmarkError, Figures
from openvta.compiler import compile as compile_model
from openvta.compiler.importers import import_onnx
from openvta.compiler.reference import Reference
from openvta.driver import open_device
from openvta.spec import load_config

SEED = 1


@dataclass(frozen=True)
class Shape:
    """A square convolution: size of the input, channels, kernel, stride, pad."""

    size: int = 28
    channels_in: int = 128
    channels_out: int = 128
    kernel: int = 3
    stride: int = 1
    pad: int = 1

    @property
    def label(self) -> str:
        """Short name, such as 3x3/1 28x28x128->128."""
        return (
            f"{self.kernel}x{self.kernel}/{self.stride} {self.size}x{self.size}x{self.channels_in}->{self.channels_out}"
        )


def model_of(shape: Shape, seed: int) -> onnx.ModelProto:
    """A QDQ model with full-range int8 weights; the output scale keeps about three standard deviations."""
    rng = np.random.default_rng(seed)
    weight = rng.integers(-128, 128, (shape.channels_out, shape.channels_in, shape.kernel, shape.kernel)).astype(
        np.int8
    )
    spread = 73.9 * 73.9 * np.sqrt(shape.channels_in * shape.kernel**2)
    constants = {
        "one": np.float32(1),
        "zero": np.int8(0),
        "w": weight,
        "bias": rng.integers(-(2**12), 2**12, shape.channels_out).astype(np.int32),
        "scale": np.float32(spread / 50),
        "zero32": np.int32(0),
    }
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "one", "zero"], ["xq"]),
        helper.make_node("DequantizeLinear", ["xq", "one", "zero"], ["xd"]),
        helper.make_node("DequantizeLinear", ["w", "one", "zero"], ["wd"]),
        helper.make_node("DequantizeLinear", ["bias", "one", "zero32"], ["bd"]),
        helper.make_node(
            "Conv", ["xd", "wd", "bd"], ["a"], "conv", kernel_shape=[shape.kernel] * 2, pads=[shape.pad] * 4,
            strides=[shape.stride] * 2,
        ),
        helper.make_node("QuantizeLinear", ["a", "scale", "zero"], ["yq"]),
        helper.make_node("DequantizeLinear", ["yq", "scale", "zero"], ["y"]),
    ]  # fmt: skip
    size = (shape.size + 2 * shape.pad - shape.kernel) // shape.stride + 1
    graph = helper.make_graph(
        nodes,
        "layer",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, shape.channels_in, shape.size, shape.size])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, shape.channels_out, size, size])],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def run(config_name: str, memory: str, say: Callable[[str], None]) -> Figures:
    """Figures of the layer on ``config_name`` with a memory model.

    Raises:
        BenchmarkError: outputs that differ from the reference, or data that would flatter the figure.
    """
    config = load_config(config_name)
    shape = Shape()
    model = model_of(shape, SEED)
    say(f"compiling {shape.label} for {config.name}")
    bundle = compile_model(model, config=config_name, strict=True)
    x = np.random.default_rng(SEED + 1).integers(-128, 128, (config.batch, shape.channels_in, shape.size, shape.size))
    feed = {"x": x.astype(np.float32)}
    graph = import_onnx(model, batch=None).graph
    expected = Reference(graph).run(feed)["y"]
    _check_data(expected)
    with open_device("cosim", config=config, memory=memory, progress=say) as device:
        say(f"running on the RTL, {memory} memory")
        result = device.run(bundle, feed)
    differing = int((result.outputs["y"] != expected).sum())
    if differing:
        raise BenchmarkError(
            f"layer {shape.label}: {differing} of {expected.size} outputs differ from the reference: no figure"
        )
    macs = sum(layer.macs for layer in bundle.layers) * config.batch
    cycles = result.counters["cycles"]
    utilization = macs / (cycles * config.macs_per_cycle)
    row = {
        "layer": shape.label,
        "memory": memory,
        "macs": macs,
        "cycles": cycles,
        "floor": -(-macs // config.macs_per_cycle),
        "utilization": round(utilization, 4),
        "counters": dict(result.counters),
    }
    return Figures([row], {"utilization": round(utilization, 4), "cycles": cycles})


def _check_data(outputs: np.ndarray[Any, Any]) -> None:
    levels = np.unique(outputs)
    saturated = float(((outputs == levels[0]) | (outputs == levels[-1])).mean())
    if len(levels) < 100 or saturated >= 0.2:
        raise BenchmarkError(
            f"layer data: {len(levels)} distinct outputs (100 needed), {saturated:.0%} saturated (below 20 % needed)"
        )
