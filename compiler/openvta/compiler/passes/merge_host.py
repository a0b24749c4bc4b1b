# SPDX-License-Identifier: Apache-2.0
"""Neighbouring host parts into one."""

from __future__ import annotations

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
        current = graph
        while True:
            pair = self._pair(current)
            if pair is None:
                return current
            first, second = pair
            merged = _merge(first, second)
            nodes: list[Node] = [merged if n is second else n for n in current.nodes if n is not first]
            current = current.rebuilt(nodes)

    @staticmethod
    def _pair(graph: Graph) -> tuple[Host, Host] | None:
        for node in graph.nodes:
            if not isinstance(node, Host) or any(name in graph.outputs for name in node.outputs):
                continue
            readers = {id(r): r for name in node.outputs for r in graph.consumers(name)}
            if len(readers) == 1:
                reader = next(iter(readers.values()))
                if isinstance(reader, Host):
                    return node, reader
        return None


def _merge(first: Host, second: Host) -> Host:
    a, b = onnx.ModelProto.FromString(first.model), onnx.ModelProto.FromString(second.model)
    prefixes = ("a.", "b.")
    a = compose.add_prefix(a, prefixes[0], rename_inputs=False, rename_outputs=False)
    b = compose.add_prefix(b, prefixes[1], rename_inputs=False, rename_outputs=False)
    inputs = {v.name: v for v in (*a.graph.input, *b.graph.input) if v.name not in first.outputs}
    graph = onnx.helper.make_graph(
        [*a.graph.node, *b.graph.node],
        second.name,
        list(inputs.values()),
        list(b.graph.output),
        [*a.graph.initializer, *b.graph.initializer],
    )
    opsets = {o.domain: o.version for o in (*a.opset_import, *b.opset_import)}
    model = onnx.helper.make_model(
        graph,
        opset_imports=[onnx.helper.make_opsetid(d, v) for d, v in opsets.items()],
        ir_version=a.ir_version,
        producer_name="openvta",
    )
    return Host(
        second.name,
        tuple(inputs),
        second.outputs,
        model=model.SerializeToString(deterministic=True),
        reasons=(*first.reasons, *second.reasons),
        origin=(*first.origin, *second.origin),
    )
