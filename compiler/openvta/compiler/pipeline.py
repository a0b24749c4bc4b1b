# SPDX-License-Identifier: Apache-2.0
"""The whole way from a model to a bundle."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import onnx

from openvta.compiler.codegen import SegmentCode, assign_planes, generate
from openvta.compiler.errors import CompileError, ModelError
from openvta.compiler.graph import Graph, Tensor
from openvta.compiler.hostmodels import host_model
from openvta.compiler.importers import import_onnx
from openvta.compiler.passes import lowering_pipeline
from openvta.compiler.placement import Phase, Place, forms_of, partition, place_nodes, require_accelerator
from openvta.compiler.schedule.image import Image, Plane
from openvta.spec.bundle import ALIGNMENT, AccelStep, Bundle, HostStep, LayerInfo, Segment, TensorSpec
from openvta.spec.config import HardwareConfig, load_config
from openvta.spec.isa import INSN_BYTES

Model: TypeAlias = str | os.PathLike[str] | bytes | onnx.ModelProto | Graph


@dataclass(frozen=True, eq=False)
class Compiled:
    """A bundle with what led to it: the lowered graph, the place of every node, and each segment's schedule."""

    bundle: Bundle
    graph: Graph
    places: tuple[Place, ...]
    segments: tuple[SegmentCode, ...]

    def text(self) -> str:
        """Return the schedules of all segments as text."""
        parts = (f"# segment {number}\n{segment.text()}" for number, segment in enumerate(self.segments))
        return "\n".join(parts)


def compile(
    model: Model,
    config: str | os.PathLike[str] | HardwareConfig = "default",
    *,
    strict: bool = False,
    name: str | None = None,
    memory_limit: int | None = None,
) -> Bundle:
    """Compile a quantized model for a configuration.

    Args:
        model: an ONNX file, its bytes, a model in memory, or an integer graph.
        config: name or file of a configuration, or the configuration itself.
        strict: raise if a node other than the conversions at the model's float border would run on the host.
        name: the bundle's name; the graph's if not given.
        memory_limit: bytes of device memory the bundle may take.

    Returns:
        The bundle; equal arguments give equal bytes.

    Raises:
        CompileError: the model is damaged or unsupported, no tile shape of a layer fits, or memory does not suffice.
        PlacementError: ``strict`` and nodes on the host.
        ConfigError: no such configuration.
    """
    return compile_model(model, config, strict=strict, name=name, memory_limit=memory_limit).bundle


def compile_model(
    model: Model,
    config: str | os.PathLike[str] | HardwareConfig = "default",
    *,
    strict: bool = False,
    name: str | None = None,
    memory_limit: int | None = None,
) -> Compiled:
    """Like :func:`compile`, but return what led to the bundle as well."""
    target = config if isinstance(config, HardwareConfig) else load_config(os.fspath(config))
    graph = model if isinstance(model, Graph) else import_onnx(model).graph
    return compile_graph(graph, target, strict=strict, name=name or _label(model, graph), memory_limit=memory_limit)


def _label(model: Model, graph: Graph) -> str:
    return Path(model).stem if isinstance(model, (str, os.PathLike)) else graph.name


def compile_graph(
    graph: Graph, config: HardwareConfig, *, strict: bool = False, name: str = "graph", memory_limit: int | None = None
) -> Compiled:
    """Compile an integer graph; see :func:`compile`."""
    lowered = lowering_pipeline().run(graph.verify()).verify()
    forms, moved = forms_of(lowered)
    places = place_nodes(lowered, moved)
    if strict:
        require_accelerator(places)
    phases = partition(lowered, moved)
    image = Image(config)
    planes = assign_planes(lowered, forms, phases, image)
    segments = tuple(generate(lowered, p.nodes, planes, image, config) for p in phases if not p.host)
    layout = _lay_out(image, segments, config)
    if memory_limit is not None and layout.size > memory_limit:
        raise CompileError(
            f"{name}: device memory = {layout.size} bytes: the limit is {memory_limit}; raise it or use a smaller model"
        )
    borders = _borders(lowered, phases)
    bundle = Bundle(
        name=name,
        config=config,
        memory_bytes=layout.size,
        image=layout.pieces,
        bases=layout.bases,
        tensors=_tensors(lowered, planes, borders, layout.bases["inp"], config),
        segments=tuple(Segment(s.program, at) for s, at in zip(segments, layout.programs, strict=True)),
        steps=_steps(lowered, phases, borders),
        layers=_layers(places, segments),
        inputs={n: _interface(lowered.tensor(n)) for n in lowered.inputs},
        outputs={n: _interface(lowered.tensor(n)) for n in lowered.outputs},
        metadata={"strict": str(strict).lower(), "config": config.name, "label": config.label},
    )
    return Compiled(bundle, lowered, places, segments)


# Device memory -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Layout:
    size: int
    pieces: tuple[tuple[int, bytes], ...]
    bases: Mapping[str, int]
    programs: tuple[int, ...]


