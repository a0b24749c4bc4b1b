# SPDX-License-Identifier: Apache-2.0
"""Convolutions and products: Conv, Gemm, MatMul and their integer forms."""

from __future__ import annotations

import numpy as np
import onnx

from openvta.compiler.errors import ModelError
from openvta.compiler.importers._attributes import Attributes
from openvta.compiler.importers._convert import Converter, Handler
from openvta.compiler.importers._geometry import read_window
from openvta.compiler.importers._qoperands import bias_operand, input_operand, output_operand, weight_operand
from openvta.compiler.importers._values import (
    Const,
    ConvCore,
    DenseCore,
    PadStep,
    Pending,
    QConst,
    Same,
    Unsupported,
    Value,
)

CONV_ATTRIBUTES = ("auto_pad", "dilations", "group", "kernel_shape", "pads", "strides")


def _weights(converter: Converter, name: str, node: onnx.NodeProto, index: int) -> QConst:
    value = converter.required(name, node, index)
    if isinstance(value, QConst):
        return value
    if isinstance(value, Const):
        raise Unsupported("its weights are not quantized")
    raise Unsupported("its weights are computed at run time")


def _bias(converter: Converter, node: onnx.NodeProto, index: int) -> Const | QConst | None:
    value = converter.operand(node, index)
    if value is None or isinstance(value, (Const, QConst)):
        return value
    raise Unsupported("its bias is computed at run time")


def _pads_before(converter: Converter, node: onnx.NodeProto, name: str) -> tuple[str, tuple[int, int, int, int]]:
    """The dequantized tensor behind input 0, and real zeros put around it by a Pad in between."""
    value = converter.required(name, node, 0)
    if isinstance(value, Pending) and isinstance(value.core, Same) and len(value.steps) == 1:
        step = value.steps[0]
        if isinstance(step, PadStep):
            return value.core.tensor, step.pads
    return converter.dequantized_tensor(node, 0, name), (0, 0, 0, 0)


def conv_core(
    converter: Converter,
    name: str,
    node: onnx.NodeProto,
    tensor: str,
    extra: tuple[int, int, int, int],
    weight: QConst,
    bias: Const | QConst | None,
) -> tuple[ConvCore, tuple[int, ...]]:
    """Return the convolution of a node and its output shape; ``extra`` zeros already lie around the input."""
    attributes = Attributes(name, node, CONV_ATTRIBUTES)
    shape = converter.tensors[tensor].shape
    if len(shape) == 4:
        top, left, bottom, right = extra
        shape = (shape[0], shape[1], shape[2] + top + bottom, shape[3] + left + right)
    if weight.array.ndim != len(shape):
        raise ModelError(name, "weight shape", list(weight.array.shape), f"must have {len(shape)} dimensions")
    window = read_window(name, attributes, shape, weight.array.shape[2:])
    groups = attributes.integer("group", 1)
    outputs, per_group = weight.array.shape[:2]
    if groups < 1 or outputs < 1 or per_group * groups != shape[1] or outputs % groups:
        raise ModelError(name, "group", groups, f"{shape[1]} channels do not fit weights {list(weight.array.shape)}")
    if weight.per_channel and weight.axis != 0:
        raise Unsupported(f"weight scales along axis {weight.axis}, not along the output channels")
    total = [a + b for a, b in zip(window.pads, extra, strict=True)]
    pads = (total[0], total[1], total[2], total[3])
    core = ConvCore(tensor, weight, bias, window.strides, pads, groups)
    return core, (shape[0], outputs, *window.output)


def conv(converter: Converter, name: str, node: onnx.NodeProto) -> list[Value]:
    """Conv on dequantized values."""
    tensor, extra = _pads_before(converter, node, name)
    weight = _weights(converter, name, node, 1)
    core, shape = conv_core(converter, name, node, tensor, extra, weight, _bias(converter, node, 2))
    return [Pending(core, (), (shape,), node, name, (name,))]


def dense_core(
    converter: Converter, name: str, tensor: str, weight: QConst, bias: Const | QConst | None, *, transposed: bool
) -> tuple[DenseCore, tuple[int, ...]]:
    """Return a product of ``[N, C]`` with weights stored ``[O, C]`` (transposed) or ``[C, O]``, and its shape."""
    shape = converter.tensors[tensor].shape
    if weight.array.ndim != 2:
        raise Unsupported(f"weights of {weight.array.ndim} dimensions")
    if len(shape) != 2:
        raise Unsupported(f"an input of shape {list(shape)}, not N C")
    if not transposed:
        weight = QConst(np.ascontiguousarray(weight.array.T), weight.scale, weight.zero_point, 1 - weight.axis)
        if not (weight.per_channel or weight.zero_point.size > 1):
            weight = QConst(weight.array, weight.scale, weight.zero_point, 0)
    if (weight.per_channel or weight.zero_point.size > 1) and weight.axis != 0:
        raise Unsupported("weight scales along the input channels")
    if weight.array.shape[1] != shape[1]:
        raise ModelError(name, "weight shape", list(weight.array.shape), f"the input has {shape[1]} channels")
    return DenseCore(tensor, weight, bias), (shape[0], weight.array.shape[0])


