# SPDX-License-Identifier: Apache-2.0
"""Host parts: a node of the model as a small ONNX model of its own, on float tensors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper, shape_inference

from openvta.compiler.errors import ModelError, printable
from openvta.compiler.graph import NDArray
from openvta.compiler.importers._quant import dequantized
from openvta.compiler.importers._values import Const, Ints, QConst, Quantization

if TYPE_CHECKING:
    from openvta.compiler.importers._convert import Converter

BATCH = "N"
"""Name of the open first dimension of a host part."""
IR_VERSION = 8
"""IR version of the models made here."""
RESULT = {"QLinearConv": 6, "QLinearMatMul": 6, "QLinearAdd": 6, "QLinearMul": 6, "QGemm": 7}
"""Operators on integers that state their output's scale (the zero point follows), and at which input."""
LATE_RESULT = {"QLinearGlobalAveragePool": 3, "QLinearAveragePool": 3, "QLinearSigmoid": 3, "QLinearLeakyRelu": 3}
"""More of them."""


@dataclass(frozen=True)
class Part:
    """A host part in the making: its own nodes, constants, and the float tensors it reads and writes."""

    name: str
    domains: tuple[tuple[str, int], ...]
    before: tuple[onnx.NodeProto, ...]
    node: onnx.NodeProto
    after: tuple[onnx.NodeProto, ...]
    constants: tuple[tuple[str, NDArray], ...]
    inputs: tuple[str, ...]
    input_shapes: tuple[tuple[int, ...], ...]
    outputs: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    quantizations: tuple[Quantization | None, ...]


def build(converter: Converter, name: str, node: onnx.NodeProto, reason: str) -> Part:
    """Collect what a node needs to run alone, and infer the shapes of its outputs.

    Raises:
        ModelError: an output's shape cannot be known, or is not a float32, int8 or uint8 tensor.
    """
    before: list[onnx.NodeProto] = []
    after: list[onnx.NodeProto] = []
    constants: dict[str, NDArray] = {}
    inputs: dict[str, tuple[int, ...]] = {}
    renamed: list[str] = []
    integer: Quantization | None = None
    for operand in node.input:
        if not operand:
            renamed.append("")
            continue
        value = converter.values[operand]
        if isinstance(value, Const):
            constants[operand] = value.array
            renamed.append(operand)
        elif isinstance(value, QConst):
            constants[operand] = dequantized(value)
            renamed.append(operand)
        elif isinstance(value, Ints):
            q = converter.quantization(value.tensor)
            integer = integer or q
            tensor = converter.real(operand)
            inputs[tensor] = converter.tensors[tensor].shape
            before.append(_quantize(f"{operand}:value", tensor, q, constants))
            renamed.append(f"{operand}:value")
        else:
            tensor = converter.real(operand)
            inputs[tensor] = converter.tensors[tensor].shape
            renamed.append(tensor)
    copied = onnx.NodeProto()
    copied.CopyFrom(node)
    del copied.input[:]
    copied.input.extend(renamed)
    outputs = [output for output in node.output if output]
    del copied.output[:]
    copied.output.extend(f"{o}:out" if o else "" for o in node.output)
    domains = _domains(converter, copied, name)
    part = Part(
        name,
        domains,
        tuple(before),
        copied,
        (),
        tuple(constants.items()),
        tuple(inputs),
        tuple(inputs.values()),
        tuple(outputs),
        (),
        (),
    )
    shapes, kinds = _shapes(converter, part)
    results: list[Quantization | None] = []
    for output, kind in zip(outputs, kinds, strict=True):
        if kind == TensorProto.FLOAT:
            results.append(None)
            after.append(helper.make_node("Identity", [f"{output}:out"], [output]))
            continue
        found = _result(converter, node, kind) or integer
        if found is None or kind not in (TensorProto.INT8, TensorProto.UINT8):
            label = TensorProto.DataType.Name(kind) if kind else "unknown"
            raise ModelError(name, f"output '{printable(output)}' type", label, f"{reason}; {_advice(node)}")
        results.append(found)
        _constants_of(f"{output}:out", found, constants)
        operands = [f"{output}:out", f"{output}:out:scale", f"{output}:out:zero"]
        after.append(helper.make_node("DequantizeLinear", operands, [output]))
    return Part(
        name,
        domains,
        tuple(before),
        copied,
        tuple(after),
        tuple(constants.items()),
        part.inputs,
        part.input_shapes,
        part.outputs,
        tuple(shapes),
        tuple(results),
    )


def _advice(node: onnx.NodeProto) -> str:
    return f"{node.op_type} would run on the host, where only float32, int8 and uint8 values can pass: remove it"


def _constants_of(label: str, q: Quantization, constants: dict[str, NDArray]) -> None:
    constants[f"{label}:scale"] = np.array(q.scale, np.float32)
    constants[f"{label}:zero"] = np.array(q.zero_point, q.dtype)


def _quantize(result: str, tensor: str, q: Quantization, constants: dict[str, NDArray]) -> onnx.NodeProto:
    """QuantizeLinear that gives back the integers a float tensor was dequantized from (exact for 8 bits)."""
    _constants_of(result, q, constants)
    return helper.make_node("QuantizeLinear", [tensor, f"{result}:scale", f"{result}:zero"], [result])


