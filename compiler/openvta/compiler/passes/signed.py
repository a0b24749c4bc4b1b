# SPDX-License-Identifier: Apache-2.0
"""uint8 activations as int8."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from openvta.compiler.graph import INT8, UINT8, Graph, Node, Requant, Tensor
from openvta.compiler.ops import (
    Add,
    AveragePool,
    Clip,
    Conv2d,
    Dense,
    GlobalAverage,
    Recode,
    Requantize,
)
from openvta.compiler.passes.base import Pass

OFFSET = 128
"""What is subtracted from values and zero points."""


@dataclass(frozen=True)
class LowerToSigned(Pass):
    """Make every uint8 tensor int8 by subtracting 128 from its values and its zero point.

    The real numbers stay, so does every accumulator (inputs enter as x - zero point), so results differ by 128 exactly;
    clamps move along. uint8 inputs and outputs of the graph keep their type: a host node ``Recode`` flips the top bit.
    """

    label: ClassVar[str] = "lower_to_signed"

    def run(self, graph: Graph) -> Graph:
        """See ``Pass.run``."""
        unsigned = {t.name: t for t in graph.tensors if t.dtype == UINT8}
        border = [name for name in dict.fromkeys((*graph.inputs, *graph.outputs)) if name in unsigned]
        taken = {t.name for t in graph.tensors} | {n.name for n in graph.nodes}
        inner = {name: name for name in unsigned}
        for name in border:
            inner[name] = _fresh(f"{name}:int8", taken)
        added: list[Tensor] = [
            replace(t, name=inner[t.name], dtype=INT8, zero_point=t.zero_point - OFFSET) for t in unsigned.values()
        ]
        nodes: list[Node] = []
        for name in graph.inputs:
            if name in unsigned:
                nodes.append(Recode(_fresh(f"{name}:recode", taken), (name,), (inner[name],)))
        for node in graph.nodes:
            moved = _moved(node) if any(n in unsigned for n in node.outputs) else node
            ins = tuple(inner.get(n, n) for n in node.inputs)
            outs = tuple(inner.get(n, n) for n in node.outputs)
            nodes.append(replace(moved, inputs=ins, outputs=outs))
        for name in graph.outputs:
            if name in unsigned and name not in graph.inputs:
                nodes.append(Recode(_fresh(f"{name}:recode", taken), (inner[name],), (name,)))
        return graph.rebuilt(nodes, added)


def _rule(rule: Requant) -> Requant:
    return replace(
        rule, zero_point=rule.zero_point - OFFSET, low=rule.low - OFFSET, high=rule.high - OFFSET, unsigned=False
    )


def _moved(node: Node) -> Node:
    """Return a node whose uint8 result becomes int8."""
    if isinstance(node, (Add, Conv2d, Dense, GlobalAverage, Requantize)):
        return replace(node, requant=_rule(node.requant))
    if isinstance(node, AveragePool):
        return replace(node, requants=tuple(_rule(r) for r in node.requants))
    if isinstance(node, Clip):
        return replace(node, low=node.low - OFFSET, high=node.high - OFFSET)
    return node


def _fresh(name: str, taken: set[str]) -> str:
    count, found = 0, name
    while found in taken:
        count += 1
        found = f"{name}#{count}"
    taken.add(found)
    return found