def _align(value: int) -> int:
    return -(-value // ALIGNMENT) * ALIGNMENT


def _lay_out(image: Image, segments: Sequence[SegmentCode], config: HardwareConfig) -> _Layout:
    """Programs first, then micro-ops, weights, and tensors with the constants of inp and acc."""
    pieces: list[tuple[int, bytes]] = []
    programs = []
    end = 0
    for segment in segments:
        programs.append(end)
        end = _align(end + len(segment.program) * INSN_BYTES)
    starts = {}
    for arena in (image.uop, image.wgt, image.data):
        starts[arena.name] = end
        pieces += [(end + offset, data) for offset, data in arena.contents]
        end = _align(end + arena.size)
    size = max(end, ALIGNMENT)
    last = size - ALIGNMENT
    bases = {"uop": min(starts["uop"], last), "wgt": min(starts["wgt"], last)}
    bases |= dict.fromkeys(("inp", "acc", "out"), min(starts["data"], last))
    return _Layout(size, _merge(pieces), bases, tuple(programs))


def _merge(pieces: list[tuple[int, bytes]]) -> tuple[tuple[int, bytes], ...]:
    """Join pieces that touch."""
    groups: list[tuple[int, list[bytes]]] = []
    end = -1
    for offset, data in sorted(pieces, key=lambda piece: piece[0]):
        if offset == end:
            groups[-1][1].append(data)
        else:
            groups.append((offset, [data]))
        end = offset + len(data)
    return tuple((start, b"".join(parts)) for start, parts in groups)


def _tensors(
    graph: Graph, planes: Mapping[str, Plane], borders: _Borders, base: int, config: HardwareConfig
) -> tuple[TensorSpec, ...]:
    found = []
    for tensor in graph.tensors:
        plane = planes.get(tensor.name)
        if plane is None:
            continue
        read, written = tensor.name in borders.read, tensor.name in borders.written
        role = "input" if read and not written else "output" if written and not read else "intermediate"
        form = (plane.channels, plane.height, plane.width)
        own = tensor.shape[1:] if len(tensor.shape) == 4 else (*tensor.shape[1:], 1, 1)
        shape = tensor.shape[1:] if own == form else form
        offset = base + plane.base * config.inp_bytes
        found.append(
            TensorSpec(
                tensor.name, role, offset, "int8", (config.batch, *shape), float(tensor.scale), int(tensor.zero_point)
            )
        )
    return tuple(found)


# Steps -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Borders:
    """Tensors each phase takes from before it and leaves for after it, and both over all accelerator phases."""

    inputs: tuple[tuple[str, ...], ...]
    outputs: tuple[tuple[str, ...], ...]
    read: frozenset[str]
    written: frozenset[str]


def _borders(graph: Graph, phases: Sequence[Phase]) -> _Borders:
    inputs, outputs = [], []
    read: set[str] = set()
    written: set[str] = set()
    for phase in phases:
        made = {name for node in phase.nodes for name in node.outputs}
        mine = {node.name for node in phase.nodes}
        takes = tuple(dict.fromkeys(n for node in phase.nodes for n in node.inputs if n not in made))
        leaves = tuple(
            name
            for node in phase.nodes
            for name in node.outputs
            if name in graph.outputs or any(reader.name not in mine for reader in graph.consumers(name))
        )
        inputs.append(takes)
        outputs.append(leaves)
        if not phase.host:
            read.update(takes)
            written.update(leaves)
    return _Borders(tuple(inputs), tuple(outputs), frozenset(read), frozenset(written))


def _steps(graph: Graph, phases: Sequence[Phase], borders: _Borders) -> tuple[AccelStep | HostStep, ...]:
    steps: list[AccelStep | HostStep] = []
    segment = 0
    for phase, takes, leaves in zip(phases, borders.inputs, borders.outputs, strict=True):
        if phase.host:
            steps += [HostStep(n.name, host_model(n, graph), n.inputs, n.outputs) for n in phase.nodes]
        else:
            steps.append(AccelStep(segment, takes, leaves))
            segment += 1
    return tuple(steps)


def _layers(places: Sequence[Place], segments: Sequence[SegmentCode]) -> tuple[LayerInfo, ...]:
    code = {layer.node.name: (number, layer) for number, s in enumerate(segments) for layer in s.layers}
    found = []
    for place in places:
        number, layer = code.get(place.node, (-1, None))
        if layer is None:
            found.append(LayerInfo(place.node, place.operator, place.where, place.reason, place.macs))
            continue
        found.append(
            LayerInfo(
                place.node, place.operator, place.where, place.reason, place.macs, number,
                layer.first, layer.last, layer.uops, layer.moved, layer.cycles,
            )
        )  # fmt: skip
    return tuple(found)


def _interface(tensor: Tensor) -> tuple[str, tuple[int, ...]]:
    if not tensor.shape:
        raise ModelError(tensor.name, "shape", tensor.shape, "inputs and outputs of a model need a batch dimension")
    return tensor.dtype, (0, *tensor.shape[1:])