def gemm(converter: Converter, name: str, node: onnx.NodeProto) -> list[Value]:
    """Gemm with constant quantized B on dequantized A."""
    attributes = Attributes(name, node, ("alpha", "beta", "transA", "transB"))
    bias = _bias(converter, node, 2)
    if attributes.number("alpha", 1.0) != 1.0 or (bias is not None and attributes.number("beta", 1.0) != 1.0):
        raise Unsupported("alpha or beta other than 1")
    if attributes.integer("transA", 0):
        raise Unsupported("a transposed input")
    tensor = converter.dequantized_tensor(node, 0, name)
    weight = _weights(converter, name, node, 1)
    transposed = attributes.integer("transB", 0) != 0
    core, shape = dense_core(converter, name, tensor, weight, bias, transposed=transposed)
    return [Pending(core, (), (shape,), node, name, (name,))]


def matmul(converter: Converter, name: str, node: onnx.NodeProto) -> list[Value]:
    """MatMul of a dequantized ``[N, C]`` with constant quantized weights ``[C, O]``."""
    Attributes(name, node, ())
    tensor = converter.dequantized_tensor(node, 0, name)
    weight = _weights(converter, name, node, 1)
    core, shape = dense_core(converter, name, tensor, weight, None, transposed=False)
    return [Pending(core, (), (shape,), node, name, (name,))]


def qlinear_conv(converter: Converter, name: str, node: onnx.NodeProto) -> list[Value]:
    """QLinearConv: x, scale, zero, w, scale, zero, output scale, zero, bias."""
    tensor = input_operand(converter, name, node, 0)
    weight = weight_operand(converter, name, node, 3, 0)
    q = output_operand(converter, name, node, 6, converter.tensors[tensor].dtype)
    bias = bias_operand(converter, name, node, 8, tensor, weight)
    core, shape = conv_core(converter, name, node, tensor, (0, 0, 0, 0), weight, bias)
    pending = Pending(core, (), (shape,), node, name, (name,))
    return [converter.quantized_result(pending, q)]


def qlinear_matmul(converter: Converter, name: str, node: onnx.NodeProto) -> list[Value]:
    """QLinearMatMul: a, scale, zero, b, scale, zero, output scale, zero."""
    tensor = input_operand(converter, name, node, 0)
    weight = weight_operand(converter, name, node, 3, 1)
    q = output_operand(converter, name, node, 6, converter.tensors[tensor].dtype)
    core, shape = dense_core(converter, name, tensor, weight, None, transposed=False)
    return [converter.quantized_result(Pending(core, (), (shape,), node, name, (name,)), q)]


def qgemm(converter: Converter, name: str, node: onnx.NodeProto) -> list[Value]:
    """QGemm of com.microsoft: a, scale, zero, b, scale, zero, c, output scale, zero."""
    attributes = Attributes(name, node, ("alpha", "transA", "transB"))
    if attributes.number("alpha", 1.0) != 1.0:
        raise Unsupported("alpha other than 1")
    if attributes.integer("transA", 0):
        raise Unsupported("a transposed input")
    transposed = attributes.integer("transB", 0) != 0
    tensor = input_operand(converter, name, node, 0)
    weight = weight_operand(converter, name, node, 3, 0 if transposed else 1)
    if converter.operand(node, 7) is None:
        raise Unsupported("a float result: the output has no scale")
    q = output_operand(converter, name, node, 7, converter.tensors[tensor].dtype)
    core, shape = dense_core(converter, name, tensor, weight, None, transposed=transposed)
    bias = bias_operand(converter, name, node, 6, tensor, core.weight)
    core = DenseCore(core.tensor, core.weight, bias)
    return [converter.quantized_result(Pending(core, (), (shape,), node, name, (name,)), q)]


HANDLERS: dict[tuple[str, str], Handler] = {
    ("", "Conv"): conv,
    ("", "Gemm"): gemm,
    ("", "MatMul"): matmul,
    ("", "QLinearConv"): qlinear_conv,
    ("", "QLinearMatMul"): qlinear_matmul,
    ("com.microsoft", "QGemm"): qgemm,
}
"""Importers of this module by domain and operator."""
