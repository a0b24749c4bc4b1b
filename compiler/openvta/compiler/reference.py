# SPDX-License-Identifier: Apache-2.0
"""Numpy integer reference of a whole graph: the truth every backend must equal.

Every accelerator node is computed by its own ``evaluate`` on the rules of ``openvta.spec.arith``, for any number of
images at once; host parts run on onnxruntime without graph optimisation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import onnxruntime as ort

from openvta.compiler.errors import CompileError
from openvta.compiler.graph import Graph, NDArray, Node
from openvta.compiler.ops import Host

CHUNK = 20
"""Images computed at a time, to bound memory."""


def plain_session(model: bytes) -> ort.InferenceSession:
    """Return an onnxruntime session on the CPU, graph optimisation off.

    Raises:
        CompileError: onnxruntime refuses the model.
    """
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    try:
        return ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's exceptions have no common base
        raise CompileError(f"onnxruntime cannot load the model: {error}") from None


def check_inputs(graph: Graph, inputs: Mapping[str, NDArray]) -> int:
    """Return the number of images in ``inputs``.

    Raises:
        CompileError: a missing or extra input, a wrong type, or a shape that differs in more than N.
    """
    missing, extra = set(graph.inputs) - set(inputs), set(inputs) - set(graph.inputs)
    if missing or extra:
        given = ", ".join(sorted(inputs)) or "none"
        raise CompileError(f"inputs = {given}: the graph takes {', '.join(graph.inputs)}")
    counts = set()
    for name in graph.inputs:
        tensor, array = graph.tensor(name), inputs[name]
        if array.dtype != tensor.numpy_dtype:
            raise CompileError(f"input '{name}': dtype = {array.dtype}: must be {tensor.dtype}")
        if array.ndim != len(tensor.shape) or array.shape[1:] != tensor.shape[1:] or array.shape[0] < 1:
            wanted = ", ".join(("N", *map(str, tensor.shape[1:])))
            raise CompileError(f"input '{name}': shape = {list(array.shape)}: must be [{wanted}], N >= 1")
        counts.add(array.shape[0])
    if len(counts) > 1:
        raise CompileError(f"inputs: N = {sorted(counts)}: must be the same for all")
    return counts.pop() if counts else 1


class Reference:
    """Evaluates one graph; host parts are loaded once."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._sessions: dict[str, ort.InferenceSession] = {}

    def node(self, node: Node, values: tuple[NDArray, ...]) -> tuple[NDArray, ...]:
        """Return the results of one node for given input values."""
        if isinstance(node, Host):
            if node.name not in self._sessions:
                self._sessions[node.name] = plain_session(node.model)
            feed = dict(zip(node.inputs, values, strict=True))
            try:
                found = self._sessions[node.name].run(list(node.outputs), feed)
            except Exception as error:  # onnxruntime's exceptions have no common base
                raise CompileError(f"host part '{node.name}': {error}") from None
            return tuple(np.asarray(v) for v in found)
        return (node.evaluate(values, self.graph.input_tensors(node), self.graph.output_tensors(node)),)

    def run(self, inputs: Mapping[str, NDArray], keep: Iterable[str] = ()) -> dict[str, NDArray]:
        """Return the graph's outputs, and the tensors named in ``keep``, for N images.

        Raises:
            CompileError: inputs that do not fit the graph.
        """
        count = check_inputs(self.graph, inputs)
        wanted = dict.fromkeys((*self.graph.outputs, *keep))
        parts: dict[str, list[NDArray]] = {name: [] for name in wanted}
        for start in range(0, count, CHUNK):
            chunk = {name: array[start : start + CHUNK] for name, array in inputs.items()}
            found = self._chunk(chunk, wanted)
            for name in wanted:
                parts[name].append(found[name])
        return {name: arrays[0] if len(arrays) == 1 else np.concatenate(arrays) for name, arrays in parts.items()}

    def _chunk(self, inputs: Mapping[str, NDArray], wanted: Iterable[str]) -> dict[str, NDArray]:
        values = dict(inputs)
        kept = set(wanted)
        last = {name: i for i, node in enumerate(self.graph.nodes) for name in node.inputs}
        for i, node in enumerate(self.graph.nodes):
            results = self.node(node, tuple(values[name] for name in node.inputs))
            values.update(zip(node.outputs, results, strict=True))
            for name in set(node.inputs):
                if last[name] == i and name not in kept:
                    del values[name]
        return values


def evaluate(graph: Graph, inputs: Mapping[str, NDArray], keep: Iterable[str] = ()) -> dict[str, NDArray]:
    """Evaluate a graph once; see ``Reference.run``."""
    return Reference(graph).run(inputs, keep)
