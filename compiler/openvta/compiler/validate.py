# SPDX-License-Identifier: Apache-2.0
"""Comparison of the integer graph with onnxruntime: end to end, and layer by layer on onnxruntime's own integers."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx

from openvta.compiler.errors import CompileError
from openvta.compiler.graph import FLOAT32, UINT8, Graph, NDArray, Node
from openvta.compiler.importers import import_onnx
from openvta.compiler.ops import Clip, Dequantize, MaxPool, Recode, Reshape
from openvta.compiler.ops._common import windows
from openvta.compiler.passes import DropDead, Pipeline
from openvta.compiler.reference import CHUNK, Reference, plain_session

NEAR_TIE = 1e-4
"""How near to a tie (in steps of the output) an element may differ."""


@dataclass(frozen=True)
class LayerComparison:
    """One quantized tensor, computed from onnxruntime's integers and compared with onnxruntime's own.

    ``worst_distance`` is the largest distance to a tie (in output steps) among the differing elements, 0 if none
    differs.
    """

    node: str
    operator: str
    tensor: str
    elements: int
    differing: int
    largest_step: int
    worst_distance: float


@dataclass(frozen=True)
class OutputComparison:
    """One output of the model end to end. ``steps`` are quantization steps; predictions are the largest of each row."""

    name: str
    values: int
    differing: int
    largest_step: int
    predictions: int
    predictions_changed: int


@dataclass(frozen=True)
class Comparison:
    """What ``compare_with_onnxruntime`` found."""

    images: int
    outputs: tuple[OutputComparison, ...]
    layers: tuple[LayerComparison, ...]

    @property
    def elements(self) -> int:
        """Elements compared layer by layer."""
        return sum(layer.elements for layer in self.layers)

    @property
    def differing(self) -> int:
        """Elements that differ layer by layer."""
        return sum(layer.differing for layer in self.layers)

    @property
    def worst_distance(self) -> float:
        """Largest distance to a tie among them, in steps."""
        return max((layer.worst_distance for layer in self.layers), default=0.0)

    @property
    def only_near_ties(self) -> bool:
        """Whether every element that differs layer by layer lies within ``NEAR_TIE`` of a tie."""
        return self.worst_distance <= NEAR_TIE

    @property
    def equal(self) -> bool:
        """Whether every output is equal end to end."""
        return all(output.differing == 0 for output in self.outputs)


def compare_with_onnxruntime(
    model: str | os.PathLike[str] | bytes,
    inputs: Mapping[str, NDArray],
    *,
    layers: bool = True,
    results: Mapping[str, NDArray] | None = None,
) -> Comparison:
    """Compare a model's integer graph with onnxruntime (CPU, graph optimisation off).

    Args:
        model: ONNX file or its bytes.
        inputs: model inputs for N images.
        layers: also compare every quantized tensor, each layer fed with onnxruntime's integers.
        results: the outputs to compare end to end, where a backend has computed them; else the numpy reference does.

    Raises:
        CompileError: the model cannot be imported, or onnxruntime cannot run it.
    """
    data = model if isinstance(model, bytes) else Path(model).read_bytes()
    graph = import_onnx(data).graph
    if results is None:
        results = Reference(graph).run(inputs)
    expected = _Model(data, []).run(inputs)
    outputs = tuple(_output(graph, name, results[name], expected[name]) for name in graph.outputs)
    found = _layers(data, inputs) if layers else ()
    return Comparison(len(next(iter(inputs.values()))), outputs, found)


class _Model:
    """A model on onnxruntime, with integer tensors ``extra`` (name, type) as further outputs."""

    def __init__(self, model: bytes, extra: list[tuple[str, str]]) -> None:
        proto = onnx.ModelProto.FromString(model)
        have = {value.name for value in proto.graph.output}
        for name, dtype in extra:
            if name not in have:
                kind = onnx.TensorProto.UINT8 if dtype == UINT8 else onnx.TensorProto.INT8
                proto.graph.output.append(onnx.helper.make_tensor_value_info(name, kind, None))
        self._session = plain_session(proto.SerializeToString())
        self._names = [value.name for value in self._session.get_outputs()]

    def run(self, inputs: Mapping[str, NDArray]) -> dict[str, NDArray]:
        """Return all outputs by name."""
        try:
            found = self._session.run(self._names, dict(inputs))
        except Exception as error:  # onnxruntime's exceptions have no common base
            raise CompileError(f"onnxruntime cannot run the model: {error}") from None
        return dict(zip(self._names, (np.asarray(v) for v in found), strict=True))


def _output(graph: Graph, name: str, got: NDArray, expected: NDArray) -> OutputComparison:
    differing = int((got != expected).sum())
    producer = graph.producer(name)
    scale = graph.tensor(producer.inputs[0]).scale if isinstance(producer, Dequantize) else 1.0
    gap = np.abs(got.astype(np.float64) - expected.astype(np.float64)) / scale
    rows = got.reshape(got.shape[0], -1)
    changed = int((rows.argmax(axis=1) != expected.reshape(rows.shape).argmax(axis=1)).sum())
    return OutputComparison(name, got.size, differing, int(np.rint(gap.max(initial=0.0))), rows.shape[0], changed)


@dataclass
class _Tally:
    node: Node
    tensor: str
    elements: int = 0
    differing: int = 0
    largest_step: int = 0
    worst_distance: float = 0.0


def _layers(model: bytes, inputs: Mapping[str, NDArray]) -> tuple[LayerComparison, ...]:
    """Compare every integer tensor that exists in the model too; clamps are not folded, so all of them are there."""
    graph = import_onnx(model, pipeline=Pipeline((DropDead(),))).graph
    proto = onnx.ModelProto.FromString(model)
    made = {name for node in proto.graph.node for name in node.output}
    shared = [(t.name, t.dtype) for t in graph.tensors if t.dtype != FLOAT32 and t.name in made]
    reference = Reference(graph)
    session = _Model(model, shared)
    tallies: dict[str, _Tally] = {}
    count = len(next(iter(inputs.values())))
    for start in range(0, count, CHUNK):
        chunk = {name: array[start : start + CHUNK] for name, array in inputs.items()}
        theirs = session.run(chunk)
        _compare_chunk(reference, chunk, {name: theirs[name] for name, _ in shared}, tallies)
    return tuple(
        LayerComparison(t.node.name, t.node.op, t.tensor, t.elements, t.differing, t.largest_step, t.worst_distance)
        for t in tallies.values()
    )


def _compare_chunk(
    reference: Reference, inputs: Mapping[str, NDArray], theirs: Mapping[str, NDArray], tallies: dict[str, _Tally]
) -> None:
    graph = reference.graph
    values: dict[str, NDArray] = dict(inputs)
    ideals: dict[str, NDArray] = {}
    for node in graph.nodes:
        operands = tuple(values[name] for name in node.inputs)
        found = reference.node(node, operands)
        if not node.host:
            ideals[node.output] = _ideal(graph, node, operands, ideals)
        for name, value in zip(node.outputs, found, strict=True):
            values[name] = value
            if name not in theirs:
                continue
            own, other = value.astype(np.int32), theirs[name].astype(np.int32)
            tally = tallies.setdefault(name, _Tally(node, name))
            tally.elements += own.size
            wrong = own != other
            if wrong.any():
                tally.differing += int(wrong.sum())
                tally.largest_step = max(tally.largest_step, int(np.abs(own - other).max()))
                real = ideals.get(name)
                distance = np.abs(np.abs(real[wrong] % 1) - 0.5) if real is not None else np.array([0.5])
                tally.worst_distance = max(tally.worst_distance, float(distance.max()))
            values[name] = theirs[name]


def _ideal(graph: Graph, node: Node, operands: tuple[NDArray, ...], ideals: Mapping[str, NDArray]) -> NDArray:
    """The unrounded result of a node; nodes that only select or move values pass on what their input had."""
    before = ideals.get(node.inputs[0])
    target = graph.tensor(node.output)
    if not isinstance(node, (Clip, MaxPool, Recode, Reshape)):
        return node.ideal(operands, graph.input_tensors(node), graph.output_tensors(node))
    if before is None:
        before = operands[0].astype(np.float64) - target.zero_point
    if isinstance(node, Reshape):
        return before.reshape(before.shape[0], *target.shape[1:])
    if isinstance(node, MaxPool):
        lowest = float(before.min(initial=0.0)) - 1.0
        view = windows(_padded_low(before, node, lowest), node.kernel, node.strides)
        result: NDArray = view.max(axis=(-2, -1))
        return result
    return before


def _padded_low(values: NDArray, node: MaxPool, lowest: float) -> NDArray:
    top, left, bottom, right = node.pads
    return np.pad(values, ((0, 0), (0, 0), (top, bottom), (left, right)), constant_values=lowest)
