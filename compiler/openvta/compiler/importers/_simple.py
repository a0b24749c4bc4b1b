# SPDX-License-Identifier: Apache-2.0
"""Quantization nodes, additions, clamps, poolings and changes of shape."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import onnx

from openvta.compiler.errors import ModelError
from openvta.compiler.graph import UINT8, NDArray
from openvta.compiler.importers._attributes import Attributes
from openvta.compiler.importers._convert import Converter, Handler
from openvta.compiler.importers._geometry import Window, read_window
from openvta.compiler.importers._qoperands import input_operand, output_operand
from openvta.compiler.importers._quant import activation, constant, quantize_constant, quantized_constant
from openvta.compiler.importers._values import (
    AddCore,
    AverageCore,
    ClipStep,
    Const,
    ConvCore,
    DenseCore,
    GlobalAverageCore,
    Ints,
    MaxPoolStep,
    PadStep,
    Pending,
    QConst,
    Real,
    ReshapeStep,
    Same,
    Step,
    Unsupported,
    Value,
)
from openvta.spec.arith import divisors
from openvta.spec.errors import SpecError

POOL_ATTRIBUTES = ("auto_pad", "ceil_mode", "dilations", "kernel_shape", "pads", "strides")
QUANTIZE_ATTRIBUTES = ("axis", "saturate", "block_size", "output_dtype", "precision")


def quantize_linear(converter: Converter, name: str, node: onnx.NodeProto) -> list[Value]:
    """QuantizeLinear of an activation or a constant."""
    attributes = Attributes(name, node, QUANTIZE_ATTRIBUTES)
    if attributes.integer("block_size", 0):
        raise Unsupported("block quantization")
    default = _output_type(attributes)
    scale = constant(name, "scale", converter.required(name, node, 1))
    zero = constant(name, "zero point", converter.operand(node, 2))
    value = converter.required(name, node, 0)
    if isinstance(value, Const):
        if value.array.dtype != np.float32:
            raise Unsupported(f"a constant of type {value.array.dtype}")
        axis = attributes.integer("axis", 1)
        return [Const(quantize_constant(name, value.array, scale, zero, axis, default))]
    if isinstance(value, QConst):
        raise Unsupported("a dequantized constant quantized again")
    if isinstance(value, Ints):
        raise ModelError(name, "input", "an integer tensor", "QuantizeLinear takes float values")
    q = activation(name, scale, zero, default)
    return [Ints(converter.quantize(node.input[0], value, q, node.output[0], name))]


def _output_type(attributes: Attributes) -> str:
    code = attributes.integer("output_dtype", 0)
    if code == 0:
        return UINT8
    return str(np.dtype(onnx.helper.tensor_dtype_to_np_dtype(code)).name) if code in (2, 3) else f"type {code}"


def dequantize_linear(converter: Converter, name: str, node: onnx.NodeProto) -> list[Value]:
    """DequantizeLinear of an activation or a constant."""
    attributes = Attributes(name, node, ("axis", "block_size", "output_dtype"))
    if attributes.integer("block_size", 0):
        raise Unsupported("block quantization")
    value = converter.required(name, node, 0)
    scale = constant(name, "scale", converter.required(name, node, 1))
    zero = constant(name, "zero point", converter.operand(node, 2))
    if isinstance(value, Const):
        return [quantized_constant(name, value.array, scale, zero, attributes.integer("axis", 1))]
    if not isinstance(value, Ints):
        raise ModelError(name, "input", "a float tensor", "DequantizeLinear takes integers")
    own = converter.quantization(value.tensor)
    stated = activation(name, scale, zero, own.dtype)
    if zero is None:
        stated = replace(stated, zero_point=0)
    if stated.dtype != own.dtype:
        raise ModelError(name, "zero point type", stated.dtype, f"must be the input's {own.dtype}")
    if stated != own:
        raise Unsupported("its scale or zero point is not the one the tensor was quantized with")
    shape = converter.tensors[value.tensor].shape
    return [Pending(Same(value.tensor), (), (shape,), node, name)]


def add(converter: Converter, name: str, node: onnx.NodeProto) -> list[Value]:
    """Add of two dequantized tensors, or of a bias to a product that has none."""
    Attributes(name, node, ())
    values = [converter.required(name, node, i) for i in (0, 1)]
    for i in (0, 1):
        layer, bias = values[i], values[1 - i]
        if isinstance(layer, Pending) and isinstance(bias, (Const, QConst)):
            return [_with_bias(layer, bias, node, name)]
    a, b = (converter.dequantized_tensor(node, i, name) for i in (0, 1))
    return [_sum(converter, name, node, a, b)]


def _sum(converter: Converter, name: str, node: onnx.NodeProto, a: str, b: str) -> Pending:
    shape, other = converter.tensors[a].shape, converter.tensors[b].shape
    if shape != other:
        raise Unsupported(f"shapes {list(shape)} and {list(other)} (broadcast)")
    return Pending(AddCore(a, b), (), (shape,), node, name, (name,))


def _with_bias(layer: Pending, bias: Const | QConst, node: onnx.NodeProto, name: str) -> Pending:
    core = layer.core
    if not isinstance(core, (ConvCore, DenseCore)) or core.bias is not None or layer.steps:
        raise Unsupported("the sum of an activation and a constant")
    shape = bias.array.shape
    channels = layer.shape[1]
    wanted = (channels, *(1,) * (len(layer.shape) - 2))
    trimmed = shape[len(shape) - len(wanted) :] if len(shape) > len(wanted) else shape
    if trimmed != wanted or math.prod(shape) != channels:
        raise Unsupported(f"the sum of an activation and a constant of shape {list(shape)}")
    if isinstance(bias, QConst) and bias.per_channel and math.prod(shape[: bias.axis]) != 1:
        raise Unsupported("a bias with scales along another axis")
    return replace(layer, core=replace(core, bias=bias), node=node, name=name, origin=(*layer.origin, name))


def relu(converter: Converter, name: str, node: onnx.NodeProto) -> list[Value]:
    """Relu, on dequantized values or on integers."""
    Attributes(name, node, ())
    return [_clamped(converter, name, node, 0.0, None)]


def clip(converter: Converter, name: str, node: onnx.NodeProto) -> list[Value]:
    """Clip with constant bounds, as inputs or (up to operator set 10) as attributes."""
    attributes = Attributes(name, node, ("min", "max"))
    bounds: list[float | None] = []
    for index, key in ((1, "min"), (2, "max")):
        array = constant(name, key, converter.operand(node, index))
        if array is None:
            bounds.append(attributes.optional_number(key))
            continue
        if array.size != 1:
            raise ModelError(name, key, list(array.shape), "must be one number")
        bounds.append(float(array.reshape(-1)[0]))
    for key, bound in zip(("min", "max"), bounds, strict=True):
        if bound is not None and math.isnan(bound):
            raise ModelError(name, key, bound, "must be a number")
    return [_clamped(converter, name, node, bounds[0], bounds[1])]


def _clamped(converter: Converter, name: str, node: onnx.NodeProto, low: float | None, high: float | None) -> Value:
    value = converter.required(name, node, 0)
    if isinstance(value, Const):
        return Const(_clamp_constant(value.array, low, high))
    if isinstance(value, Pending):
        return value.then(ClipStep(low, high), value.shape, node, name)
    if isinstance(value, Ints):
        own = converter.quantization(value.tensor)
        real = [None if b is None else (b - own.zero_point) * own.scale for b in (low, high)]
        shape = converter.tensors[value.tensor].shape
        pending = Pending(Same(value.tensor), (ClipStep(real[0], real[1]),), (shape, shape), node, name, (name,))
        return converter.quantized_result(pending, own)
    raise Unsupported("its input is not quantized")


def _clamp_constant(array: NDArray, low: float | None, high: float | None) -> NDArray:
    least = array.min(initial=0) if low is None else low
    most = array.max(initial=0) if high is None else high
    if np.issubdtype(array.dtype, np.integer):
        least, most = int(least), int(most)
    result: NDArray = np.minimum(np.maximum(array, least), most).astype(array.dtype)
    return result


def max_pool(converter: Converter, name: str, node: onnx.NodeProto) -> list[Value]:
    """MaxPool, on dequantized values or on integers."""
    attributes = Attributes(name, node, (*POOL_ATTRIBUTES, "storage_order"))
    if len([o for o in node.output if o]) > 1:
        raise Unsupported("the indices of the maxima")
    value = converter.required(name, node, 0)
    shape = _activation_shape(converter, value)
    window = read_window(name, attributes, shape, None, ceil_mode=True)
    pads = window.covering((shape[2], shape[3]))
    _check_cover(window, (shape[2], shape[3]))
    step = MaxPoolStep(window.kernel, window.strides, pads)
    return [_stepped(converter, name, node, value, step, (*shape[:2], *window.output))]


def _check_cover(window: Window, size: tuple[int, int]) -> None:
    for axis in (0, 1):
        before = window.pads[axis]
        last = (window.output[axis] - 1) * window.strides[axis]
        if window.kernel[axis] <= before or last >= size[axis] + before:
            raise Unsupported("a window that holds nothing but padding")


def _activation_shape(converter: Converter, value: Value) -> tuple[int, ...]:
    if isinstance(value, Pending):
        return value.shape
    if isinstance(value, Ints):
        return converter.tensors[value.tensor].shape
    if isinstance(value, Real):
        raise Unsupported("its input is not quantized")
    raise Unsupported("its input is a constant")


def _any_shape(converter: Converter, value: Value) -> tuple[int, ...]:
    """The shape of a constant or an activation."""
    return value.array.shape if isinstance(value, Const) else _activation_shape(converter, value)


def _stepped(
    converter: Converter, name: str, node: onnx.NodeProto, value: Value, step: Step, shape: tuple[int, ...]
) -> Value:
    """The value after a step that works alike on real values and on integers."""
    if isinstance(value, Pending):
        return value.then(step, shape, node, name)
    if isinstance(value, Ints):
        own = converter.quantization(value.tensor)
        shapes = (converter.tensors[value.tensor].shape, shape)
        return converter.quantized_result(Pending(Same(value.tensor), (step,), shapes, node, name, (name,)), own)
    raise Unsupported("its input is not quantized")


def _average(converter: Converter, name: str, node: onnx.NodeProto, attributes: Attributes, tensor: str) -> Pending:
    shape = converter.tensors[tensor].shape
    window = read_window(name, attributes, shape, None, ceil_mode=True)
    size = (shape[2], shape[3])
    include = attributes.integer("count_include_pad", 0) != 0
    try:
        counts = divisors(size, window.output, window.kernel, window.strides, window.pads, count_include_pad=include)
    except SpecError:
        raise Unsupported("a window that holds nothing but padding") from None
    core = AverageCore(tensor, window.kernel, window.strides, window.covering(size), counts)
    return Pending(core, (), ((*shape[:2], *window.output),), node, name, (name,))


def average_pool(converter: Converter, name: str, node: onnx.NodeProto) -> list[Value]:
    """AveragePool of dequantized values."""
    attributes = Attributes(name, node, (*POOL_ATTRIBUTES, "count_include_pad"))
    return [_average(converter, name, node, attributes, converter.dequantized_tensor(node, 0, name))]


def _global(converter: Converter, name: str, node: onnx.NodeProto, tensor: str) -> Pending:
    shape = converter.tensors[tensor].shape
    if len(shape) != 4:
        raise Unsupported(f"an input of shape {list(shape)}, not N C H W")
    return Pending(GlobalAverageCore(tensor), (), ((*shape[:2], 1, 1),), node, name, (name,))


def global_average_pool(converter: Converter, name: str, node: onnx.NodeProto) -> list[Value]:
    """GlobalAveragePool of dequantized values."""
    Attributes(name, node, ())
    return [_global(converter, name, node, converter.dequantized_tensor(node, 0, name))]


def reduce_mean(converter: Converter, name: str, node: onnx.NodeProto) -> list[Value]:
    """ReduceMean over H and W (axes as attribute or input, negative ones too)."""
    attributes = Attributes(name, node, ("axes", "keepdims", "noop_with_empty_axes"))
    listed = constant(name, "axes", converter.operand(node, 1))
    axes = attributes.integers("axes") if listed is None else tuple(int(v) for v in listed.reshape(-1))
    value = converter.required(name, node, 0)
    shape = _activation_shape(converter, value)
    if len(shape) != 4:
        raise Unsupported(f"an input of shape {list(shape)}, not N C H W")
    for axis in axes or ():
        if not -4 <= axis < 4:
            raise ModelError(name, "axes", axis, "must be in -4..3")
    if {a % 4 for a in axes or ()} != {2, 3}:
        raise Unsupported(f"a mean over axes {list(axes or ())}, not over H and W")
    pending = _global(converter, name, node, converter.dequantized_tensor(node, 0, name))
    if attributes.integer("keepdims", 1):
        return [pending]
    return [replace(pending.then(ReshapeStep(), shape[:2], node, name), origin=(name, name))]


def pad(converter: Converter, name: str, node: onnx.NodeProto) -> list[Value]:
    """Pad with real zeros around H and W, for the convolution behind it."""
    attributes = Attributes(name, node, ("mode", "pads", "value"))
    if attributes.text("mode", "constant") != "constant":
        raise Unsupported(f"pad mode {attributes.text('mode', 'constant')}")
    if converter.operand(node, 3) is not None:
        raise Unsupported("a pad along chosen axes")
    listed = constant(name, "pads", converter.operand(node, 1))
    pads = attributes.integers("pads") if listed is None else tuple(int(v) for v in listed.reshape(-1))
    filling = constant(name, "value", converter.operand(node, 2))
    if filling is not None and filling.size != 1:
        raise ModelError(name, "value", list(filling.shape), "must be one number")
    fill = attributes.number("value", 0.0) if filling is None else float(filling.reshape(-1)[0])
    value = converter.required(name, node, 0)
    if not isinstance(value, Pending) or len(value.shape) != 4 or pads is None or len(pads) != 8:
        raise Unsupported("a pad of something other than a dequantized N C H W tensor")
    if fill != 0.0:
        raise Unsupported(f"a pad value of {fill}, not 0")
    if min(pads) < 0 or any(pads[i] for i in (0, 1, 4, 5)):
        raise Unsupported(f"pads {list(pads)}")
    n, c, h, w = value.shape
    around = (pads[2], pads[3], pads[6], pads[7])
    return [value.then(PadStep(around), (n, c, h + around[0] + around[2], w + around[1] + around[3]), node, name)]


def reshape(converter: Converter, name: str, node: onnx.NodeProto) -> list[Value]:
    """Reshape to a constant shape that keeps the batch."""
    attributes = Attributes(name, node, ("allowzero",))
    target = constant(name, "shape", converter.required(name, node, 1))
    if target is None or not np.issubdtype(target.dtype, np.integer):
        raise ModelError(name, "shape", "missing", "must be a list of integers")
    wanted = [int(v) for v in target.reshape(-1)]
    value = converter.required(name, node, 0)
    shape = _any_shape(converter, value)
    new = _resolved(name, shape, wanted, zero_copies=not attributes.integer("allowzero", 0))
    return [_reshaped(converter, name, node, value, new)]


def _resolved(name: str, shape: tuple[int, ...], wanted: list[int], *, zero_copies: bool) -> tuple[int, ...]:
    dims = list(wanted)
    for i, dim in enumerate(dims):
        if dim == 0 and zero_copies:
            if i >= len(shape):
                raise ModelError(name, "shape", wanted, f"copies dimension {i} of {list(shape)}")
            dims[i] = shape[i]
    total = math.prod(shape)
    if dims.count(-1) == 1:
        rest = -math.prod(dims)
        if rest <= 0 or total % rest:
            raise ModelError(name, "shape", wanted, f"does not divide the {total} values of {list(shape)}")
        dims[dims.index(-1)] = total // rest
    if min(dims, default=1) < 1 or math.prod(dims) != total:
        raise ModelError(name, "shape", wanted, f"does not hold the {total} values of {list(shape)}")
    return tuple(dims)


def _reshaped(converter: Converter, name: str, node: onnx.NodeProto, value: Value, new: tuple[int, ...]) -> Value:
    if isinstance(value, Const):
        return Const(value.array.reshape(new))
    shape = _activation_shape(converter, value)
    if not new or new[0] != shape[0]:
        raise Unsupported(f"a reshape from {list(shape)} to {list(new)}, which moves the batch")
    return _stepped(converter, name, node, value, ReshapeStep(), new)


def flatten(converter: Converter, name: str, node: onnx.NodeProto) -> list[Value]:
    """Flatten behind the batch."""
    axis = Attributes(name, node, ("axis",)).integer("axis", 1)
    value = converter.required(name, node, 0)
    shape = _any_shape(converter, value)
    if not -len(shape) <= axis <= len(shape):
        raise ModelError(name, "axis", axis, f"must be in {-len(shape)}..{len(shape)}")
    axis = axis + len(shape) if axis < 0 else axis
    new = (math.prod(shape[:axis]), math.prod(shape[axis:]))
    return [_reshaped(converter, name, node, value, new)]


def squeeze(converter: Converter, name: str, node: onnx.NodeProto) -> list[Value]:
    """Squeeze and Unsqueeze of dimensions behind the batch."""
    attributes = Attributes(name, node, ("axes",))
    listed = constant(name, "axes", converter.operand(node, 1))
    axes = attributes.integers("axes") if listed is None else tuple(int(v) for v in listed.reshape(-1))
    value = converter.required(name, node, 0)
    shape = _any_shape(converter, value)
    constants = isinstance(value, Const)
    rank = len(shape) + (0 if node.op_type == "Squeeze" else len(axes or ()))
    if any(not -rank <= a < rank for a in axes or ()) or len({a % rank for a in axes or ()}) != len(axes or ()):
        raise ModelError(name, "axes", list(axes or ()), f"must be different numbers in {-rank}..{rank - 1}")
    if node.op_type == "Squeeze":
        chosen = {a % rank for a in axes} if axes else {i for i, d in enumerate(shape) if d == 1 and (i or constants)}
        if any(shape[a] != 1 for a in chosen):
            raise ModelError(name, "axes", sorted(chosen), f"only dimensions of 1 of {list(shape)} can go")
        new = tuple(d for i, d in enumerate(shape) if i not in chosen)
    else:
        chosen = {a % rank for a in axes or ()}
        rest = iter(shape)
        new = tuple(1 if i in chosen else next(rest) for i in range(rank))
    if 0 in chosen and not constants:
        raise Unsupported("a change of the batch dimension")
    return [_reshaped(converter, name, node, value, new)]


def transpose(converter: Converter, name: str, node: onnx.NodeProto) -> list[Value]:
    """Transpose of a constant, or one that only moves dimensions of 1."""
    order = Attributes(name, node, ("perm",)).integers("perm")
    value = converter.required(name, node, 0)
    if isinstance(value, (Const, QConst)) and order is not None:
        rank = value.array.ndim
        if sorted(order) != list(range(rank)):
            raise ModelError(name, "perm", list(order), f"must be an order of 0..{rank - 1}")
    if isinstance(value, QConst):
        axis = len(value.array.shape) - 1 - value.axis if order is None else tuple(order).index(value.axis)
        return [QConst(np.transpose(value.array, order), value.scale, value.zero_point, axis)]
    if isinstance(value, Const):
        return [Const(np.transpose(value.array, order))]
    shape = _activation_shape(converter, value)
    order = tuple(reversed(range(len(shape)))) if order is None else order
    if sorted(order) != list(range(len(shape))):
        raise ModelError(name, "perm", list(order), f"must be an order of 0..{len(shape) - 1}")
    moved = [a for a in order if shape[a] != 1]
    if order[0] != 0 or moved != sorted(moved):
        raise Unsupported(f"a transposition {list(order)} of {list(shape)}")
    return [_reshaped(converter, name, node, value, tuple(shape[a] for a in order))]


def identity(converter: Converter, name: str, node: onnx.NodeProto) -> list[Value]:
    """Identity, and Dropout as it is at inference."""
    if node.op_type == "Dropout" and len([o for o in node.output if o]) > 1:
        raise Unsupported("the mask of a dropout")
    training = converter.operand(node, 2)
    if training is not None and not (isinstance(training, Const) and not training.array.any()):
        raise Unsupported("a dropout in training mode")
    value = converter.required(name, node, 0)
    if isinstance(value, Real) and node.output[0] in {o.name for o in converter.source.model.graph.output}:
        raise Unsupported("a copy of a float value")
    if isinstance(value, Pending):
        return [replace(value, node=node, name=name) if value.steps or value.origin else value]
    return [value]


def constant_node(converter: Converter, name: str, node: onnx.NodeProto) -> list[Value]:
    """Constant."""
    return [Const(converter.constant_attribute(name, node))]


def qlinear_add(converter: Converter, name: str, node: onnx.NodeProto) -> list[Value]:
    """QLinearAdd of com.microsoft: a, scale, zero, b, scale, zero, output scale, zero."""
    Attributes(name, node, ())
    a, b = input_operand(converter, name, node, 0), input_operand(converter, name, node, 3)
    q = output_operand(converter, name, node, 6, converter.tensors[a].dtype)
    return [converter.quantized_result(_sum(converter, name, node, a, b), q)]


def _channels_first(attributes: Attributes) -> None:
    if attributes.integer("channels_last", 0):
        raise Unsupported("channels last")


def qlinear_global_average_pool(converter: Converter, name: str, node: onnx.NodeProto) -> list[Value]:
    """QLinearGlobalAveragePool of com.microsoft: x, scale, zero, output scale, zero."""
    _channels_first(Attributes(name, node, ("channels_last",)))
    tensor = input_operand(converter, name, node, 0)
    q = output_operand(converter, name, node, 3, converter.tensors[tensor].dtype)
    return [converter.quantized_result(_global(converter, name, node, tensor), q)]


def qlinear_average_pool(converter: Converter, name: str, node: onnx.NodeProto) -> list[Value]:
    """QLinearAveragePool of com.microsoft: x, scale, zero, output scale, zero."""
    attributes = Attributes(name, node, (*POOL_ATTRIBUTES, "count_include_pad", "channels_last"))
    _channels_first(attributes)
    tensor = input_operand(converter, name, node, 0)
    q = output_operand(converter, name, node, 3, converter.tensors[tensor].dtype)
    return [converter.quantized_result(_average(converter, name, node, attributes, tensor), q)]


HANDLERS: dict[tuple[str, str], Handler] = {
    ("", "QuantizeLinear"): quantize_linear,
    ("", "DequantizeLinear"): dequantize_linear,
    ("com.microsoft", "QuantizeLinear"): quantize_linear,
    ("com.microsoft", "DequantizeLinear"): dequantize_linear,
    ("", "Add"): add,
    ("", "Relu"): relu,
    ("", "Clip"): clip,
    ("", "MaxPool"): max_pool,
    ("", "AveragePool"): average_pool,
    ("", "GlobalAveragePool"): global_average_pool,
    ("", "ReduceMean"): reduce_mean,
    ("", "Pad"): pad,
    ("", "Reshape"): reshape,
    ("", "Flatten"): flatten,
    ("", "Squeeze"): squeeze,
    ("", "Unsqueeze"): squeeze,
    ("", "Transpose"): transpose,
    ("", "Identity"): identity,
    ("", "Dropout"): identity,
    ("", "Constant"): constant_node,
    ("com.microsoft", "QLinearAdd"): qlinear_add,
    ("com.microsoft", "QLinearGlobalAveragePool"): qlinear_global_average_pool,
    ("com.microsoft", "QLinearAveragePool"): qlinear_average_pool,
}
"""Importers of this module by domain and operator."""
