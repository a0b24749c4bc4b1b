# SPDX-License-Identifier: Apache-2.0
"""Where each node runs, and the order of host parts and accelerator segments."""

from __future__ import annotations

from dataclasses import dataclass

from openvta.compiler.errors import CompileError, printable
from openvta.compiler.graph import Graph, Node
from openvta.compiler.ops import Dequantize, Host, Quantize, Recode, Reshape
from openvta.compiler.schedule.lower import Form, keeps_storage, reshaped_form

__all__ = ["Phase", "Place", "PlacementError", "forms_of", "partition", "place_nodes", "require_accelerator"]

ACCELERATOR = "accelerator"
HOST = "host"


class PlacementError(CompileError):
    """A strict compile of a model with nodes that cannot run on the accelerator; ``places`` lists them."""

    def __init__(self, places: tuple[Place, ...]) -> None:
        lines = [f"{printable(p.node)} ({p.operator}): {printable(p.reason)}" for p in places]
        super().__init__(
            f"strict: {len(places)} node(s) cannot run on the accelerator; change the model or leave out strict:\n  "
            + "\n  ".join(lines)
        )
        self.places = places


@dataclass(frozen=True)
class Place:
    """Where a node runs and why. ``border`` marks conversions at the model's float border, which strict allows."""

    node: str
    operator: str
    where: str
    reason: str
    macs: int
    border: bool = False


@dataclass(frozen=True)
class Phase:
    """Nodes that run one after the other on the same side."""

    host: bool
    nodes: tuple[Node, ...]


def forms_of(graph: Graph) -> tuple[dict[str, Form], dict[str, str]]:
    """Return the storage form of every integer tensor, and the reshapes that must move data, with the reason.

    A tensor is stored as channels x height x width; a Reshape that only renames dimensions keeps its input's storage.
    """
    forms: dict[str, Form] = {}
    moved: dict[str, str] = {}

    def own(name: str) -> Form:
        shape = graph.tensor(name).shape
        return (shape[1], shape[2], shape[3]) if len(shape) == 4 else (shape[1], 1, 1)

    for name in graph.inputs:
        if not graph.tensor(name).is_float:
            forms[name] = own(name)
    for node in graph.nodes:
        for output in node.outputs:
            if graph.tensor(output).is_float:
                continue
            forms[output] = own(output)
            source = forms.get(node.inputs[0])
            if node.host or source is None:
                continue
            if isinstance(node, Reshape):
                direct = reshaped_form(source, graph.tensor(output).shape)
                if direct is not None:
                    forms[output] = direct
                elif keeps_storage(output, graph):
                    forms[output] = source
                else:
                    shapes = f"{graph.tensor(node.inputs[0]).shape} to {graph.tensor(output).shape}"
                    moved[node.name] = f"reshape of {shapes} moves values across channels for {_readers(graph, output)}"
            elif node.op in ("Clip", "Requantize"):
                forms[output] = source
    return forms, moved


def _readers(graph: Graph, name: str) -> str:
    return ", ".join(reader.name for reader in graph.consumers(name))


def place_nodes(graph: Graph, moved: dict[str, str]) -> tuple[Place, ...]:
    """Return the place of every node; ``moved`` has reshapes that run on the host."""
    places = []
    for node in graph.nodes:
        macs = node.macs(graph.input_tensors(node), graph.output_tensors(node))
        if isinstance(node, Host):
            places += [Place(node.name, "Host", HOST, reason, 0) for reason in node.reasons]
        elif isinstance(node, (Quantize, Dequantize, Recode)):
            places.append(Place(node.name, node.op, HOST, "converts between the model's types at its border", 0, True))
        elif node.name in moved:
            border = all(reader.host for reader in graph.consumers(node.output))
            reason = "names dimensions anew where the host reads them" if border else moved[node.name]
            places.append(Place(node.name, node.op, HOST, reason, macs, border))
        else:
            places.append(Place(node.name, node.op, ACCELERATOR, "", macs))
    return tuple(places)


def require_accelerator(places: tuple[Place, ...]) -> None:
    """Check that only border conversions run on the host.

    Raises:
        PlacementError: some other node runs there.
    """
    bad = tuple(p for p in places if p.where == HOST and not p.border)
    if bad:
        raise PlacementError(bad)


def partition(graph: Graph, moved: dict[str, str]) -> tuple[Phase, ...]:
    """Return the phases in an order that respects the graph and changes sides as seldom as a greedy choice does."""
    ready = set(graph.inputs)
    waiting = list(graph.nodes)
    phases: list[Phase] = []
    host = True
    while waiting:
        taken: list[Node] = []
        left: list[Node] = []
        for node in waiting:
            mine = (node.host or node.name in moved) == host
            if mine and all(name in ready for name in node.inputs):
                taken.append(node)
                ready.update(node.outputs)
            else:
                left.append(node)
        if taken:
            phases.append(Phase(host, tuple(taken)))
        waiting = left
        host = not host
    return tuple(phases)
