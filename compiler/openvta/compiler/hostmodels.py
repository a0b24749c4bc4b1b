# SPDX-License-Identifier: Apache-2.0
"""Host nodes of the graph as ONNX models that any onnxruntime runs."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from openvta.compiler.errors import CompileError
from openvta.compiler.graph import Graph, Node, Tensor
from openvta.compiler.ops import Dequantize, Host, Quantize, Recode, Reshape

BATCH = "N"
"""Name of the open first dimension."""
IR_VERSION = 8
OPSET = 13

_TYPES = {
    "float32": TensorProto.FLOAT,
    "int8": TensorProto.INT8,
    "uint8": TensorProto.UINT8,
    "int32": TensorProto.INT32,
}


def _value(tensor: Tensor) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(tensor.name, _TYPES[tensor.dtype], [BATCH, *tensor.shape[1:]])


def _constants(tensor: Tensor) -> list[onnx.TensorProto]:
    """Scale and zero point of an integer tensor."""
    return [
        numpy_helper.from_array(np.array(tensor.scale, np.float32), "scale#"),
        numpy_helper.from_array(np.array(tensor.zero_point, tensor.numpy_dtype), "zero_point#"),
    ]


def host_model(node: Node, graph: Graph) -> bytes:
    """Return the serialized ONNX model of a host node; its inputs and outputs bear the tensors' names.

    Raises:
        CompileError: the node has no host form.
    """
    if isinstance(node, Host):
        return node.model
    source, target = graph.tensor(node.inputs[0]), graph.tensor(node.output)
    names = [source.name, target.name]
    if isinstance(node, Quantize):
        nodes = [helper.make_node("QuantizeLinear", [names[0], "scale#", "zero_point#"], [names[1]])]
        constants = _constants(target)
    elif isinstance(node, Dequantize):
        nodes = [helper.make_node("DequantizeLinear", [names[0], "scale#", "zero_point#"], [names[1]])]
        constants = _constants(source)
    elif isinstance(node, Recode):
        nodes = [
            helper.make_node("Cast", [names[0]], ["wide#"], to=TensorProto.INT32),
            helper.make_node("Add", ["wide#", "offset#"], ["moved#"]),
            helper.make_node("Cast", ["moved#"], [names[1]], to=_TYPES[target.dtype]),
        ]
        constants = [numpy_helper.from_array(np.array(target.zero_point - source.zero_point, np.int32), "offset#")]
    elif isinstance(node, Reshape):
        nodes = [helper.make_node("Reshape", [names[0], "shape#"], [names[1]])]
        constants = [numpy_helper.from_array(np.array([-1, *target.shape[1:]], np.int64), "shape#")]
    else:
        raise CompileError(f"{node.name}: operator = {node.op}: has no host form")
    inner = helper.make_graph(nodes, "host", [_value(source)], [_value(target)], constants)
    model = helper.make_model(
        inner, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION, producer_name="openvta"
    )
    data: bytes = model.SerializeToString(deterministic=True)
    return data