def _result(converter: Converter, node: onnx.NodeProto, kind: int) -> Quantization | None:
    """The output quantization an operator on integers states."""
    index = RESULT.get(node.op_type, LATE_RESULT.get(node.op_type))
    if node.op_type == "QLinearConcat":
        index = 0
    if index is None or index + 1 >= len(node.input):
        return None
    scale, zero = converter.operand(node, index), converter.operand(node, index + 1)
    if not isinstance(scale, Const) or scale.array.size != 1:
        return None
    dtype = "int8" if kind == TensorProto.INT8 else "uint8"
    point = int(zero.array.reshape(-1)[0]) if isinstance(zero, Const) and zero.array.size else 0
    return Quantization(dtype, float(scale.array.reshape(-1)[0]), point)


def _domains(converter: Converter, node: onnx.NodeProto, name: str) -> tuple[tuple[str, int], ...]:
    found = {"": converter.source.opset}
    if node.domain not in ("", "ai.onnx"):
        versions = [e.version for e in converter.source.model.opset_import if e.domain == node.domain]
        if not versions:
            raise ModelError(name, "domain", node.domain, "is not in the model's opset_import")
        found[node.domain] = versions[0]
    return tuple(found.items())


def _model(part: Part, outputs: list[onnx.ValueInfoProto], batch: int | None, after: bool) -> onnx.ModelProto:
    def info(tensor: str, shape: tuple[int, ...]) -> onnx.ValueInfoProto:
        dims: list[int | str] = list(shape)
        if batch is not None and dims and dims[0] == batch:
            dims[0] = BATCH
        return helper.make_tensor_value_info(tensor, TensorProto.FLOAT, dims)

    graph = helper.make_graph(
        [*part.before, part.node, *(part.after if after else ())],
        part.name,
        [info(t, s) for t, s in zip(part.inputs, part.input_shapes, strict=True)],
        outputs,
        [
            numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape), key)
            for key, array in part.constants
        ],
    )
    opsets = [helper.make_opsetid(domain, version) for domain, version in part.domains]
    return helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION, producer_name="openvta")


def _shapes(converter: Converter, part: Part) -> tuple[list[tuple[int, ...]], list[int]]:
    """Infer shapes and types of the node's outputs, from ONNX's rules or else from what the model states."""
    names = [f"{o}:out" for o in part.outputs]
    empty = [onnx.ValueInfoProto(name=name) for name in names]
    try:
        inferred = shape_inference.infer_shapes(_model(part, empty, None, False), strict_mode=True, data_prop=True)
        known = {v.name: v for v in (*inferred.graph.output, *inferred.graph.value_info)}
    except (shape_inference.InferenceError, RuntimeError, ValueError) as error:
        if "No Op registered" not in str(error) and "domain" not in str(error):
            reason = printable(str(error), 200)
            raise ModelError(part.name, "inputs", part.node.op_type, f"do not fit the operator ({reason})") from None
        known = {}
    stated = {v.name: v for v in (*converter.source.model.graph.value_info, *converter.source.model.graph.output)}
    shapes, kinds = [], []
    for output, name in zip(part.outputs, names, strict=True):
        shape, kind = _concrete(known.get(name), converter.batch)
        if shape is None:
            shape, stated_kind = _concrete(stated.get(output), converter.batch)
            kind = kind or stated_kind
        if shape is None:
            limit = f"cannot be inferred for operator {part.node.op_type}: state it in the model's value_info"
            raise ModelError(part.name, f"output '{printable(output)}' shape", "unknown", limit)
        shapes.append(shape)
        kinds.append(kind)
    return shapes, kinds


def _concrete(info: onnx.ValueInfoProto | None, batch: int) -> tuple[tuple[int, ...] | None, int]:
    if info is None or not info.type.HasField("tensor_type"):
        return None, 0
    tensor = info.type.tensor_type
    if not tensor.HasField("shape"):
        return None, tensor.elem_type
    dims = []
    for i, dim in enumerate(tensor.shape.dim):
        size = dim.dim_value if dim.HasField("dim_value") else (batch if i == 0 else 0)
        if size < 1:
            return None, tensor.elem_type
        dims.append(size)
    return tuple(dims), tensor.elem_type


def finish(part: Part, tensors: tuple[str, ...], batch: int) -> bytes:
    """Return the serialized model of a part whose outputs are the given tensors."""
    after = []
    renames = dict(zip(part.outputs, tensors, strict=True))
    for node in part.after:
        copied = onnx.NodeProto()
        copied.CopyFrom(node)
        copied.output[0] = renames[node.output[0]]
        after.append(copied)
    outputs = []
    for tensor, shape in zip(tensors, part.shapes, strict=True):
        dims: list[int | str] = list(shape)
        if dims and dims[0] == batch:
            dims[0] = BATCH
        outputs.append(helper.make_tensor_value_info(tensor, TensorProto.FLOAT, dims))
    whole = Part(**{**part.__dict__, "after": tuple(after)})
    data: bytes = _model(whole, outputs, batch, True).SerializeToString(deterministic=True)
    return data
