# SPDX-License-Identifier: Apache-2.0
"""The typed integer graph: what the importers make, the passes rewrite and the back end compiles.

Shape of a graph
================
``Graph(name, tensors, nodes, inputs, outputs)``: ``tensors`` in order of definition, ``nodes`` in topological order
(deterministic for a given model), ``inputs`` and ``outputs`` are tensor names. A tensor is written by one node or is a
graph input. Everything is immutable and compares by value; passes build new graphs.

``Tensor(name, shape, dtype, scale, zero_point)``: ``shape`` is ``(N, C, H, W)`` or ``(N, C)``; N is the batch the
model was imported with (1 unless asked otherwise) and the numpy reference accepts any N. ``dtype`` is ``float32`` (host
side only), ``int8``, ``uint8`` or ``int32``. An integer q stands for the real number ``(q - zero_point) * scale``;
``scale`` is a float32 value held in a Python float (1.0 for float tensors).

Nodes are frozen dataclasses in ``openvta.compiler.ops``, one file each. All have ``name``, ``inputs``, ``outputs``
(tensor names) and ``origin`` (names of the model's nodes they came from). After the pass ``LowerToSigned`` every
integer tensor an accelerator node touches is int8. The accelerator nodes (``x`` input values, ``z`` its zero point):

=================  =====================================================================================================
``Conv2d``         acc = sum((x - z) * weight) + bias; y = requant(acc). weight ``[O, C / groups, KH, KW]`` with its own
                   zero point already subtracted (int8, or int16 where that does not fit 8 bits: see ``weight_parts``);
                   bias int32 ``[O]``; strides ``(sh, sw)``; pads ``(top, left, bottom, right)`` hold z (real zero);
                   groups = C is depthwise. ``folded_bias`` is the bias to use when x is not corrected by z.
``Dense``          the same for x ``[N, C]``: weight ``[O, C]``.
``Add``            y = requant((a - za) * coefficients[0] + (b - zb) * coefficients[1]); requant has multiplier 1, mode
                   half even, one shift. Both inputs and the output have the same shape. |coefficient| < 2^23 and the
                   sum fits int32, so does every partial product (also without correction by za, zb: 128 * 2^23).
``MaxPool``        maximum over the window; pads are left out (equal to the type's minimum). kernel, strides, pads.
``AveragePool``    acc = sum over the window of (x - z), pads add 0; y = requants[k](acc) where ``divisors[oh, ow]``
                   of the position is ``divisor_values[k]``.
``GlobalAverage``  acc = sum over H and W of (x - z); y = requant(acc); output ``[N, C, 1, 1]``.
``Clip``           y = min(max(x, low), high), same scale and zero point (ReLU, ReLU6 and clip).
``Requantize``     y = requant(x - z).
``Reshape``        same values in row-major N, C, H, W order; N is kept.
=================  =====================================================================================================

Host nodes: ``Quantize`` (float32 -> int), ``Dequantize`` (int -> float32), ``Recode`` (graph border only: int8 <->
uint8 by an offset of 128) and ``Host`` (an ONNX sub-model on float tensors, run by onnxruntime, with the reason why).

``Requant(mode, ratio, multiplier, shift, zero_point, low, high, unsigned, exact)`` is the hardware's rule
(``openvta.spec.arith``) with all its operands: ``multiplier`` and ``shift`` are arrays of length 1 (one for all
channels) or of one entry per output channel; word 0 of the hardware's parameters is the (folded) bias.

``Graph.text()`` and ``parse_graph`` (openvta.compiler.text) round-trip.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from openvta.compiler.errors import GraphError
from openvta.spec.arith import requant_array
from openvta.spec.isa import RequantMode

NDArray = npt.NDArray[Any]

FLOAT32 = "float32"
INT8 = "int8"
UINT8 = "uint8"
INT32 = "int32"
DTYPES: tuple[str, ...] = (FLOAT32, INT8, UINT8, INT32)
RANGES: Mapping[str, tuple[int, int]] = {INT8: (-128, 127), UINT8: (0, 255), INT32: (-(2**31), 2**31 - 1)}

FLOAT32_MAX = float(np.finfo(np.float32).max)
"""Largest float32 value."""
COEFFICIENT_BITS = 23
"""Magnitude bits of an ``Add`` coefficient (a signed 24-bit operand)."""


class Array:
    """A read-only numpy array that compares and hashes by type, shape and content."""

    __slots__ = ("_hash", "values")

    def __init__(self, values: npt.ArrayLike, dtype: npt.DTypeLike | None = None) -> None:
        array = np.array(values, dtype=dtype, order="C")
        array.setflags(write=False)
        self.values: NDArray = array
        self._hash: int | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the array."""
        return self.values.shape

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Array):
            return NotImplemented
        a, b = self.values, other.values
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash((self.values.dtype.str, self.values.shape, self.values.tobytes()))
        return self._hash

    def __repr__(self) -> str:
        return f"Array({self.values.dtype.name}{list(self.values.shape)})"


