# SPDX-License-Identifier: Apache-2.0
"""Clamps into the requantization before them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from openvta.compiler.graph import Graph, Node
from openvta.compiler.ops import Add, AveragePool, Clip, Conv2d, Dense, GlobalAverage, Requantize
from openvta.compiler.passes.base import Pass

RULED = (Add, Conv2d, Dense, GlobalAverage, Requantize)
"""Operators with one requantization."""


@dataclass(frozen=True)
class FoldClip(Pass):
    """Move a clip into the clamp of the node before it where that node has no other reader.

    Exact: the clip works on the same integers the requantization has just clamped. A clip behind a clip merges too.
    """

    label: ClassVar[str] = "fold_clip"

    def run(self, graph: Graph) -> Graph:
        """See ``Pass.run``."""
        nodes: dict[str, Node] = {node.name: node for node in graph.nodes}
        writer = {name: node.name for node in graph.nodes for name in node.outputs}
        for node in graph.nodes:
            if not isinstance(node, Clip):
                continue
            source = node.inputs[0]
            before = nodes.get(writer.get(source, ""))
            if before is None or len(graph.consumers(source)) != 1 or source in graph.outputs:
                continue
            merged = _clamped(before, node)
            if merged is None:
                continue
            origin = tuple(dict.fromkeys((*before.origin, *node.origin)))
            del nodes[node.name]
            nodes[before.name] = replace(merged, outputs=node.outputs, origin=origin)
            writer[node.output] = before.name
        return graph.rebuilt(nodes.values())


def _clamped(node: Node, clip: Clip) -> Node | None:
    """Return ``node`` with the clip's bounds on its results, None if it has no clamp."""
    if isinstance(node, RULED):
        return replace(node, requant=node.requant.clamped(clip.low, clip.high))
    if isinstance(node, AveragePool):
        return replace(node, requants=tuple(r.clamped(clip.low, clip.high) for r in node.requants))
    if isinstance(node, Clip):
        low = min(max(node.low, clip.low), clip.high)
        return replace(node, low=low, high=max(min(node.high, clip.high), clip.low))
    return None
