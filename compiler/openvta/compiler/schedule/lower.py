# SPDX-License-Identifier: Apache-2.0
"""From a node of the integer graph to a layer: which weight tiles, which parameters, which tensors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from openvta.compiler.errors import ModelError
from openvta.compiler.graph import Array, Graph, Node, Requant, Tensor
from openvta.compiler.ops import Add, AveragePool, Clip, Conv2d, Dense, GlobalAverage, MaxPool, Requantize
from openvta.compiler.pack import ParameterTable, TileBank, grouped_bank, parameter_table, uniform_bank
from openvta.compiler.pack.weights import digits
from openvta.compiler.schedule.gemm import GemmLayer, Operand, Source, Stage
from openvta.compiler.schedule.image import Plane
from openvta.compiler.schedule.maxpool import MaxLayer
from openvta.compiler.schedule.tiling import Problem
from openvta.spec.arith import wrap32
from openvta.spec.config import HardwareConfig
from openvta.spec.isa import RequantMode

Layer = GemmLayer | MaxLayer
Form = tuple[int, int, int]


def needs(node: Node, config: HardwareConfig) -> None:
    """Check that the configuration has what a node takes.

    Raises:
        ModelError: lanes that are not 8 bits wide, or an extension that is not built.
    """
    if config.inp_bits != 8:
        raise ModelError(node.name, "inp_bits", config.inp_bits, "8-bit tensors need a configuration with inp_bits = 8")
    extension = "acc8" if isinstance(node, MaxPool) else "requant"
    if not config.has(extension):
        raise ModelError(
            node.name,
            "extensions",
            list(config.extensions),
            f"{node.op} needs '{extension}'; use a configuration with it",
        )


@dataclass(frozen=True)
class Lowering:
    """Turns nodes into layers; ``planes`` has the storage of every tensor on the accelerator."""

    graph: Graph
    config: HardwareConfig
    planes: Mapping[str, Plane]

    def layer(self, node: Node) -> Layer:
        """Return the layer of a node.

        Raises:
            ModelError: the configuration lacks what the node takes.
        """
        needs(node, self.config)
        source, target = self.graph.tensor(node.inputs[0]), self.graph.tensor(node.output)
        if isinstance(node, Conv2d):
            return self._convolution(node, source)
        if isinstance(node, Dense):
            return self._dense(node, source)
        if isinstance(node, Add):
            return self._add(node)
        if isinstance(node, MaxPool):
            planes = self.planes[source.name], self.planes[target.name]
            return MaxLayer(node.name, *planes, node.kernel, node.strides, node.pads[:2])
        if isinstance(node, AveragePool):
            return self._average(node, source)
        if isinstance(node, GlobalAverage):
            plane = self.planes[source.name]
            bias = np.array([-source.zero_point * plane.height * plane.width], np.int32)
            window = ((plane.height, plane.width), (1, 1), (0, 0))
            return self._uniform(node, window, (node.requant,), bias, source.zero_point)
        if isinstance(node, Requantize):
            bias = np.array([-source.zero_point], np.int32)
            return self._flat(self._uniform(node, ((1, 1), (1, 1), (0, 0)), (node.requant,), bias, 0))
        if isinstance(node, Clip):
            rule = clamp_rule(node.low, node.high)
            return self._flat(self._uniform(node, ((1, 1), (1, 1), (0, 0)), (rule,), np.zeros(1, np.int32), 0))
        raise ModelError(node.name, "operator", node.op, "has no lowering to the accelerator")

    def _convolution(self, node: Conv2d, source: Tensor) -> Layer:
        plane = self.planes[source.name]
        form = (plane.channels, plane.height, plane.width)
        if form != source.shape[1:]:
            weight = Array(node.weight.values.reshape(node.weight.shape[0], -1))
            return self._product(node, source, weight, node.folded_bias(source.zero_point), node.requant)
        banks = self._banks(node, node.weight_parts, node.groups)
        row_skip = node.kernel[0] == 1 and node.strides[0] > 1 and not (node.pads[0] or node.pads[2])
        table = parameter_table(
            (node.requant,), node.folded_bias(source.zero_point).values, node.weight.shape[0], self.config.block
        )
        layer = self._gemm(node, banks, (node.kernel, node.strides, node.pads[:2]), table, source.zero_point)
        layer = replace(layer, problem=replace(layer.problem, row_skip=row_skip))
        dense_positions = node.kernel == (1, 1) and node.strides == (1, 1) and not any(node.pads)
        return self._flat(layer) if dense_positions else layer

    def _dense(self, node: Dense, source: Tensor) -> Layer:
        return self._product(node, source, node.weight, node.folded_bias(source.zero_point), node.requant)

    def _product(self, node: Conv2d | Dense, source: Tensor, weight: Array, bias: Array, rule: Requant) -> Layer:
        """A dense layer over all values of a tensor: one window as large as the tensor."""
        plane = self.planes[source.name]
        window = (plane.height, plane.width)
        form = (weight.shape[0], plane.channels, *window)
        parts = tuple(Array(part.values.reshape(form)) for part in node.weight_parts)
        table = parameter_table((rule,), bias.values, weight.shape[0], self.config.block)
        return self._gemm(node, self._banks(node, parts, 1), (window, (1, 1), (0, 0)), table, source.zero_point)

    def _banks(self, node: Node, parts: tuple[Array, ...], groups: int) -> tuple[TileBank, ...]:
        block, bits = self.config.block, self.config.wgt_bits
        return tuple(grouped_bank(node.name, part.values, groups, block, bits) for part in parts)

    def _average(self, node: AveragePool, source: Tensor) -> Layer:
        bias = np.array([-source.zero_point * node.kernel[0] * node.kernel[1]], np.int32)
        window = (node.kernel, node.strides, node.pads[:2])
        layer = self._uniform(node, window, node.requants, bias, source.zero_point)
        if len(node.requants) == 1:
            return layer
        classes = np.searchsorted(np.array(node.divisor_values), node.divisors.values)
        return replace(layer, classes=classes)

    def _add(self, node: Add) -> Layer:
        a, b = self.graph.input_tensors(node)
        bits = self.config.wgt_bits
        rows = digits(node.coefficients, bits)
        stages: list[Stage] = []
        for row in reversed(rows):
            operands = tuple(
                Operand(k, uniform_bank(node.name, digit, self.config.block, bits))
                for k, digit in enumerate(row)
                if digit
            )
            stages.append(Stage(operands, bits if stages else 0))
        offset = -(a.zero_point * node.coefficients[0] + b.zero_point * node.coefficients[1])
        table = parameter_table((node.requant,), np.array([wrap32(offset)], np.int32), 1, self.config.block)
        count = sum(len(stage.operands) for stage in stages)
        target = self.planes[node.output]
        problem = Problem(
            node.name, target.blocks, target.blocks, target.height, target.width, (1, 1), (1, 1),
            banded=True, operands=max(1, count), sources=2, shared_weights=True, spread_parameters=False,
        )  # fmt: skip
        sources = (Source(self.planes[a.name]), Source(self.planes[b.name]))
        return self._flat(GemmLayer(problem, sources, tuple(stages), (0, 0), table, target))

    def _uniform(
        self,
        node: Node,
        window: tuple[tuple[int, int], tuple[int, int], tuple[int, int]],
        rules: tuple[Requant, ...],
        bias: npt.NDArray[np.int32],
        pad: int,
    ) -> GemmLayer:
        bank = uniform_bank(node.name, 1, self.config.block, self.config.wgt_bits)
        return self._gemm(node, (bank,), window, parameter_table(rules, bias, 1, self.config.block), pad)

    def _gemm(
        self,
        node: Node,
        banks: tuple[TileBank, ...],
        window: tuple[tuple[int, int], tuple[int, int], tuple[int, int]],
        table: ParameterTable,
        pad: int,
    ) -> GemmLayer:
        source, target = self.planes[node.inputs[0]], self.planes[node.output]
        kernel, strides, start = window
        uniform = banks[0].uniform
        band = 1 if uniform else max(banks[0].count)
        problem = Problem(
            node.name, target.blocks, source.blocks, target.height, target.width, kernel, strides,
            banded=uniform or band < source.blocks, band=band, operands=len(banks), shared_weights=uniform,
            parameter_sets=table.sets, spread_parameters=table.per_block,
        )  # fmt: skip
        stages = (Stage(tuple(Operand(0, bank) for bank in banks)),)
        return GemmLayer(problem, (Source(source, pad),), stages, start, table, target)

    def _flat(self, layer: GemmLayer) -> GemmLayer:
        """The same layer with every plane seen as one row: for 1 x 1 windows that touch every position once."""
        target = layer.target
        problem = replace(layer.problem, height=1, width=target.height * target.width)
        sources = tuple(replace(source, plane=flat_plane(source.plane)) for source in layer.sources)
        return replace(layer, problem=problem, sources=sources, target=flat_plane(target))


def flat_plane(plane: Plane) -> Plane:
    """Return a tensor's storage with each plane as one row."""
    return replace(plane, height=1, width=plane.height * plane.width)


