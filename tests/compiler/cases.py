# SPDX-License-Identifier: Apache-2.0
"""Seeded single-operator models over random shapes, strides, pads, types, scales and zero points.

``make_case(operator, seed)`` builds one quantized ONNX model and its input; the same seed gives the same bytes.
``cases`` walks over all operators. Used for reference = onnxruntime, reference = simulator and reference = RTL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

NDArray = npt.NDArray[Any]

OPSET = 18
CHANNELS = (1, 3, 15, 17, 33, 2, 8, 16)
"""Channel counts, most of them off every block size."""
INT8_RANGE = (-128, 127)
UINT8_RANGE = (0, 255)


@dataclass(frozen=True)
class Case:
    """One model. ``power_of_two`` says that all scales are powers of two; ``macs`` is a rough size."""

    name: str
    operator: str
    seed: int
    dialect: str
    model: bytes
    inputs: dict[str, NDArray]
    power_of_two: bool

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Quant:
    """Type, scale and zero point of an activation."""

    dtype: str
    scale: float
    zero: int

    @property
    def range(self) -> tuple[int, int]:
        """Smallest and largest integer."""
        return INT8_RANGE if self.dtype == "int8" else UINT8_RANGE


@dataclass
class Builder:
    """Collects nodes and constants of a model."""

    rng: np.random.Generator
    pot: bool
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: list[onnx.TensorProto] = field(default_factory=list)
    inputs: list[onnx.ValueInfoProto] = field(default_factory=list)
    values: dict[str, NDArray] = field(default_factory=dict)

    def pick(self, *choices: Any) -> Any:
        """One of the choices."""
        return choices[int(self.rng.integers(len(choices)))]

    def integer(self, low: int, high: int) -> int:
        """A number in low..high."""
        return int(self.rng.integers(low, high + 1))

    def scale(self, around: float) -> float:
        """A scale near ``around``: a power of two where the case is one."""
        value = around * float(self.rng.uniform(0.7, 1.4))
        return float(2.0 ** np.round(np.log2(value))) if self.pot else float(np.float32(value))

    def quant(self, around: float, dtype: str | None = None) -> Quant:
        """A random activation quantization."""
        kind = dtype or self.pick("int8", "uint8")
        low, high = INT8_RANGE if kind == "int8" else UINT8_RANGE
        zero = self.pick(0 if kind == "int8" else 128, self.integer(low, high), self.integer(low, high))
        return Quant(kind, self.scale(around), zero)

    def constant(self, name: str, array: NDArray) -> str:
        """Add a constant."""
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape), name))
        return name

    def parameters(self, name: str, q: Quant) -> list[str]:
        """Add scale and zero point constants."""
        return [
            self.constant(f"{name}_scale", np.array(q.scale, np.float32)),
            self.constant(f"{name}_zero", np.array(q.zero, q.dtype)),
        ]

    def node(self, op: str, inputs: list[str], output: str, domain: str = "", **attributes: Any) -> str:
        """Add a node."""
        self.nodes.append(helper.make_node(op, inputs, [output], name=f"{op}_{output}", domain=domain, **attributes))
        return output

    def quantized_input(self, name: str, shape: tuple[int, ...], q: Quant, batch: int) -> tuple[str, list[str]]:
        """Add a float input and its QuantizeLinear; returns the integer tensor and its parameters."""
        self.inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", *shape]))
        integers = self.rng.integers(q.range[0], q.range[1] + 1, (batch, *shape))
        self.values[name] = ((integers - q.zero) * np.float32(q.scale)).astype(np.float32)
        parameters = self.parameters(name, q)
        return self.node("QuantizeLinear", [name, *parameters], f"{name}_q"), parameters

    def activation(self, name: str, shape: tuple[int, ...], q: Quant, batch: int) -> str:
        """Add a float input, QuantizeLinear and DequantizeLinear; returns the float tensor."""
        tensor, parameters = self.quantized_input(name, shape, q, batch)
        return self.node("DequantizeLinear", [tensor, *parameters], f"{name}_dq")

    def finish(self, tensor: str, q: Quant, *, quantize: bool) -> onnx.ModelProto:
        """Quantize (where asked) and dequantize ``tensor`` into the model's output."""
        parameters = self.parameters("y", q)
        integers = self.node("QuantizeLinear", [tensor, *parameters], "y_q") if quantize else tensor
        self.node("DequantizeLinear", [integers, *parameters], "y")
        outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
        graph = helper.make_graph(self.nodes, "case", self.inputs, outputs, self.constants)
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=8)


