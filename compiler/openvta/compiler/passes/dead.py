# SPDX-License-Identifier: Apache-2.0
"""Removal of nodes nothing depends on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from openvta.compiler.graph import Graph
from openvta.compiler.passes.base import Pass


@dataclass(frozen=True)
class DropDead(Pass):
    """Drop nodes whose results reach no output of the graph."""

    label: ClassVar[str] = "drop_dead"

    def run(self, graph: Graph) -> Graph:
        """See ``Pass.run``."""
        needed = set(graph.outputs)
        kept = []
        for node in reversed(graph.nodes):
            if any(name in needed for name in node.outputs):
                kept.append(node)
                needed.update(node.inputs)
        return graph.rebuilt(reversed(kept))
