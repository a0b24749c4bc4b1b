# SPDX-License-Identifier: Apache-2.0
"""Operands of the operators that work on integers directly (QLinearConv and its kin)."""

from __future__ import annotations

import numpy as np
import onnx

from openvta.compiler.errors import ModelError
from openvta.compiler.importers._convert import Converter
from openvta.compiler.importers._quant import activation, constant, quantized_constant
from openvta.compiler.importers._values import Const, Ints, QConst, Quantization, Unsupported


def input_operand(converter: Converter, name: str, node: onnx.NodeProto, index: int) -> str:
    """Return the integer tensor of an activation operand whose scale and zero point follow it.

    Raises:
        Unsupported: a constant, or a scale or zero point other than the tensor's own.
    """
    value = converter.required(name, node, index)
    if not isinstance(value, Ints):
        raise Unsupported(f"input {index} is not a quantized activation")
    own = converter.quantization(value.tensor)
    scale = constant(name, "scale", converter.required(name, node, index + 1))
    zero = constant(name, "zero point", converter.operand(node, index + 2))
    stated = activation(name, scale, zero, own.dtype)
    if stated.dtype != own.dtype:
        raise ModelError(name, f"input {index + 2}", stated.dtype, f"the tensor's type is {own.dtype}")
    if stated != own:
        raise Unsupported("its input's scale or zero point is not the one the tensor was quantized with")
    return value.tensor


def weight_operand(converter: Converter, name: str, node: onnx.NodeProto, index: int, axis: int) -> QConst:
    """Return constant weights whose scales and zero points follow them."""
    array = constant(name, f"input {index}", converter.required(name, node, index))
    if array is None:
        raise ModelError(name, f"input {index}", "missing", "the operator needs weights")
    scale = constant(name, "scale", converter.required(name, node, index + 1))
    zero = constant(name, "zero point", converter.operand(node, index + 2))
    return quantized_constant(name, array, scale, zero, axis)


def output_operand(converter: Converter, name: str, node: onnx.NodeProto, index: int, default: str) -> Quantization:
    """Return the output's quantization from its scale at ``index`` and the zero point behind it."""
    scale = constant(name, "scale", converter.required(name, node, index))
    zero = constant(name, "zero point", converter.operand(node, index + 1))
    return activation(name, scale, zero, default)


def bias_operand(
    converter: Converter, name: str, node: onnx.NodeProto, index: int, tensor: str, weight: QConst
) -> QConst | None:
    """Return an int32 bias in units of input scale * weight scale, None where absent."""
    value = converter.operand(node, index)
    if value is None:
        return None
    if not isinstance(value, Const):
        raise Unsupported("its bias is not a constant")
    array = value.array.reshape(-1)
    if array.dtype != np.int32:
        raise ModelError(name, "bias type", array.dtype, "must be int32")
    count = weight.array.shape[0]
    if array.size != count:
        raise ModelError(name, "bias", f"{array.size} values", f"must have {count}, one for each output channel")
    scale = np.broadcast_to(converter.tensors[tensor].scale * weight.scale, (count,))
    return QConst(array, scale, np.zeros(1, np.int64), 0)
