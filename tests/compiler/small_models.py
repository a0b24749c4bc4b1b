# SPDX-License-Identifier: Apache-2.0
"""Small models for tests, built from parts that a test can change."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

NDArray = npt.NDArray[Any]


def model_of(
    nodes: list[onnx.NodeProto],
    constants: dict[str, NDArray],
    *,
    inputs: dict[str, tuple[int | str, ...]] | None = None,
    outputs: tuple[str, ...] = ("y",),
    opset: int = 18,
    domains: tuple[tuple[str, int], ...] = (("com.microsoft", 1),),
    input_type: int = TensorProto.FLOAT,
    output_type: int = TensorProto.FLOAT,
) -> onnx.ModelProto:
    """A model of the given nodes and constants; one float input ``x [n, 2, 5, 5]`` unless said otherwise."""
    shapes = inputs or {"x": ("n", 2, 5, 5)}
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info(name, input_type, list(shape)) for name, shape in shapes.items()],
        [helper.make_tensor_value_info(name, output_type, None) for name in outputs],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()],
    )
    opsets = [helper.make_opsetid("", opset), *(helper.make_opsetid(d, v) for d, v in domains)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def base_constants(channels: int = 2, outputs: int = 3) -> dict[str, NDArray]:
    """Scales, zero points, weights and bias of ``conv_nodes``."""
    rng = np.random.default_rng(0)
    return {
        "xs": np.array(0.5, np.float32),
        "xz": np.array(3, np.int8),
        "w": rng.integers(-127, 128, (outputs, channels, 3, 3)).astype(np.int8),
        "ws": np.array(0.25, np.float32),
        "wz": np.array(0, np.int8),
        "b": rng.integers(-500, 500, outputs).astype(np.int32),
        "bs": np.array([0.125], np.float32),
        "ys": np.array(32.0, np.float32),
        "yz": np.array(-2, np.int8),
    }


def quantize(source: str, name: str, kind: str) -> list[onnx.NodeProto]:
    """QuantizeLinear and DequantizeLinear of ``source`` with scale ``{kind}s`` and zero point ``{kind}z``."""
    operands = [f"{kind}s", f"{kind}z"]
    return [
        helper.make_node("QuantizeLinear", [source, *operands], [f"{name}_q"], name=f"{name}_quantize"),
        helper.make_node("DequantizeLinear", [f"{name}_q", *operands], [name], name=f"{name}_dequantize"),
    ]


def conv_nodes(**attributes: Any) -> list[onnx.NodeProto]:
    """x -> Q -> DQ -> Conv -> Q -> DQ -> y."""
    return [
        *quantize("x", "xr", "x"),
        helper.make_node("DequantizeLinear", ["w", "ws", "wz"], ["wr"], name="w_dequantize", axis=0),
        helper.make_node("DequantizeLinear", ["b", "bs"], ["br"], name="b_dequantize", axis=0),
        helper.make_node("Conv", ["xr", "wr", "br"], ["c"], name="conv", **attributes),
        *quantize("c", "y", "y"),
    ]


def conv_model(changes: dict[str, NDArray] | None = None, **attributes: Any) -> onnx.ModelProto:
    """The model of ``conv_nodes`` with some constants changed."""
    return model_of(conv_nodes(**attributes), {**base_constants(), **(changes or {})})
