# SPDX-License-Identifier: Apache-2.0
"""Reading an ONNX file: everything that can be wrong with the file itself is found here."""

from __future__ import annotations

import heapq
import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from onnx import numpy_helper

from openvta.compiler.errors import ModelError, printable
from openvta.compiler.graph import NDArray
from openvta.compiler.importers.limits import Limits

DEFAULT_DOMAINS = ("", "ai.onnx")
"""Both spellings of the default operator domain."""

WIDTH_BITS: Mapping[int, int] = {
    onnx.TensorProto.FLOAT: 32,
    onnx.TensorProto.DOUBLE: 64,
    onnx.TensorProto.FLOAT16: 16,
    onnx.TensorProto.BFLOAT16: 16,
    onnx.TensorProto.INT8: 8,
    onnx.TensorProto.UINT8: 8,
    onnx.TensorProto.INT16: 16,
    onnx.TensorProto.UINT16: 16,
    onnx.TensorProto.INT32: 32,
    onnx.TensorProto.UINT32: 32,
    onnx.TensorProto.INT64: 64,
    onnx.TensorProto.UINT64: 64,
    onnx.TensorProto.BOOL: 8,
    onnx.TensorProto.INT4: 4,
    onnx.TensorProto.UINT4: 4,
}
"""Bits of one value of the tensor types that can be read."""


@dataclass(frozen=True)
class Source:
    """A checked model: the message, its nodes in an order that can be computed, and its constants."""

    label: str
    model: onnx.ModelProto
    nodes: tuple[onnx.NodeProto, ...]
    names: tuple[str, ...]
    constants: Mapping[str, NDArray]
    opset: int


def load_model(source: str | os.PathLike[str] | bytes | onnx.ModelProto, limits: Limits) -> Source:
    """Read and check a model.

    Raises:
        ModelError: the file is missing, too large, damaged, of an unsupported operator set, refers to other files,
            has a cycle, an undefined or doubly defined tensor, or a constant whose data do not fit its shape.
    """
    label, model = _parse(source, limits)
    _check_text(label, model)
    if not model.graph.node:
        raise ModelError(label, "nodes", 0, "the model has no nodes: is this an ONNX file?")
    if len(model.graph.node) > limits.nodes:
        raise ModelError(label, "nodes", len(model.graph.node), f"at most {limits.nodes}")
    opset = _opset(label, model, limits)
    if model.functions:
        raise ModelError(label, "functions", len(model.functions), "local functions: inline them before export")
    if model.graph.sparse_initializer:
        raise ModelError(label, "sparse_initializer", len(model.graph.sparse_initializer), "must be dense tensors")
    names = _node_names(model)
    for name, node in zip(names, model.graph.node, strict=True):
        for attribute in node.attribute:
            if attribute.HasField("g") or attribute.graphs:
                raise ModelError(name, attribute.name, node.op_type, "control flow: export a model without branches")
    constants = _constants(model, limits)
    nodes, ordered = _ordered(model, names, constants)
    return Source(label, model, nodes, ordered, constants, opset)


def _parse(source: str | os.PathLike[str] | bytes | onnx.ModelProto, limits: Limits) -> tuple[str, onnx.ModelProto]:
    if isinstance(source, onnx.ModelProto):
        label = source.graph.name or "model"
        if source.ByteSize() > limits.file_bytes:
            raise ModelError(label, "size", source.ByteSize(), f"at most {limits.file_bytes} bytes")
        return label, source
    if isinstance(source, bytes):
        label, data = "model", source
        if len(data) > limits.file_bytes:
            raise ModelError(label, "size", len(data), f"at most {limits.file_bytes} bytes")
    else:
        path = Path(source)
        label = path.name
        try:
            if not path.is_file():
                raise ModelError(label, "file", path, "no such file, or not a regular file")
            size = path.stat().st_size
            if size > limits.file_bytes:
                raise ModelError(label, "size", size, f"at most {limits.file_bytes} bytes")
            data = path.read_bytes()
        except (OSError, ValueError) as error:
            if isinstance(error, ModelError):
                raise
            raise ModelError(label, "file", path, f"cannot be read: {error}") from None
    if not data:
        raise ModelError(label, "size", 0, "the file is empty")
    model = onnx.ModelProto()
    try:
        model.ParseFromString(data)
    except (DecodeError, RecursionError, RuntimeError, ValueError) as error:
        raise ModelError(label, "file", f"{len(data)} bytes", f"not an ONNX model, or cut short ({error})") from None
    return label, model


def _check_text(label: str, model: onnx.ModelProto) -> None:
    """Raise ModelError if a name is not valid text (a damaged file may hold any bytes there)."""

    def check(field: str, *texts: object) -> None:
        for text in texts:
            if not isinstance(text, str):
                raise ModelError(label, field, text, "is not valid text: the file is damaged")

    graph = model.graph
    check("graph name", graph.name)
    for entry in model.opset_import:
        check("opset_import", entry.domain)
    for node in graph.node:
        check("node", node.name, node.op_type, node.domain, *node.input, *node.output)
        check("attribute", *(attribute.name for attribute in node.attribute))
    for info in (*graph.input, *graph.output, *graph.value_info):
        check("tensor", info.name)
        if info.type.HasField("tensor_type"):
            check("dimension", *(dim.dim_param for dim in info.type.tensor_type.shape.dim))
    for tensor in graph.initializer:
        check("initializer", tensor.name)
        check("external data", *(t for entry in tensor.external_data for t in (entry.key, entry.value)))