@dataclass(frozen=True)
class Weights:
    """Quantized weights: names of the constants and what the tests need to size the output scale."""

    operands: list[str]
    dequantized: Callable[[], str]
    scales: NDArray
    channels: int


def _weights(b: Builder, shape: tuple[int, ...], *, axis: int, dtype: str, zero_points: str, narrow: bool) -> Weights:
    """Random weights of a type with scales per tensor or along ``axis``; zero points none, one or per channel."""
    low, high = INT8_RANGE if dtype == "int8" else UINT8_RANGE
    if narrow:
        low, high = low // 2, high // 2
    values = b.rng.integers(low, high + 1, shape)
    middle = 0 if dtype == "int8" else 128
    channels = shape[axis]
    count = channels if b.pick(True, False) else 1
    scales = np.array([b.scale(0.01) for _ in range(count)], np.float32)
    zeros = np.full(count, middle)
    if zero_points == "one":
        zeros = np.full(count, b.integer(low, high))
    elif zero_points == "each":
        zeros = b.rng.integers(low, high + 1, count)
    scale_array = scales if count > 1 else scales.reshape(())
    zero_array = (zeros if count > 1 else zeros.reshape(())).astype(dtype)
    names = [
        b.constant("w", values.astype(dtype)),
        b.constant("w_scale", scale_array),
        b.constant("w_zero", zero_array),
    ]

    def dequantized() -> str:
        flags: dict[str, Any] = {"axis": axis} if count > 1 else {}
        return b.node("DequantizeLinear", names, "w_dq", **flags)

    return Weights(names, dequantized, np.broadcast_to(scales, (channels,)), channels)


def _bias(b: Builder, x: Quant, weights: Weights, terms: int, *, dialect: str) -> str | None:
    """A random int32 bias (dequantized in QDQ), sometimes float, sometimes none."""
    kind = b.pick("none", "int32", "int32", "float") if dialect == "qdq" else b.pick("none", "int32")
    if kind == "none":
        return None
    spread = int(2000 * np.sqrt(terms))
    integers = b.rng.integers(-spread, spread + 1, weights.channels).astype(np.int32)
    units = np.float32(x.scale) * weights.scales.astype(np.float32)
    if dialect != "qdq":
        return b.constant("bias_q", integers)
    if kind == "float":
        return b.constant("bias", integers.astype(np.float32) * units)
    same = bool((units == units[0]).all())
    scale = b.constant("bias_scale", units[:1].copy() if same else units)
    flags: dict[str, Any] = {} if same else {"axis": 0}
    return b.node("DequantizeLinear", [b.constant("bias_q", integers), scale], "bias", **flags)


def _layer_scale(b: Builder, x: Quant, weights: Weights, terms: int) -> float:
    """An output scale that uses most of the 8 bits."""
    return float(x.scale * weights.scales.mean() * 74 * 74 * np.sqrt(terms) / 45)


def _pads(b: Builder, kernel: tuple[int, int], *, limit: int = 3) -> list[int]:
    """Asymmetric pads, each below the kernel's extent."""
    top, left, bottom, right = (b.integer(0, min(limit, k - 1)) for k in (*kernel, *kernel))
    return [top, left, bottom, right]


def _image(b: Builder, kernel: tuple[int, int], pads: list[int]) -> tuple[int, int]:
    """A height and width the kernel fits in."""
    least = [max(1, kernel[a] - pads[a] - pads[a + 2]) for a in (0, 1)]
    return b.integer(least[0], max(least[0], 12)), b.integer(least[1], max(least[1], 12))


def _window_attributes(b: Builder, kernel: tuple[int, int], pads: list[int]) -> dict[str, Any]:
    strides = [b.pick(1, 1, 2, 3), b.pick(1, 1, 2, 3)]
    if b.integer(0, 5) == 0:
        # onnxruntime refuses (or computes nonsense for) SAME with a stride beyond the kernel in poolings
        same = ("SAME_UPPER", "SAME_LOWER") if all(s <= k for s, k in zip(strides, kernel, strict=True)) else ()
        return {"auto_pad": b.pick("VALID", *same), "strides": strides}
    return {"pads": pads, "strides": strides}


def _conv(b: Builder, dialect: str) -> onnx.ModelProto:
    return _convolution(b, dialect, depthwise=False)


def _depthwise(b: Builder, dialect: str) -> onnx.ModelProto:
    return _convolution(b, dialect, depthwise=True)


