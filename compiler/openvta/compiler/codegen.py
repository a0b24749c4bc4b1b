# SPDX-License-Identifier: Apache-2.0
"""Code generation: accelerator phases of a graph become programs over one image of micro-ops, weights and constants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from openvta.compiler.errors import ModelError
from openvta.compiler.graph import Graph, Node
from openvta.compiler.ops import Reshape
from openvta.compiler.placement import Phase
from openvta.compiler.schedule.emitter import Emitter
from openvta.compiler.schedule.gemm import GemmEmitter, GemmLayer
from openvta.compiler.schedule.image import Image, Plane
from openvta.compiler.schedule.lower import Form, Lowering
from openvta.compiler.schedule.machine import predict
from openvta.compiler.schedule.maxpool import choose_max_tiling, emit_max
from openvta.compiler.schedule.order import order_loads
from openvta.compiler.schedule.steps import Memory, Planned, format_schedule
from openvta.compiler.schedule.tiling import Problem, Tiling, choose_tiling
from openvta.compiler.schedule.tokens import plan_tokens
from openvta.spec.config import HardwareConfig
from openvta.spec.insn import make
from openvta.spec.isa import Opcode, Unit
from openvta.spec.program import Program


@dataclass(frozen=True)
class LayerCode:
    """One node's part of a program: compute and store instructions ``first .. last``, what they and the layer's loads
    (some of which may lie before) do, and how they were tiled.
    """

    node: Node
    macs: int
    first: int
    last: int
    uops: int
    moved: int
    tiling: str
    cycles: int


@dataclass(frozen=True, eq=False)
class SegmentCode:
    """The program of one accelerator phase."""

    program: Program
    schedule: tuple[Planned, ...]
    layers: tuple[LayerCode, ...]

    def text(self) -> str:
        """Return the schedule as text."""
        return format_schedule(self.schedule, tuple(layer.node.name for layer in self.layers))


def assign_planes(graph: Graph, forms: Mapping[str, Form], phases: Sequence[Phase], image: Image) -> dict[str, Plane]:
    """Reserve device memory for every tensor that an accelerator node reads or writes; reshapes share their input's.

    Raises:
        ModelError: a tensor too large for the instruction set.
    """
    planes: dict[str, Plane] = {}
    for phase in phases:
        if phase.host:
            continue
        for node in phase.nodes:
            for name in (*node.inputs, *node.outputs):
                if name in planes:
                    continue
                channels, height, width = forms[name]
                if isinstance(node, Reshape) and name == node.output:
                    source = planes[node.inputs[0]]
                    planes[name] = Plane(source.base, channels, source.blocks, height, width)
                    continue
                limit = 1 << 31
                size = channels * height * width
                if size > limit:
                    raise ModelError(
                        node.name, f"tensor {name}", f"{size} values", f"at most {limit}; use a smaller input"
                    )
                planes[name] = image.plane(channels, height, width)
    return planes


def generate(
    graph: Graph, nodes: Sequence[Node], planes: Mapping[str, Plane], image: Image, config: HardwareConfig
) -> SegmentCode:
    """Return the program that computes accelerator ``nodes`` in order.

    Raises:
        ModelError: a node that the configuration cannot run, or that no tile shape fits.
    """
    emitter = Emitter(config, image)
    lowering = Lowering(graph, config, planes)
    work = [node for node in nodes if not isinstance(node, Reshape)]
    tilings: list[str] = []
    chosen: dict[Problem, Tiling] = {}
    for number, node in enumerate(work):
        emitter.layer = number
        layer = lowering.layer(node)
        if isinstance(layer, GemmLayer):
            shape_of = replace(layer.problem, name="")
            tiling = chosen.get(shape_of) or choose_tiling(layer.problem, config)
            chosen[shape_of] = tiling
            GemmEmitter(emitter, layer, tiling).run()
            tilings.append(tiling.text())
        else:
            shape = choose_max_tiling(layer, config)
            emit_max(emitter, layer, shape)
            tilings.append(f"tile 1 block x {shape.rows} x {shape.columns}")
        emitter.end_layer()
    sizes = {
        Memory.INP: config.inp_depth,
        Memory.WGT: config.wgt_depth,
        Memory.OUT: config.acc_depth,
        Memory.DATA: -(-image.data.size // config.inp_bytes),
    }
    planned = plan_tokens(order_loads(emitter.steps, sizes, config), sizes, config.token_depth)
    program = Program.assemble(config, [*(item.insn for item in planned), make(Opcode.FINISH)])
    predicted = predict(planned, len(work), config).layers() if work else ()
    layers = tuple(
        _layer(graph, planned, place, number, node, (tiling, cycles))
        for number, (place, node, tiling, cycles) in enumerate(
            zip(_places(planned, len(work)), work, tilings, predicted, strict=True)
        )
    )
    return SegmentCode(program, planned, layers)


def _layer(
    graph: Graph, planned: Sequence[Planned], place: range, number: int, node: Node, tiling: tuple[str, int]
) -> LayerCode:
    steps = [item.step for item in planned if item.step.layer == number]
    macs = node.macs(graph.input_tensors(node), graph.output_tensors(node))
    uops = sum(step.uops for step in steps)
    moved = sum(step.moved for step in steps)
    return LayerCode(node, macs, place.start, place.stop - 1, uops, moved, *tiling)


def _places(planned: Sequence[Planned], layers: int) -> list[range]:
    """The instructions of each layer: up to its last compute or store; loads of the next layer may be among them."""
    if not layers:
        return []
    ends = [0] * layers
    for number, item in enumerate(planned):
        if item.step.unit is not Unit.LOAD:
            ends[item.step.layer] = number + 1
    ends[-1] = len(planned)
    starts = [0, *ends[:-1]]
    return [range(start, max(start, end)) for start, end in zip(starts, ends, strict=True)]
