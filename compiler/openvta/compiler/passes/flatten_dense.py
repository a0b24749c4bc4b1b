# SPDX-License-Identifier: Apache-2.0
"""Dense layers behind a flattened image as convolutions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from openvta.compiler.graph import Array, Graph, Node, Tensor
from openvta.compiler.ops import Conv2d, Dense, Reshape
from openvta.compiler.passes.base import Pass
from openvta.compiler.passes.dead import DropDead


@dataclass(frozen=True)
class FlattenDense(Pass):
    """Turn ``Dense(Reshape(x [N, C, H, W]))`` with H * W > 1 into a convolution whose kernel covers the image.

    Exact: the same products are summed; only the order of the weights' axes is named anew. What is left to reshape is
    ``[N, O, 1, 1]`` to ``[N, O]``, which moves no data.
    """

    label: ClassVar[str] = "flatten_dense"

    def run(self, graph: Graph) -> Graph:
        """See ``Pass.run``."""
        nodes: list[Node] = []
        added: list[Tensor] = []
        names = {t.name for t in graph.tensors} | {n.name for n in graph.nodes}
        for node in graph.nodes:
            before = graph.producer(node.inputs[0]) if isinstance(node, Dense) else None
            if not isinstance(node, Dense) or not isinstance(before, Reshape):
                nodes.append(node)
                continue
            source = graph.tensor(before.inputs[0])
            if len(source.shape) != 4 or source.shape[2] * source.shape[3] == 1:
                nodes.append(node)
                continue
            target = graph.tensor(node.output)
            label = _fresh(f"{target.name}:image", names)
            added.append(replace(target, name=label, shape=(*target.shape, 1, 1)))
            outputs = node.weight.shape[0]
            nodes.append(
                Conv2d(
                    node.name,
                    (source.name,),
                    (label,),
                    weight=Array(node.weight.values.reshape(outputs, *source.shape[1:])),
                    weight_scale=node.weight_scale,
                    bias=node.bias,
                    strides=(1, 1),
                    pads=(0, 0, 0, 0),
                    groups=1,
                    requant=node.requant,
                    origin=tuple(dict.fromkeys((*before.origin, *node.origin))),
                )
            )
            nodes.append(Reshape(_fresh(f"{node.name}:flat", names), (label,), (node.output,), origin=()))
        result = graph.rebuilt(nodes, added)
        return DropDead().run(result)


def _fresh(name: str, taken: set[str]) -> str:
    count, found = 0, name
    while found in taken:
        count += 1
        found = f"{name}#{count}"
    taken.add(found)
    return found