def _convolution(b: Builder, dialect: str, *, depthwise: bool) -> onnx.ModelProto:
    kernel = (b.pick(1, 2, 3, 3, 4, 5), b.pick(1, 2, 3, 3, 4, 5))
    pads = _pads(b, kernel)
    height, width = _image(b, kernel, pads)
    attributes = _window_attributes(b, kernel, pads)
    if attributes.get("auto_pad") == "VALID":
        height, width = max(height, kernel[0]), max(width, kernel[1])
    if depthwise:
        channels = b.pick(*CHANNELS)
        groups, outputs = channels, channels * b.pick(1, 1, 2)
    else:
        groups = b.pick(1, 1, 1, 2)
        channels, outputs = b.pick(*CHANNELS) * groups, b.pick(*CHANNELS) * groups
    x = b.quant(0.02)
    weight_type = "int8" if dialect == "qoperator" and x.dtype == "int8" else b.pick("int8", "int8", "uint8")
    points = b.pick("none", "none", "one") if dialect == "qoperator" else b.pick("none", "none", "one", "each")
    narrow = dialect == "qoperator" and x.dtype == "uint8" and weight_type == "int8"
    shape = (outputs, channels // groups, *kernel)
    weights = _weights(b, shape, axis=0, dtype=weight_type, zero_points=points, narrow=narrow)
    terms = channels // groups * kernel[0] * kernel[1]
    y = b.quant(_layer_scale(b, x, weights, terms), x.dtype if dialect == "qoperator" else None)
    attributes = {**attributes, "group": groups, "kernel_shape": list(kernel)}
    batch = b.integer(1, 2)
    if dialect == "qoperator":
        tensor, parameters = b.quantized_input("x", (channels, height, width), x, batch)
        bias = _bias(b, x, weights, terms, dialect=dialect)
        operands = [tensor, *parameters, *weights.operands, *b.parameters("out", y), *([bias] if bias else [])]
        return b.finish(b.node("QLinearConv", operands, "conv", **attributes), y, quantize=False)
    tensor = b.activation("x", (channels, height, width), x, batch)
    bias = _bias(b, x, weights, terms, dialect=dialect)
    result = b.node("Conv", [tensor, weights.dequantized(), *([bias] if bias else [])], "conv", **attributes)
    if b.integer(0, 2) == 0:
        result = b.node("Relu", [result], "relu")
    return b.finish(result, y, quantize=True)


def _dense(b: Builder, dialect: str) -> onnx.ModelProto:
    inputs, outputs = b.pick(*CHANNELS, 64, 100), b.pick(*CHANNELS, 10)
    x = b.quant(0.02)
    batch = b.integer(1, 3)
    if dialect == "qoperator":
        weight_type = "int8" if x.dtype == "int8" else b.pick("int8", "uint8")
        narrow = x.dtype == "uint8" and weight_type == "int8"
        gemm = b.pick(True, False)
        transposed = gemm and b.pick(True, False)
        shape = (outputs, inputs) if transposed else (inputs, outputs)
        axis = 0 if transposed else 1
        weights = _weights(b, shape, axis=axis, dtype=weight_type, zero_points=b.pick("none", "one"), narrow=narrow)
        y = b.quant(_layer_scale(b, x, weights, inputs), x.dtype)
        tensor, parameters = b.quantized_input("x", (inputs,), x, batch)
        if gemm:
            bias = _bias(b, x, weights, inputs, dialect=dialect)
            operands = [tensor, *parameters, *weights.operands, bias or "", *b.parameters("out", y)]
            flags = {"transA": 0, "transB": int(transposed), "alpha": 1.0}
            return b.finish(b.node("QGemm", operands, "gemm", "com.microsoft", **flags), y, quantize=False)
        operands = [tensor, *parameters, *weights.operands, *b.parameters("out", y)]
        return b.finish(b.node("QLinearMatMul", operands, "matmul"), y, quantize=False)
    transposed = b.pick(True, False)
    shape, axis = ((outputs, inputs), 0) if transposed else ((inputs, outputs), 1)
    points = b.pick("none", "none", "one", "each")
    weights = _weights(b, shape, axis=axis, dtype=b.pick("int8", "uint8"), zero_points=points, narrow=False)
    y = b.quant(_layer_scale(b, x, weights, inputs))
    tensor = b.activation("x", (inputs,), x, batch)
    if not transposed and b.pick(True, False):
        result = b.node("MatMul", [tensor, weights.dequantized()], "matmul")
        bias = _bias(b, x, weights, inputs, dialect=dialect)
        if bias:
            result = b.node("Add", [result, bias], "biased")
        return b.finish(result, y, quantize=True)
    bias = _bias(b, x, weights, inputs, dialect=dialect)
    operands = [tensor, weights.dequantized(), *([bias] if bias else [])]
    return b.finish(b.node("Gemm", operands, "gemm", transB=int(transposed)), y, quantize=True)


def _shape(b: Builder) -> tuple[int, ...]:
    if b.integer(0, 4) == 0:
        return (b.pick(*CHANNELS, 64),)
    return b.pick(*CHANNELS), b.integer(1, 9), b.integer(1, 9)


def _add(b: Builder, dialect: str) -> onnx.ModelProto:
    shape = _shape(b)
    a = b.quant(0.05)
    c = b.quant(0.05 * b.pick(1.0, 1.0, 0.3, 4.0), a.dtype if dialect == "qoperator" else None)
    y = b.quant((a.scale + c.scale) * 0.7, a.dtype if dialect == "qoperator" else None)
    batch = b.integer(1, 2)
    if dialect == "qoperator":
        first, p = b.quantized_input("a", shape, a, batch)
        second, q = b.quantized_input("b", shape, c, batch)
        operands = [first, *p, second, *q, *b.parameters("out", y)]
        return b.finish(b.node("QLinearAdd", operands, "sum", "com.microsoft"), y, quantize=False)
    result = b.node("Add", [b.activation("a", shape, a, batch), b.activation("b", shape, c, batch)], "sum")
    if b.pick(True, False):
        result = b.node("Relu", [result], "relu")
    return b.finish(result, y, quantize=True)


def _relu(b: Builder, dialect: str) -> onnx.ModelProto:
    x = b.quant(0.05)
    y = x if b.pick(True, False) else b.quant(0.04)
    return b.finish(b.node("Relu", [b.activation("x", _shape(b), x, b.integer(1, 2))], "relu"), y, quantize=True)


def _clip(b: Builder, dialect: str) -> onnx.ModelProto:
    x = b.quant(0.05)
    y = x if b.pick(True, False) else b.quant(0.04)
    low, high = sorted(float(v) for v in b.rng.uniform(-4, 6, 2))
    low, high = b.pick((0.0, 6.0), (low, high), (low, 1e9), (-1e9, high))
    bounds = [b.constant("low", np.array(low, np.float32)), b.constant("high", np.array(high, np.float32))]
    tensor = b.activation("x", _shape(b), x, b.integer(1, 2))
    return b.finish(b.node("Clip", [tensor, *bounds], "clip"), y, quantize=True)


def _pool_window(b: Builder) -> tuple[tuple[int, int], dict[str, Any], tuple[int, int, int]]:
    kernel = (b.integer(1, 4), b.integer(1, 4))
    pads = [min(p, k // 2) for p, k in zip(_pads(b, kernel), (*kernel, *kernel), strict=True)]
    height, width = _image(b, kernel, pads)
    attributes = _window_attributes(b, kernel, pads)
    if attributes.get("auto_pad") == "VALID":
        height, width = max(height, kernel[0]), max(width, kernel[1])
    if "auto_pad" not in attributes:
        attributes["ceil_mode"] = b.pick(0, 0, 1)
    attributes["kernel_shape"] = list(kernel)
    return kernel, attributes, (b.pick(*CHANNELS), height, width)


def _max_pool(b: Builder, dialect: str) -> onnx.ModelProto:
    _, attributes, shape = _pool_window(b)
    x = b.quant(0.05)
    batch = b.integer(1, 2)
    if dialect == "qoperator":
        tensor, _ = b.quantized_input("x", shape, x, batch)
        return b.finish(b.node("MaxPool", [tensor], "pool", **attributes), x, quantize=False)
    y = x if b.pick(True, False) else b.quant(0.04)
    return b.finish(b.node("MaxPool", [b.activation("x", shape, x, batch)], "pool", **attributes), y, quantize=True)


def _average_pool(b: Builder, dialect: str) -> onnx.ModelProto:
    _, attributes, shape = _pool_window(b)
    attributes["count_include_pad"] = b.pick(0, 1)
    x = b.quant(0.05)
    y = b.quant(0.03, x.dtype if dialect == "qoperator" else None)
    batch = b.integer(1, 2)
    if dialect == "qoperator":
        attributes["ceil_mode"] = 0
        tensor, parameters = b.quantized_input("x", shape, x, batch)
        operands = [tensor, *parameters, *b.parameters("out", y)]
        result = b.node("QLinearAveragePool", operands, "pool", "com.microsoft", **attributes)
        return b.finish(result, y, quantize=False)
    result = b.node("AveragePool", [b.activation("x", shape, x, batch)], "pool", **attributes)
    return b.finish(result, y, quantize=True)


def _global_average(b: Builder, dialect: str) -> onnx.ModelProto:
    shape = (b.pick(*CHANNELS), b.integer(1, 9), b.integer(1, 9))
    x = b.quant(0.05)
    y = b.quant(0.02, x.dtype if dialect == "qoperator" else None)
    batch = b.integer(1, 2)
    if dialect == "qoperator":
        tensor, parameters = b.quantized_input("x", shape, x, batch)
        operands = [tensor, *parameters, *b.parameters("out", y)]
        result = b.node("QLinearGlobalAveragePool", operands, "mean", "com.microsoft", channels_last=0)
        return b.finish(result, y, quantize=False)
    tensor = b.activation("x", shape, x, batch)
    if b.pick(True, False):
        return b.finish(b.node("GlobalAveragePool", [tensor], "mean"), y, quantize=True)
    axes = b.constant("axes", np.array(b.pick([-1, -2], [2, 3], [-2, -1], [3, 2]), np.int64))
    keep = b.pick(0, 1)
    return b.finish(b.node("ReduceMean", [tensor, axes], "mean", keepdims=keep), y, quantize=True)


def _reshape(b: Builder, dialect: str) -> onnx.ModelProto:
    channels, height, width = b.pick(*CHANNELS), b.integer(1, 6), b.integer(1, 6)
    x = b.quant(0.05)
    target = b.pick([0, -1], [-1, channels * height * width], [0, height * width, channels, 1], [0, 0, -1, 1])
    tensor = b.activation("x", (channels, height, width), x, 1)
    result = b.node("Reshape", [tensor, b.constant("shape", np.array(target, np.int64))], "reshaped")
    return b.finish(result, x, quantize=True)


def _flatten(b: Builder, dialect: str) -> onnx.ModelProto:
    shape = (b.pick(*CHANNELS), b.integer(1, 6), b.integer(1, 6))
    x = b.quant(0.05)
    tensor = b.activation("x", shape, x, b.integer(1, 2))
    return b.finish(b.node("Flatten", [tensor], "flat", axis=b.pick(1, -3)), x, quantize=True)


def _requantize(b: Builder, dialect: str) -> onnx.ModelProto:
    x, y = b.quant(0.05), b.quant(0.05 * b.pick(0.5, 1.0, 3.0))
    return b.finish(b.activation("x", _shape(b), x, b.integer(1, 2)), y, quantize=True)


BUILDERS: dict[str, tuple[Callable[[Builder, str], onnx.ModelProto], tuple[str, ...]]] = {
    "conv": (_conv, ("qdq", "qoperator")),
    "depthwise": (_depthwise, ("qdq", "qoperator")),
    "dense": (_dense, ("qdq", "qoperator")),
    "add": (_add, ("qdq", "qoperator")),
    "relu": (_relu, ("qdq",)),
    "clip": (_clip, ("qdq",)),
    "max_pool": (_max_pool, ("qdq", "qoperator")),
    "average_pool": (_average_pool, ("qdq", "qoperator")),
    "global_average": (_global_average, ("qdq", "qoperator")),
    "reshape": (_reshape, ("qdq",)),
    "flatten": (_flatten, ("qdq",)),
    "requantize": (_requantize, ("qdq",)),
}
"""Every operator with the dialects it exists in."""


def make_case(operator: str, seed: int) -> Case:
    """Build one case; the same operator and seed give the same model and input."""
    build, dialects = BUILDERS[operator]
    rng = np.random.default_rng([seed, sorted(BUILDERS).index(operator)])
    pot = bool(rng.integers(0, 2))
    dialect = dialects[int(rng.integers(len(dialects)))]
    builder = Builder(rng, pot)
    model = build(builder, dialect).SerializeToString(deterministic=True)
    name = f"{operator}-{seed}-{dialect}-{'pot' if pot else 'real'}"
    return Case(name, operator, seed, dialect, model, builder.values, pot)


def cases(per_operator: int, seed: int = 0) -> Iterator[Case]:
    """Yield ``per_operator`` cases of every operator."""
    for operator in BUILDERS:
        for index in range(per_operator):
            yield make_case(operator, seed * 1000 + index)
