# SPDX-License-Identifier: Apache-2.0
"""Small computations on constants that exporters leave in a model, mostly around shapes."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import helper

from openvta.compiler.errors import ModelError
from openvta.compiler.importers._attributes import Attributes
from openvta.compiler.importers._convert import Converter, Handler
from openvta.compiler.importers._quant import constant
from openvta.compiler.importers._values import Const, Ints, Pending, Real, Unsupported, Value

SMALL = 1 << 16
"""Largest number of values of a folded result."""


def shape_of(converter: Converter, name: str, node: onnx.NodeProto) -> list[Value]:
    """Shape: known, since every shape is."""
    Attributes(name, node, ())
    value = converter.required(name, node, 0)
    if isinstance(value, Pending):
        shape = value.shape
    elif isinstance(value, (Ints, Real)):
        shape = converter.tensors[value.tensor].shape
    else:
        shape = value.array.shape
    return [Const(np.array(shape, np.int64))]


def gather(converter: Converter, name: str, node: onnx.NodeProto) -> list[Value]:
    """Gather from a constant."""
    axis = Attributes(name, node, ("axis",)).integer("axis", 0)
    data = constant(name, "data", converter.required(name, node, 0))
    indices = constant(name, "indices", converter.required(name, node, 1))
    if data is None or indices is None or data.size > SMALL or indices.size > SMALL:
        raise Unsupported("a large constant")
    try:
        return [Const(np.take(data, indices, axis=axis))]
    except (IndexError, ValueError, TypeError) as error:
        raise ModelError(name, "indices", indices.tolist(), f"do not fit {list(data.shape)} ({error})") from None


def concat(converter: Converter, name: str, node: onnx.NodeProto) -> list[Value]:
    """Concat of constants."""
    axis = Attributes(name, node, ("axis",)).integer("axis", 0)
    parts = [constant(name, "input", converter.required(name, node, i)) for i in range(len(node.input))]
    arrays = [p for p in parts if p is not None]
    if not arrays or sum(p.size for p in arrays) > SMALL:
        raise Unsupported("a large constant")
    try:
        return [Const(np.concatenate(arrays, axis=axis))]
    except ValueError as error:
        raise ModelError(name, "inputs", [list(p.shape) for p in arrays], f"do not fit together ({error})") from None


def cast(converter: Converter, name: str, node: onnx.NodeProto) -> list[Value]:
    """Cast of a constant."""
    code = Attributes(name, node, ("to", "saturate", "round_mode")).integer("to", 0)
    array = constant(name, "input", converter.required(name, node, 0))
    if array is None or array.size > SMALL:
        raise Unsupported("a large constant")
    try:
        kind = np.dtype(helper.tensor_dtype_to_np_dtype(code))
    except (KeyError, ValueError, TypeError):
        raise ModelError(name, "to", code, "is no tensor type") from None
    with np.errstate(invalid="ignore"):
        return [Const(array.astype(kind))]


HANDLERS: dict[tuple[str, str], Handler] = {
    ("", "Shape"): shape_of,
    ("", "Gather"): gather,
    ("", "Concat"): concat,
    ("", "Cast"): cast,
}
"""Importers of this module by domain and operator."""