@dataclass(frozen=True)
class Tensor:
    """A value of the graph; see the module's text for the meaning of the fields."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    scale: float = 1.0
    zero_point: int = 0

    @property
    def is_float(self) -> bool:
        """True for host-side float32 tensors."""
        return self.dtype == FLOAT32

    @property
    def numpy_dtype(self) -> np.dtype[Any]:
        """The numpy type of the values."""
        return np.dtype(self.dtype)

    @property
    def value_range(self) -> tuple[int, int]:
        """Smallest and largest integer of the type; GraphError for float tensors."""
        if self.is_float:
            raise GraphError(self.name, "dtype", self.dtype, "a float tensor has no integer range")
        return RANGES[self.dtype]

    def check(self) -> None:
        """Raise GraphError unless shape, type, scale and zero point are legal."""
        if not self.name:
            raise GraphError("tensor", "name", repr(self.name), "must not be empty")
        if self.dtype not in DTYPES:
            raise GraphError(self.name, "dtype", self.dtype, f"must be one of {', '.join(DTYPES)}")
        if any(isinstance(d, bool) or not isinstance(d, int) or d < 1 for d in self.shape):
            raise GraphError(self.name, "shape", self.shape, "every dimension must be an integer >= 1")
        if not self.is_float and len(self.shape) not in (2, 4):
            raise GraphError(self.name, "shape", self.shape, "an integer tensor is N C or N C H W")
        if not (np.isfinite(self.scale) and self.scale > 0):
            raise GraphError(self.name, "scale", self.scale, "must be finite and > 0")
        if self.scale > FLOAT32_MAX or float(np.float32(self.scale)) != self.scale:
            raise GraphError(self.name, "scale", self.scale, "must be a float32 value")
        if not self.is_float:
            low, high = self.value_range
            if not low <= self.zero_point <= high:
                raise GraphError(self.name, "zero_point", self.zero_point, f"must be in {low}..{high} ({self.dtype})")


@dataclass(frozen=True)
class Requant:
    """How a 32-bit accumulator becomes an 8-bit result; operands of the hardware's requantizer.

    ``ratio`` is the real factor (input scale * weight scale / output scale) that ``multiplier`` and ``shift`` stand
    for, as float64 ``[n]``; ``multiplier`` uint32 ``[n]`` (31-bit integer, or float32 bits in mode FLOAT32); ``shift``
    uint8 ``[n]``, 0..63. n is 1 or the number of output channels. ``zero_point``, ``low`` and ``high`` are in the
    output's type, which is uint8 where ``unsigned``. ``exact`` says that the result equals round-half-even of the real
    product for every accumulator the node can reach.
    """

    mode: RequantMode
    ratio: Array
    multiplier: Array
    shift: Array
    zero_point: int
    low: int
    high: int
    unsigned: bool = False
    exact: bool = False

    @property
    def channels(self) -> int:
        """Number of parameter sets: 1 or the number of output channels."""
        return int(self.multiplier.shape[0])

    def clamped(self, low: int, high: int) -> Requant:
        """Return the rule followed by a clamp to ``low..high`` (both in the output's integers)."""
        new_low = min(max(self.low, low), high)
        new_high = max(min(self.high, high), low)
        return replace(self, low=new_low, high=new_high)

    def apply(self, acc: NDArray, bias: npt.ArrayLike, axis: int = 1) -> NDArray:
        """Return the results (int8, or uint8 where ``unsigned``) of int32 accumulators whose channels lie on ``axis``.

        ``bias`` int32 ``[1]`` or ``[channels]`` is added first, modulo 2^32.
        """
        form = [1] * acc.ndim
        form[axis] = -1
        return requant_array(
            self.mode,
            acc,
            np.asarray(bias).reshape(form),
            self.multiplier.values.reshape(form),
            self.shift.values.reshape(form),
            zero_point=self.zero_point,
            low=self.low,
            high=self.high,
            unsigned=self.unsigned,
        )

    def check(self, where: str, output: Tensor, channels: int) -> None:
        """Raise GraphError unless the operands fit the hardware's fields and ``output``'s type."""
        n = self.channels
        if n not in (1, channels):
            raise GraphError(where, "requant.multiplier", n, f"needs 1 or {channels} entries")
        expected = (("ratio", self.ratio, "float64"), ("multiplier", self.multiplier, "uint32"))
        for label, array, kind in (*expected, ("shift", self.shift, "uint8")):
            if array.shape != (n,) or array.values.dtype != np.dtype(kind):
                raise GraphError(where, f"requant.{label}", array, f"must be {kind} of shape ({n},)")
        if int(self.shift.values.max(initial=0)) > 63:
            raise GraphError(where, "requant.shift", int(self.shift.values.max()), "must be in 0..63")
        if int(self.multiplier.values.max(initial=0)) >= 2**31:
            raise GraphError(where, "requant.multiplier", int(self.multiplier.values.max()), "must be below 2^31")
        if output.dtype not in (INT8, UINT8):
            raise GraphError(where, "output", output.dtype, "a requantized result is int8 or uint8")
        if self.unsigned != (output.dtype == UINT8):
            raise GraphError(where, "requant.unsigned", self.unsigned, f"the output is {output.dtype}")
        if self.zero_point != output.zero_point:
            raise GraphError(where, "requant.zero_point", self.zero_point, f"the output has {output.zero_point}")
        least, most = output.value_range
        if not least <= self.low <= self.high <= most:
            raise GraphError(where, "requant clamp", (self.low, self.high), f"must be ordered in {least}..{most}")


@dataclass(frozen=True)
class Node:
    """Base of every operator. ``outputs`` has one entry except for ``Host``."""

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    origin: tuple[str, ...] = field(default=(), kw_only=True)

    host: ClassVar[bool] = False
    """True where the node runs on the host."""
    arity: ClassVar[int] = 1
    """Number of inputs; -1 for any."""

    @property
    def op(self) -> str:
        """Name of the operator."""
        return type(self).__name__

    @property
    def output(self) -> str:
        """The only output."""
        return self.outputs[0]

    def check(self, inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...]) -> None:
        """Shape and type rule: raise GraphError naming the node, field, value and limit."""
        raise NotImplementedError

    def evaluate(self, values: tuple[NDArray, ...], inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...]) -> NDArray:
        """Numpy reference: input values ``[N, ...]`` for any N to the output's values in its numpy type."""
        raise NotImplementedError

    def ideal(self, values: tuple[NDArray, ...], inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...]) -> NDArray:
        """Real result in steps of the output, before rounding, zero point and clamp: float64, same shape.

        The distance of its fraction to one half says how near a result is to a tie. Not for host nodes.
        """
        raise GraphError(self.name, "ideal", self.op, "the operator does not round")

    def macs(self, inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...]) -> int:
        """Multiply-accumulates of the node for the batch of its tensors; 0 where there are none."""
        return 0


