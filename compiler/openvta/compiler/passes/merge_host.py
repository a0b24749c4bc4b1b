# SPDX-License-Identifier: Apache-2.0
"""Neighbouring host parts into one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import onnx
from onnx import compose

from openvta.compiler.graph import Graph, Node
from openvta.compiler.ops import Host
from openvta.compiler.passes.base import Pass


@dataclass(frozen=True)
class MergeHost(Pass):
    """Merge a host part into the one behind it where that is the only reader of all its results."""

    label: ClassVar[str] = "merge_host"

    def run(self, graph: Graph) -> Graph:
        """See ``Pass.run``."""
        root: dict[str, str] = {}
        for node in reversed(graph.nodes):
            if isinstance(node, Host):
                reader = _only_reader(graph, node)
                root[node.name] = node.name if reader is None else root[reader.name]
        groups: dict[str, list[Host]] = {}
        for node in graph.nodes:
            if isinstance(node, Host):
                groups.setdefault(root[node.name], []).append(node)
        if all(len(group) == 1 for group in groups.values()):
            return graph
        nodes: list[Node] = []
        for node in graph.nodes:
            if not isinstance(node, Host):
                nodes.append(node)
            elif root[node.name] == node.name:
                nodes.append(_merge(groups[node.name]))
        return graph.rebuilt(nodes)


def _only_reader(graph: Graph, node: Host) -> Host | None:
    """The host part that alone reads every result of ``node``, None if there is none."""
    if any(name in graph.outputs for name in node.outputs):
        return None
    readers = {r.name: r for name in node.outputs for r in graph.consumers(name)}
    reader = next(iter(readers.values()), None)
    return reader if len(readers) == 1 and isinstance(reader, Host) else None


def _merge(group: Sequence[Host]) -> Host:
    """One host part that does the work of ``group`` (in order; the last one's results leave)."""
    last = group[-1]
    if len(group) == 1:
        return last
    inner = {name for node in group for name in node.outputs}
    parts = []
    for i, node in enumerate(group):
        model = onnx.ModelProto.FromString(node.model)
        parts.append(compose.add_prefix(model, f"{i}.", rename_inputs=False, rename_outputs=False, inplace=True))
    inputs = {v.name: v for part in parts for v in part.graph.input if v.name not in inner}
    opsets = {entry.domain: entry.version for part in parts for entry in part.opset_import}
    graph = onnx.helper.make_graph(
        [n for part in parts for n in part.graph.node],
        last.name,
        list(inputs.values()),
        list(parts[-1].graph.output),
        [t for part in parts for t in part.graph.initializer],
    )
    model = onnx.helper.make_model(
        graph,
        opset_imports=[onnx.helper.make_opsetid(domain, version) for domain, version in opsets.items()],
        ir_version=parts[0].ir_version,
        producer_name="openvta",
    )
    return Host(
        last.name,
        tuple(inputs),
        last.outputs,
        model=model.SerializeToString(deterministic=True),
        reasons=tuple(reason for node in group for reason in node.reasons),
        origin=tuple(name for node in group for name in node.origin),
    )
