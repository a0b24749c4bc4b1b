# SPDX-License-Identifier: Apache-2.0
"""The same graph under the same names: for comparing models that differ in names and node order only."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from openvta.compiler.graph import Graph, Node
from openvta.compiler.passes.base import Pass


@dataclass(frozen=True)
class CanonicalNames(Pass):
    """Order nodes by depth-first search from the outputs and number nodes and tensors; drop ``origin``.

    Two graphs of the same structure and values become equal (host parts only if their own names agree).
    """

    label: ClassVar[str] = "canonical_names"

    def run(self, graph: Graph) -> Graph:
        """See ``Pass.run``."""
        order: list[Node] = []
        seen: set[str] = set()
        stack = [(name, False) for name in reversed(graph.outputs)]
        while stack:
            name, done = stack.pop()
            node = graph.producer(name)
            if node is None or (node.name in seen and not done):
                continue
            if done:
                order.append(node)
                continue
            seen.add(node.name)
            stack.append((name, True))
            stack.extend((source, False) for source in reversed(node.inputs))
        labels = {name: f"input{i}" for i, name in enumerate(graph.inputs)}
        nodes = []
        for i, node in enumerate(order):
            for name in node.outputs:
                labels[name] = f"t{len(labels)}"
            ins = tuple(labels[n] for n in node.inputs)
            outs = tuple(labels[n] for n in node.outputs)
            nodes.append(replace(node, name=f"n{i}", inputs=ins, outputs=outs, origin=()))
        tensors = tuple(replace(graph.tensor(old), name=new) for old, new in labels.items())
        ins = tuple(labels[n] for n in graph.inputs)
        return Graph("graph", tensors, tuple(nodes), ins, tuple(labels[n] for n in graph.outputs))