def clamp_rule(low: int, high: int) -> Requant:
    """Return the rule that only clamps."""
    one, none = Array([1], np.uint32), Array([0], np.uint8)
    return Requant(RequantMode.HALF_EVEN, Array([1.0], np.float64), one, none, 0, low, high, exact=True)


def keeps_storage(name: str, graph: Graph) -> bool:
    """Whether all that read a tensor can read it stored under another channel count, height and width than its shape's.

    They can where they use the values in row-major order: products over all of them, elementwise nodes.
    """
    readers = graph.consumers(name)
    return name not in graph.outputs and bool(readers) and all(_any_form(reader, graph) for reader in readers)


def _any_form(node: Node, graph: Graph) -> bool:
    if isinstance(node, Dense):
        return True
    if isinstance(node, Conv2d):
        source = graph.tensor(node.inputs[0])
        return source.shape[2:] == (1, 1) and node.kernel == (1, 1) and node.groups == 1 and not any(node.pads)
    if isinstance(node, (Clip, Requantize)) or node.op == "Reshape":
        return keeps_storage(node.output, graph)
    return False


def reshaped_form(form: Form, shape: tuple[int, ...]) -> Form | None:
    """Return the storage form (channels, height, width) that has ``shape`` without moving data, or None."""
    channels, height, width = form
    rest = shape[1:] if len(shape) == 4 else (*shape[1:], 1, 1)
    if rest[0] == channels and rest[1] * rest[2] == height * width:
        return channels, rest[1], rest[2]
    return None