def _opset(label: str, model: onnx.ModelProto, limits: Limits) -> int:
    found = [entry.version for entry in model.opset_import if entry.domain in DEFAULT_DOMAINS]
    if not found:
        raise ModelError(label, "opset_import", "none", "the default operator set is missing: is this an ONNX file?")
    if len(set(found)) > 1:
        raise ModelError(label, "opset_import", found, "the default operator set is listed twice")
    if not limits.opset_low <= found[0] <= limits.opset_high:
        raise ModelError(label, "opset", found[0], f"must be {limits.opset_low}..{limits.opset_high}")
    return int(found[0])


def _node_names(model: onnx.ModelProto) -> tuple[str, ...]:
    """A unique name for every node: its own, else its operator and first output, numbered where it repeats."""
    used: dict[str, int] = {}
    names = []
    for node in model.graph.node:
        base = node.name or f"{node.op_type}:{next((o for o in node.output if o), '')}"
        count = used.get(base, 0)
        used[base] = count + 1
        name = base if count == 0 else f"{base}#{count}"
        while count and name in used:
            count += 1
            name = f"{base}#{count}"
        used.setdefault(name, 1)
        names.append(name)
    return tuple(names)


def check_tensor(tensor: onnx.TensorProto, where: str, limits: Limits) -> None:
    """Raise ModelError unless a stored tensor is inside the file and its data fit its shape."""
    if tensor.data_location == onnx.TensorProto.EXTERNAL or tensor.external_data:
        place = next((e.value for e in tensor.external_data if e.key == "location"), "")
        raise ModelError(
            where, "external data", repr(place), "must be stored inside the model file: save it as one file"
        )
    dims = list(tensor.dims)
    if len(dims) > limits.dimensions:
        raise ModelError(where, "dimensions", len(dims), f"at most {limits.dimensions}")
    if any(d < 0 for d in dims):
        raise ModelError(where, "shape", dims, "dimensions must not be negative")
    count = math.prod(dims)
    if count > limits.tensor_values:
        raise ModelError(where, "shape", dims, f"at most {limits.tensor_values} values")
    bits = WIDTH_BITS.get(tensor.data_type)
    if bits is None:
        kind = _type_name(tensor.data_type)
        raise ModelError(where, "data type", kind, "must be a float or integer of up to 64 bits")
    if tensor.HasField("raw_data"):
        wanted = (count * bits + 7) // 8
        if len(tensor.raw_data) != wanted:
            raise ModelError(where, "data", f"{len(tensor.raw_data)} bytes", f"shape {dims} needs {wanted}")


def _type_name(code: int) -> str:
    try:
        return str(onnx.TensorProto.DataType.Name(code))
    except ValueError:
        return str(code)


def to_array(tensor: onnx.TensorProto, where: str, limits: Limits) -> NDArray:
    """Return a stored tensor as numpy; 4-bit integers become 8-bit ones. Raises ModelError if it is damaged."""
    check_tensor(tensor, where, limits)
    try:
        array: NDArray = numpy_helper.to_array(tensor)
    except (ValueError, TypeError, RuntimeError, IndexError) as error:
        raise ModelError(where, "data", list(tensor.dims), f"does not fit its shape and type ({error})") from None
    if tensor.data_type == onnx.TensorProto.INT4:
        array = array.astype(np.int8)
    elif tensor.data_type == onnx.TensorProto.UINT4:
        array = array.astype(np.uint8)
    return array


def _constants(model: onnx.ModelProto, limits: Limits) -> dict[str, NDArray]:
    found: dict[str, NDArray] = {}
    for tensor in model.graph.initializer:
        where = f"initializer '{printable(tensor.name)}'"
        if not tensor.name:
            raise ModelError("initializer", "name", "''", "must not be empty")
        if tensor.name in found:
            raise ModelError(where, "name", tensor.name, "is defined twice")
        found[tensor.name] = to_array(tensor, where, limits)
    return found


def _ordered(
    model: onnx.ModelProto, names: tuple[str, ...], constants: Mapping[str, NDArray]
) -> tuple[tuple[onnx.NodeProto, ...], tuple[str, ...]]:
    """Return nodes and names so that every tensor is made before it is read, in file order where that is legal."""
    nodes = tuple(model.graph.node)
    writer: dict[str, int] = {}
    fixed = {value.name for value in model.graph.input} | set(constants)
    for i, node in enumerate(nodes):
        for output in node.output:
            if not output:
                continue
            if output in writer or output in fixed:
                raise ModelError(names[i], "output", output, "is defined twice")
            writer[output] = i
    waiting = []
    readers: dict[int, list[int]] = {}
    for i, node in enumerate(nodes):
        sources = set()
        for name in node.input:
            if name in writer:
                sources.add(writer[name])
            elif name and name not in fixed:
                raise ModelError(names[i], "input", name, "no node, input or constant defines it")
        waiting.append(len(sources))
        for source in sources:
            readers.setdefault(source, []).append(i)
    return _kahn(nodes, names, waiting, readers)


def _kahn(
    nodes: tuple[onnx.NodeProto, ...], names: tuple[str, ...], waiting: list[int], readers: Mapping[int, list[int]]
) -> tuple[tuple[onnx.NodeProto, ...], tuple[str, ...]]:
    order = list(_release(waiting, readers))
    if len(order) != len(nodes):
        stuck = next(i for i, count in enumerate(waiting) if count)
        raise ModelError(names[stuck], "inputs", nodes[stuck].op_type, "is part of a cycle")
    return tuple(nodes[i] for i in order), tuple(names[i] for i in order)


def _release(waiting: list[int], readers: Mapping[int, list[int]]) -> Iterator[int]:
    ready = [i for i, count in enumerate(waiting) if count == 0]
    heapq.heapify(ready)
    while ready:
        i = heapq.heappop(ready)
        yield i
        for reader in readers.get(i, []):
            waiting[reader] -= 1
            if waiting[reader] == 0:
                heapq.heappush(ready, reader)