@dataclass(frozen=True)
class Graph:
    """A typed integer graph; see the module's text."""

    name: str
    tensors: tuple[Tensor, ...]
    nodes: tuple[Node, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]

    @cached_property
    def _tensors(self) -> dict[str, Tensor]:
        return {t.name: t for t in self.tensors}

    @cached_property
    def _producers(self) -> dict[str, Node]:
        return {name: node for node in self.nodes for name in node.outputs}

    @cached_property
    def _consumers(self) -> dict[str, tuple[Node, ...]]:
        found: dict[str, list[Node]] = {}
        for node in self.nodes:
            for name in dict.fromkeys(node.inputs):
                found.setdefault(name, []).append(node)
        return {name: tuple(nodes) for name, nodes in found.items()}

    def tensor(self, name: str) -> Tensor:
        """Return a tensor by name; GraphError if there is none."""
        try:
            return self._tensors[name]
        except KeyError:
            raise GraphError(self.name, "tensor", name, "no such tensor") from None

    def node(self, name: str) -> Node:
        """Return a node by name; GraphError if there is none."""
        for node in self.nodes:
            if node.name == name:
                return node
        raise GraphError(self.name, "node", name, "no such node")

    def producer(self, name: str) -> Node | None:
        """Return the node that writes a tensor, None for graph inputs."""
        return self._producers.get(name)

    def consumers(self, name: str) -> tuple[Node, ...]:
        """Return the nodes that read a tensor, in order."""
        return self._consumers.get(name, ())

    def input_tensors(self, node: Node) -> tuple[Tensor, ...]:
        """Return the tensors a node reads."""
        return tuple(self.tensor(n) for n in node.inputs)

    def output_tensors(self, node: Node) -> tuple[Tensor, ...]:
        """Return the tensors a node writes."""
        return tuple(self.tensor(n) for n in node.outputs)

    def verify(self) -> Graph:
        """Check every rule of the graph and return it.

        Raises:
            GraphError: duplicate or missing names, a use before the definition, a second writer, an unused tensor,
                or a node whose own shape and type rule fails.
        """
        for kind, names in (
            ("tensor", [t.name for t in self.tensors]),
            ("node", [n.name for n in self.nodes]),
        ):
            seen: set[str] = set()
            for name in names:
                if name in seen:
                    raise GraphError(self.name, kind, name, "the name is used twice")
                seen.add(name)
        for tensor in self.tensors:
            tensor.check()
        if not self.outputs:
            raise GraphError(self.name, "outputs", "()", "a graph has at least one output")
        defined = dict.fromkeys(self.inputs, "the graph's input")
        if len(defined) != len(self.inputs):
            raise GraphError(self.name, "inputs", self.inputs, "an input is listed twice")
        for node in self.nodes:
            if node.arity >= 0 and len(node.inputs) != node.arity:
                raise GraphError(node.name, "inputs", len(node.inputs), f"{node.op} takes {node.arity}")
            for name in node.inputs:
                if name not in defined:
                    raise GraphError(node.name, "input", name, "is read before any node writes it")
            for name in node.outputs:
                if name in defined:
                    raise GraphError(node.name, "output", name, f"is already written by {defined[name]}")
                defined[name] = node.name
            node.check(self.input_tensors(node), self.output_tensors(node))
        for name in (*self.inputs, *self.outputs):
            self.tensor(name)
            if name not in defined:
                raise GraphError(self.name, "output", name, "no node writes it")
        for tensor in self.tensors:
            if tensor.name not in defined:
                raise GraphError(self.name, "tensor", tensor.name, "is neither an input nor written by a node")
        return self

    def text(self) -> str:
        """Return the text form; ``openvta.compiler.text.parse_graph`` reads it back to an equal graph."""
        from openvta.compiler.text import format_graph

        return format_graph(self)

    def rebuilt(
        self,
        nodes: Iterable[Node],
        tensors: Iterable[Tensor] = (),
        *,
        inputs: tuple[str, ...] | None = None,
        outputs: tuple[str, ...] | None = None,
    ) -> Graph:
        """Return a graph of ``nodes`` with this one's tensors, overridden or extended by ``tensors``.

        Nodes are put into a topological order that keeps the given order where it can; tensors nothing touches are
        dropped. Raises GraphError on a cycle.
        """
        table = {**self._tensors, **{t.name: t for t in tensors}}
        ins = self.inputs if inputs is None else inputs
        outs = self.outputs if outputs is None else outputs
        ordered = topological(tuple(nodes), ins, self.name)
        used = dict.fromkeys((*ins, *(name for node in ordered for name in node.outputs)))
        missing = [name for name in used if name not in table]
        if missing:
            raise GraphError(self.name, "tensor", missing[0], "no such tensor")
        return Graph(self.name, tuple(table[name] for name in used), ordered, ins, outs)


