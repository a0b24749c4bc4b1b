# SPDX-License-Identifier: Apache-2.0
"""Walks a model's nodes and builds the integer graph.

Float values between a DequantizeLinear and the next QuantizeLinear are kept as expressions (``Pending``). A
QuantizeLinear lowers its expression to integer nodes; what cannot be lowered, or is never quantized, becomes a host
part that runs the model's own node in float.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import onnx

from openvta.compiler import ops
from openvta.compiler.errors import ModelError
from openvta.compiler.graph import FLOAT32, RANGES, Array, Graph, NDArray, Node, Tensor
from openvta.compiler.importers import _host
from openvta.compiler.importers._load import DEFAULT_DOMAINS, Source, to_array
from openvta.compiler.importers._lower import (
    add_requant,
    check_bound,
    largest,
    layer_bias,
    layer_requant,
    layer_weights,
    single_requant,
)
from openvta.compiler.importers._values import (
    AddCore,
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
    Quantization,
    Real,
    ReshapeStep,
    Same,
    Unsupported,
    Value,
)
from openvta.compiler.importers.limits import Limits
from openvta.spec.arith import quantize_array

Handler = Callable[["Converter", str, onnx.NodeProto], "list[Value]"]
"""Imports one node: returns the value of each output, or raises Unsupported with a reason."""


@dataclass(frozen=True)
class HostPart:
    """A node of the model that stays on the host: its name, its operator and why."""

    node: str
    operator: str
    reason: str

    def __str__(self) -> str:
        return f"{self.node} ({self.operator}): {self.reason}"


class Converter:
    """Builds one graph; used once."""

    def __init__(
        self, source: Source, batch: int | None, handlers: Mapping[tuple[str, str], Handler], limits: Limits
    ) -> None:
        self.limits = limits
        self.source = source
        self.handlers = handlers
        self.values: dict[str, Value] = {name: Const(a) for name, a in source.constants.items()}
        self.tensors: dict[str, Tensor] = {}
        self.nodes: list[Node] = []
        self.notes: list[str] = []
        self.hosts: list[HostPart] = []
        self.batch = 1 if batch is None else batch
        self._asked_batch = batch
        self._node_names: dict[str, None] = {}
        self._quantized: dict[tuple[str, Quantization], str] = {}
        self._dequantized: dict[str, str] = {}
        self._real: dict[str, str] = {}
        self._integral: dict[str, str] = {}
        self.inputs: list[str] = []

    # the walk

    def run(self) -> Graph:
        """Convert the whole model."""
        self._inputs()
        for name, node in zip(self.source.names, self.source.nodes, strict=True):
            self._convert(name, node)
        outputs = tuple(self._output(value.name) for value in self.source.model.graph.output)
        if not outputs:
            raise ModelError(self.source.label, "outputs", 0, "the model has no outputs")
        if len(set(outputs)) != len(outputs):
            raise ModelError(self.source.label, "outputs", outputs, "two outputs are the same value")
        graph = Graph(self.source.model.graph.name or "model", (), (), tuple(self.inputs), outputs)
        return graph.rebuilt(self.nodes, self.tensors.values())

    def _convert(self, name: str, node: onnx.NodeProto) -> None:
        for operand in node.input:
            if operand and operand not in self.values:
                raise ModelError(name, "input", operand, "no node, input or constant defines it")
        domain = "" if node.domain in DEFAULT_DOMAINS else node.domain
        handler = self.handlers.get((domain, node.op_type))
        try:
            if handler is None:
                raise Unsupported("the accelerator has no such operator")
            found = handler(self, name, node)
        except Unsupported as reason:
            found = self.host(name, node, str(reason))
        for output, value in zip(node.output, found, strict=False):
            if output:
                self.values[output] = value

    def _inputs(self) -> None:
        for info in self.source.model.graph.input:
            if info.name in self.values:
                continue
            if not info.type.HasField("tensor_type"):
                raise ModelError(f"input '{info.name}'", "type", "not a tensor", "inputs must be tensors")
            kind = info.type.tensor_type.elem_type
            shape = self._input_shape(info)
            where = f"input '{info.name}'"
            if kind == onnx.TensorProto.FLOAT:
                tensor = Tensor(info.name, shape, FLOAT32)
                value: Value = Real(info.name)
            elif kind in (onnx.TensorProto.INT8, onnx.TensorProto.UINT8):
                dtype = "int8" if kind == onnx.TensorProto.INT8 else "uint8"
                q = self._adopted(info.name, dtype)
                tensor = Tensor(info.name, shape, dtype, q.scale, q.zero_point)
                if len(shape) not in (2, 4):
                    raise ModelError(where, "shape", shape, "a quantized input is N C or N C H W")
                value = Ints(info.name)
            else:
                raise ModelError(where, "type", kind, "must be float32, int8 or uint8")
            self.tensors[info.name] = tensor
            self.values[info.name] = value
            self.inputs.append(info.name)

    def _input_shape(self, info: onnx.ValueInfoProto) -> tuple[int, ...]:
        where = f"input '{info.name}'"
        if not info.type.tensor_type.HasField("shape"):
            raise ModelError(where, "shape", "unknown", "the model must state the shape of its inputs")
        shape: list[int] = []
        for i, dim in enumerate(info.type.tensor_type.shape.dim):
            fixed = dim.dim_value if dim.HasField("dim_value") else 0
            if i == 0 and fixed == 0:
                fixed = self.batch
            elif i == 0 and self._asked_batch not in (None, fixed):
                raise ModelError(where, "batch", self._asked_batch, f"the model's batch is fixed to {fixed}")
            if not 1 <= fixed < 1 << 31:
                label = dim.dim_param or dim.dim_value
                raise ModelError(where, f"shape[{i}]", label, "must be a known size >= 1 (only the batch may be open)")
            shape.append(fixed)
        if not shape:
            raise ModelError(where, "shape", "[]", "an input has at least one dimension")
        self._check_size(info.name, tuple(shape))
        self.batch = shape[0]
        return tuple(shape)

    def _adopted(self, name: str, dtype: str) -> Quantization:
        """The quantization the first reader of an integer model input states for it."""
        for node in self.source.nodes:
            for i, operand in enumerate(node.input):
                scaled = node.op_type == "DequantizeLinear" or node.op_type.startswith(("QLinear", "QGemm"))
                if operand != name or not scaled or i + 1 >= len(node.input):
                    continue
                scale = self.source.constants.get(node.input[i + 1])
                zero = self.source.constants.get(node.input[i + 2]) if i + 2 < len(node.input) else None
                if scale is not None and scale.size == 1 and np.isfinite(scale).all() and (scale > 0).all():
                    point = 0 if zero is None or zero.size != 1 else int(zero.reshape(-1)[0])
                    low, high = RANGES[dtype]
                    return Quantization(dtype, float(np.float32(scale.reshape(-1)[0])), min(max(point, low), high))
        return Quantization(dtype, 1.0, 0)

    def _output(self, name: str) -> str:
        where = f"output '{name}'"
        if name not in self.values:
            raise ModelError(where, "name", name, "no node defines it")
        value = self.values[name]
        if isinstance(value, Ints):
            return value.tensor
        if isinstance(value, (Const, QConst)):
            raise ModelError(where, "value", "a constant", "an output must depend on an input")
        return self.real(name)

    # names

    def fresh(self, name: str) -> str:
        """Return a tensor name that is not taken, ``name`` if it is free."""
        base, count, found = name or "tensor", 0, name or "tensor"
        while found in self.tensors:
            count += 1
            found = f"{base}#{count}"
        return found

    def node_name(self, name: str) -> str:
        """Return and take a node name, ``name`` if it is free."""
        count, found = 0, name
        while found in self._node_names:
            count += 1
            found = f"{name}#{count}"
        self._node_names[found] = None
        return found

    def new_tensor(self, name: str, shape: tuple[int, ...], q: Quantization | None) -> str:
        """Add a tensor, float if ``q`` is None, and return its name."""
        label = self.fresh(name)
        self._check_size(label, shape)
        if q is None:
            self.tensors[label] = Tensor(label, shape, FLOAT32)
        else:
            if len(shape) not in (2, 4):
                raise Unsupported(f"a quantized tensor of shape {list(shape)}, not N C or N C H W")
            self.tensors[label] = Tensor(label, shape, q.dtype, q.scale, q.zero_point)
        return label

    def _check_size(self, label: str, shape: tuple[int, ...]) -> None:
        if math.prod(shape) > self.limits.tensor_values:
            raise ModelError(f"tensor '{label}'", "shape", list(shape), f"at most {self.limits.tensor_values} values")

    # operands

    def operand(self, node: onnx.NodeProto, index: int) -> Value | None:
        """Return the value of an operand, None if it is absent."""
        if index >= len(node.input) or not node.input[index]:
            return None
        return self.values[node.input[index]]

    def required(self, name: str, node: onnx.NodeProto, index: int) -> Value:
        """Return the value of an operand; ModelError if it is absent."""
        value = self.operand(node, index)
        if value is None:
            raise ModelError(name, "inputs", len(node.input), f"{node.op_type} needs input {index}")
        return value

    def quantization(self, tensor: str) -> Quantization:
        """Return the quantization of an integer tensor."""
        found = self.tensors[tensor]
        return Quantization(found.dtype, found.scale, found.zero_point)

    def dequantized_tensor(self, node: onnx.NodeProto, index: int, name: str) -> str:
        """Return the integer tensor whose dequantized value an operand is.

        Steps behind the DequantizeLinear are done on the integers where that is exact.

        Raises:
            Unsupported: the operand is not a dequantized tensor.
        """
        value = self.required(name, node, index)
        key = node.input[index]
        if isinstance(value, Pending):
            if isinstance(value.core, Same):
                if key not in self._integral:
                    self._integral[key] = self._steps_on_grid(value)
                return self._integral[key]
            raise Unsupported(f"its input comes from {value.name} without being quantized")
        if isinstance(value, Real):
            raise Unsupported("its input is not quantized")
        raise Unsupported("its input is a constant or not dequantized")

    def _steps_on_grid(self, value: Pending) -> str:
        core = value.core
        if not isinstance(core, Same):
            raise Unsupported("its input is not quantized")
        q = self.quantization(core.tensor)
        for step in value.steps:
            if isinstance(step, ClipStep) and not self._on_grid(step, q):
                raise Unsupported("the bounds of the clip before it are not multiples of its scale")
        return self._apply_steps(value, core.tensor, 0, f"{value.node.output[0]}:int")

    @staticmethod
    def _on_grid(step: ClipStep, q: Quantization) -> bool:
        low, high = RANGES[q.dtype]
        least, most = ((v - q.zero_point) * Fraction(q.scale) for v in (low, high))

        def free(bound: float | None, *, lower: bool) -> bool:
            if bound is None or not np.isfinite(bound):
                return bound is None or (bound < 0) == lower
            exact = Fraction(bound)
            if least <= exact <= most:
                return (exact / Fraction(q.scale)).denominator == 1
            return (exact < least) == lower

        return free(step.low, lower=True) and free(step.high, lower=False)

    # lowering

    def quantize(self, key: str, value: Value, q: Quantization, hint: str, origin: str) -> str:
        """Return the integer tensor that QuantizeLinear makes of a value of the model.

        ``key`` is the model's name of the value, ``hint`` the name for the result, ``origin`` the quantizing node.
        """
        memo = (key, q)
        if memo in self._quantized:
            return self._quantized[memo]
        if isinstance(value, Pending):
            try:
                tensor = self._lower(value, q, hint, origin)
            except Unsupported as reason:
                self._real[key] = self._host_pending(key, value, str(reason))
                tensor = self._quantize_real(self._real[key], q, hint, origin)
        elif isinstance(value, Real):
            tensor = self._quantize_real(value.tensor, q, hint, origin)
        else:
            raise Unsupported("a constant activation")
        self._quantized[memo] = tensor
        return tensor

    def quantized_result(self, value: Pending, q: Quantization) -> Value:
        """Return the result of an operator on integers: its expression quantized, under the node's own names.

        Raises:
            Unsupported: the accelerator cannot do it.
        """
        return Ints(self._lower(value, q, value.node.output[0], value.name))

    def constant_attribute(self, name: str, node: onnx.NodeProto) -> NDArray:
        """Return the value of a Constant node; ModelError if it has none or another kind."""
        for attribute in node.attribute:
            if attribute.name == "value" and attribute.type == onnx.AttributeProto.TENSOR:
                return to_array(attribute.t, name, self.limits)
            if attribute.name == "value_float":
                return np.array(attribute.f, np.float32)
            if attribute.name == "value_int":
                return np.array(attribute.i, np.int64)
            if attribute.name == "value_floats":
                return np.array(attribute.floats, np.float32)
            if attribute.name == "value_ints":
                return np.array(attribute.ints, np.int64)
        raise ModelError(name, "value", "missing", "a Constant node holds one tensor or number")

    def _quantize_real(self, source: str, q: Quantization, hint: str, origin: str) -> str:
        tensor = self.new_tensor(hint, self.tensors[source].shape, q)
        node = ops.Quantize(self.node_name(origin), (source,), (tensor,), origin=(origin,))
        self.nodes.append(node)
        return tensor

    def _lower(self, value: Pending, q: Quantization, hint: str, origin: str) -> str:
        """Emit the integer nodes of an expression; nothing is emitted if Unsupported is raised."""
        marks = len(self.nodes), len(self.tensors), len(self._node_names)
        try:
            return self._lower_steps(value, q, hint, origin)
        except Unsupported:
            del self.nodes[marks[0] :]
            while len(self.tensors) > marks[1]:
                self.tensors.popitem()
            while len(self._node_names) > marks[2]:
                self._node_names.popitem()
            raise

    def _lower_steps(self, value: Pending, q: Quantization, hint: str, origin: str) -> str:
        clips = 0
        while clips < len(value.steps) and isinstance(value.steps[clips], ClipStep):
            clips += 1
        origins = (*value.origin[: len(value.origin) - len(value.steps) + clips], origin)
        last = clips == len(value.steps)
        label = hint if last else f"{hint}:0"
        core = value.core
        if isinstance(core, Same) and self.quantization(core.tensor) == q:
            return self._apply_steps(value, core.tensor, 0, hint)
        bounds = (RANGES[q.dtype][0], RANGES[q.dtype][1])
        for step in value.steps[:clips]:
            if isinstance(step, ClipStep):
                low, high = self._integer_bounds(step, q)
                bounds = (min(max(bounds[0], low), high), max(min(bounds[1], high), low))
        tensor = self._emit_core(value, q, bounds, label, origins)
        return self._apply_steps(value, tensor, clips, hint)

    @staticmethod
    def _integer_bounds(step: ClipStep, q: Quantization) -> tuple[int, int]:
        """A real clamp in the integers of ``q``: quantization is monotone, so both orders give the same result."""
        least, most = RANGES[q.dtype]
        bounds = [np.inf * sign if b is None else b for b, sign in ((step.low, -1), (step.high, 1))]
        low, high = (int(v) for v in quantize_array(bounds, q.scale, q.zero_point, least, most))
        return (high, high) if low > high else (low, high)

    def _emit_core(
        self, value: Pending, q: Quantization, bounds: tuple[int, int], label: str, origin: tuple[str, ...]
    ) -> str:
        core, shape = value.core, value.shapes[0]
        base = next((o for o in origin), label)
        if isinstance(core, (ConvCore, DenseCore)):
            return self._emit_layer(core, shape, q, bounds, label, origin)
        if isinstance(core, AddCore):
            pair, rule = add_requant(self.tensors[core.a], self.tensors[core.b], q)
            tensor = self.new_tensor(label, shape, q)
            name = self.node_name(base)
            node: Node = ops.Add(
                name, (core.a, core.b), (tensor,), coefficients=pair, requant=rule.clamped(*bounds), origin=origin
            )
        else:
            source = self.tensors[core.tensor]
            ratio = Fraction(source.scale) / Fraction(q.scale)
            reach = largest(source)
            if isinstance(core, Same):
                rule = single_requant(ratio, reach, q).clamped(*bounds)
                tensor = self.new_tensor(label, shape, q)
                node = ops.Requantize(self.node_name(base), (core.tensor,), (tensor,), requant=rule, origin=origin)
            elif isinstance(core, GlobalAverageCore):
                count = source.shape[2] * source.shape[3]
                rule = single_requant(ratio / count, reach * count, q).clamped(*bounds)
                tensor = self.new_tensor(label, shape, q)
                node = ops.GlobalAverage(self.node_name(base), (core.tensor,), (tensor,), requant=rule, origin=origin)
            else:
                area = core.kernel[0] * core.kernel[1]
                values = tuple(int(v) for v in np.unique(core.divisors))
                rules = tuple(single_requant(ratio / v, reach * area, q).clamped(*bounds) for v in values)
                tensor = self.new_tensor(label, shape, q)
                node = ops.AveragePool(
                    self.node_name(base),
                    (core.tensor,),
                    (tensor,),
                    kernel=core.kernel,
                    strides=core.strides,
                    pads=core.pads,
                    divisors=Array(core.divisors, np.int32),
                    divisor_values=values,
                    requants=rules,
                    origin=origin,
                )
        self.nodes.append(node)
        return tensor

    def _emit_layer(
        self,
        core: ConvCore | DenseCore,
        shape: tuple[int, ...],
        q: Quantization,
        bounds: tuple[int, int],
        label: str,
        origin: tuple[str, ...],
    ) -> str:
        source = self.tensors[core.tensor]
        where = origin[0]
        weight, scales = layer_weights(where, core.weight)
        bias, rounding = layer_bias(where, core.bias, source.scale, scales.values)
        check_bound(weight.values, bias.values, largest(source))
        rule = layer_requant(source.scale, scales.values, q).clamped(*bounds)
        if rounding > 1e-3:
            self.notes.append(f"{where}: the float bias was rounded by up to {rounding:.4f} of its unit")
        tensor = self.new_tensor(label, shape, q)
        name = self.node_name(where)
        node: Node
        if isinstance(core, ConvCore):
            node = ops.Conv2d(
                name,
                (core.tensor,),
                (tensor,),
                weight=weight,
                weight_scale=scales,
                bias=bias,
                strides=core.strides,
                pads=core.pads,
                groups=core.groups,
                requant=rule,
                origin=origin,
            )
        else:
            node = ops.Dense(
                name,
                (core.tensor,),
                (tensor,),
                weight=weight,
                weight_scale=scales,
                bias=bias,
                requant=rule,
                origin=origin,
            )
        self.nodes.append(node)
        return tensor

    def _apply_steps(self, value: Pending, tensor: str, done: int, hint: str) -> str:
        """Emit the steps from index ``done`` on as integer nodes and return the last tensor."""
        q = self.quantization(tensor)
        count = len(value.steps)
        names = value.origin[len(value.origin) - count :]
        for i in range(done, count):
            step, shape = value.steps[i], value.shapes[i + 1]
            label = hint if i == count - 1 else f"{hint}:{i + 1}"
            if isinstance(step, ReshapeStep):
                if i + 1 < count and isinstance(value.steps[i + 1], ReshapeStep):
                    continue
                if shape == self.tensors[tensor].shape:
                    continue
            if isinstance(step, PadStep):
                raise Unsupported("a pad that is not followed by a convolution")
            if isinstance(step, ClipStep):
                low, high = self._integer_bounds(step, q)
                if (low, high) == RANGES[q.dtype]:
                    continue
                result = self.new_tensor(label, shape, q)
                node: Node = ops.Clip(
                    self.node_name(names[i]), (tensor,), (result,), low=low, high=high, origin=(names[i],)
                )
            elif isinstance(step, MaxPoolStep):
                result = self.new_tensor(label, shape, q)
                node = ops.MaxPool(
                    self.node_name(names[i]),
                    (tensor,),
                    (result,),
                    kernel=step.kernel,
                    strides=step.strides,
                    pads=step.pads,
                    origin=(names[i],),
                )
            else:
                result = self.new_tensor(label, shape, q)
                node = ops.Reshape(self.node_name(names[i]), (tensor,), (result,), origin=(names[i],))
            self.nodes.append(node)
            tensor = result
        return tensor

    # the host

    def real(self, key: str) -> str:
        """Return the float tensor of a value of the model, emitting what is needed to have it on the host."""
        value = self.values[key]
        if isinstance(value, Real):
            return value.tensor
        if key in self._real:
            return self._real[key]
        if isinstance(value, Ints):
            result = self.dequantize(value.tensor, f"{key}:real")
        elif isinstance(value, Pending):
            if isinstance(value.core, Same) and not value.steps:
                result = self.dequantize(value.core.tensor, key)
            else:
                result = self._host_pending(key, value, "its result is used without being quantized")
        else:
            raise ModelError(key, "value", "a constant", "a constant cannot be an activation")
        self._real[key] = result
        return result

    def dequantize(self, tensor: str, label: str) -> str:
        """Return the float tensor of an integer tensor."""
        if tensor not in self._dequantized:
            result = self.new_tensor(label, self.tensors[tensor].shape, None)
            name = self.node_name(f"dequantize:{label}")
            self.nodes.append(ops.Dequantize(name, (tensor,), (result,), origin=()))
            self._dequantized[tensor] = result
        return self._dequantized[tensor]

    def _host_pending(self, key: str, value: Pending, reason: str) -> str:
        """Run the node that made an expression on the host, and those before it as far as they have no tensor."""
        found = self.host(value.name, value.node, reason)
        result = found[list(value.node.output).index(key)]
        if not isinstance(result, Real):
            raise ModelError(value.name, "output", key, "a host part must give a float tensor")
        return result.tensor

    def host(self, name: str, node: onnx.NodeProto, reason: str) -> list[Value]:
        """Emit a host part for one node of the model and return the values of its outputs."""
        part = _host.build(self, name, node, reason)
        self.hosts.append(HostPart(name, node.op_type, reason))
        tensors = []
        for output, shape in zip(part.outputs, part.shapes, strict=True):
            tensors.append(self.new_tensor(output, shape, None))
        model = _host.finish(part, tuple(tensors), self.batch)
        text = str(self.hosts[-1])
        self.nodes.append(
            ops.Host(self.node_name(name), part.inputs, tuple(tensors), model=model, reasons=(text,), origin=(name,))
        )
        values: dict[str, Value] = {}
        for output, tensor, q in zip(part.outputs, tensors, part.quantizations, strict=True):
            if q is None:
                values[output] = Real(tensor)
            else:
                if len(self.tensors[tensor].shape) not in (2, 4):
                    found = list(self.tensors[tensor].shape)
                    raise ModelError(name, f"output '{output}' shape", found, f"{reason}; must be N C or N C H W")
                values[output] = Ints(self._quantize_real(tensor, q, f"{output}:int", f"{name}:quantize"))
        return [values.get(output, Const(np.zeros(0))) for output in node.output]