def topological(nodes: tuple[Node, ...], inputs: tuple[str, ...], where: str) -> tuple[Node, ...]:
    """Return ``nodes`` so that every tensor is written before it is read, keeping the given order where it can.

    Raises:
        GraphError: a cycle, or a tensor nothing writes.
    """
    position = {node.name: i for i, node in enumerate(nodes)}
    writer = {name: node for node in nodes for name in node.outputs}
    missing = [(n, i) for n in nodes for i in n.inputs if i not in writer and i not in inputs]
    if missing:
        raise GraphError(missing[0][0].name, "input", missing[0][1], "no node writes it")
    waiting = {n.name: len({writer[i].name for i in n.inputs if i in writer}) for n in nodes}
    readers: dict[str, list[Node]] = {}
    for node in nodes:
        for source in {writer[i].name for i in node.inputs if i in writer}:
            readers.setdefault(source, []).append(node)
    ready = [position[n.name] for n in nodes if waiting[n.name] == 0]
    heapq.heapify(ready)
    ordered: list[Node] = []
    while ready:
        node = nodes[heapq.heappop(ready)]
        ordered.append(node)
        for reader in readers.get(node.name, []):
            waiting[reader.name] -= 1
            if waiting[reader.name] == 0:
                heapq.heappush(ready, position[reader.name])
    if len(ordered) != len(nodes):
        stuck = next(n.name for n in nodes if waiting[n.name])
        raise GraphError(where, "nodes", stuck, "is part of a cycle")
    return tuple(ordered)
