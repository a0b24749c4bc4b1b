# SPDX-License-Identifier: Apache-2.0
"""The text form of an integer graph.

One line a tensor and a node, attributes as JSON; constants follow at the end, numbered, zlib-compressed in base64::

    graph "name"
    input "x"
    tensor "x" int8 [1, 3, 8, 8] scale=0.5 zero_point=3
    node "c" Conv2d ("x") -> ("y") origin=["Conv_0"] strides=[1, 1] weight=@0 ...
    output "y"
    constant @0 int8 [4, 3, 1, 1] eJxj...
"""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np

from openvta.compiler.errors import GraphError, printable
from openvta.compiler.graph import Array, Graph, Node, Requant, Tensor
from openvta.compiler.ops import OPERATORS
from openvta.spec.isa import RequantMode

CONSTANT_TYPES = ("int8", "int16", "int32", "uint8", "uint32", "float64")
"""Types a constant may have; ``bytes`` is one more."""
LARGEST = 1 << 31
"""Bytes a constant may unfold to."""


class _Writer:
    def __init__(self) -> None:
        self.constants: list[Array | bytes] = []
        self._known: dict[Array | bytes, int] = {}

    def value(self, item: object) -> object:
        """A JSON value; constants become references."""
        if isinstance(item, (Array, bytes)):
            if item not in self._known:
                self._known[item] = len(self.constants)
                self.constants.append(item)
            return {"@": self._known[item]}
        if isinstance(item, Requant):
            named = {f.name: self.value(getattr(item, f.name)) for f in fields(item)}
            return {**named, "mode": item.mode.name}
        if isinstance(item, tuple):
            return [self.value(v) for v in item]
        return item


def format_graph(graph: Graph) -> str:
    """Return the text form of a graph."""
    writer = _Writer()
    lines = [f"graph {json.dumps(graph.name)}"]
    lines += [f"input {json.dumps(name)}" for name in graph.inputs]
    for t in graph.tensors:
        place = "" if t.is_float else f" scale={json.dumps(t.scale)} zero_point={t.zero_point}"
        lines.append(f"tensor {json.dumps(t.name)} {t.dtype} {json.dumps(list(t.shape))}{place}")
    for node in graph.nodes:
        ins = ", ".join(json.dumps(n) for n in node.inputs)
        outs = ", ".join(json.dumps(n) for n in node.outputs)
        parts = [
            f"{f.name}={json.dumps(writer.value(getattr(node, f.name)))}"
            for f in fields(node)
            if f.name not in ("name", "inputs", "outputs")
        ]
        lines.append(f"node {json.dumps(node.name)} {node.op} ({ins}) -> ({outs}) {' '.join(parts)}")
    lines += [f"output {json.dumps(name)}" for name in graph.outputs]
    for i, item in enumerate(writer.constants):
        if isinstance(item, bytes):
            kind, shape, data = "bytes", [len(item)], item
        else:
            kind, shape = item.values.dtype.name, list(item.shape)
            data = item.values.astype(item.values.dtype.newbyteorder("<")).tobytes()
        packed = base64.b64encode(zlib.compress(data, 6)).decode("ascii")
        lines.append(f"constant @{i} {kind} {json.dumps(shape)} {packed}")
    return "\n".join(lines) + "\n"


class _Line:
    """A cursor over one line."""

    def __init__(self, number: int, text: str) -> None:
        self.number = number
        self.text = text
        self.at = 0
        self._decoder = json.JSONDecoder()

    def fail(self, what: str) -> GraphError:
        return GraphError(f"line {self.number}", "text", printable(self.text[self.at :], 40), what)

    def skip(self) -> None:
        while self.at < len(self.text) and self.text[self.at] in " \t":
            self.at += 1

    def word(self) -> str:
        """The characters up to a space, '=' or '('."""
        self.skip()
        start = self.at
        while self.at < len(self.text) and self.text[self.at] not in " =(":
            self.at += 1
        if start == self.at:
            raise self.fail("a word is missing")
        return self.text[start : self.at]

    def expect(self, mark: str) -> None:
        self.skip()
        if not self.text.startswith(mark, self.at):
            raise self.fail(f"'{mark}' is missing")
        self.at += len(mark)

    def json(self) -> Any:
        """A JSON value."""
        self.skip()
        try:
            value, self.at = self._decoder.raw_decode(self.text, self.at)
        except (ValueError, RecursionError):
            raise self.fail("must be a JSON value") from None
        return value

    def string(self) -> str:
        value = self.json()
        if not isinstance(value, str):
            raise self.fail("must be a string")
        return value

    def names(self) -> tuple[str, ...]:
        """``("a", "b")``."""
        self.expect("(")
        found: list[str] = []
        self.skip()
        while not self.text.startswith(")", self.at):
            if found:
                self.expect(",")
            found.append(self.string())
            self.skip()
        self.at += 1
        return tuple(found)

    def options(self) -> dict[str, Any]:
        """``key=value key=value`` to the end of the line."""
        found: dict[str, Any] = {}
        self.skip()
        while self.at < len(self.text):
            key = self.word()
            self.expect("=")
            if key in found:
                raise self.fail(f"{key} is given twice")
            found[key] = self.json()
            self.skip()
        return found


def parse_graph(text: str) -> Graph:
    """Read the text form of a graph and verify it.

    Raises:
        GraphError: a line that cannot be read, or a graph that breaks a rule.
    """
    name: str | None = None
    ins: list[str] = []
    outs: list[str] = []
    tensors: list[Tensor] = []
    raw: list[tuple[_Line, str, str, tuple[str, ...], tuple[str, ...], dict[str, Any]]] = []
    constants: dict[int, Array | bytes] = {}
    for number, content in enumerate(text.splitlines(), 1):
        line = _Line(number, content.rstrip())
        line.skip()
        if line.at == len(line.text) or line.text[line.at] == "#":
            continue
        keyword = line.word()
        if keyword == "graph":
            name = line.string()
        elif keyword == "input":
            ins.append(line.string())
        elif keyword == "output":
            outs.append(line.string())
        elif keyword == "tensor":
            tensors.append(_tensor(line))
        elif keyword == "node":
            label, op = line.string(), line.word()
            sources = line.names()
            line.expect("->")
            raw.append((line, label, op, sources, line.names(), line.options()))
        elif keyword == "constant":
            _constant(line, constants)
        else:
            raise line.fail("must begin with graph, input, output, tensor, node or constant")
    if name is None:
        raise GraphError("text", "graph", "missing", "the first line names the graph")
    nodes = tuple(_node(*parts, constants) for parts in raw)
    return Graph(name, tuple(tensors), nodes, tuple(ins), tuple(outs)).verify()


def _tensor(line: _Line) -> Tensor:
    label, kind, shape = line.string(), line.word(), line.json()
    options = line.options()
    if not isinstance(shape, list) or not all(isinstance(d, int) and abs(d) < LARGEST for d in shape):
        raise line.fail("the shape must be a list of integers below 2^31")
    scale, zero = options.pop("scale", 1.0), options.pop("zero_point", 0)
    if options or not isinstance(scale, (int, float)) or not isinstance(zero, int):
        raise line.fail("only scale= and zero_point= may follow")
    return Tensor(label, tuple(shape), kind, float(scale), zero)


def _constant(line: _Line, constants: dict[int, Array | bytes]) -> None:
    line.expect("@")
    index, kind, shape, packed = line.json(), line.word(), line.json(), line.text[line.at :].strip()
    if not isinstance(shape, list) or not all(isinstance(d, int) and d >= 0 for d in shape):
        raise line.fail("the shape must be a list of integers >= 0")
    if kind != "bytes" and kind not in CONSTANT_TYPES:
        raise line.fail(f"constant type {kind}: must be bytes or one of {', '.join(CONSTANT_TYPES)}")
    width = 1 if kind == "bytes" else np.dtype(kind).itemsize
    size = width
    for dim in shape:
        size *= dim
    if size > LARGEST:
        raise line.fail(f"a constant of {size} bytes: at most {LARGEST}")
    try:
        inflater = zlib.decompressobj()
        data = inflater.decompress(base64.b64decode(packed, validate=True), size + 1)
    except (binascii.Error, zlib.error, ValueError) as error:
        raise line.fail(f"the data are damaged ({error})") from None
    if len(data) != size:
        raise line.fail(f"the data do not hold {size} bytes")
    if kind == "bytes":
        constants[index] = data
    else:
        constants[index] = Array(np.frombuffer(data, np.dtype(kind).newbyteorder("<")).astype(kind).reshape(shape))


def _node(
    line: _Line,
    label: str,
    op: str,
    sources: tuple[str, ...],
    targets: tuple[str, ...],
    options: dict[str, Any],
    constants: Mapping[int, Array | bytes],
) -> Node:
    kind = OPERATORS.get(op)
    if kind is None:
        raise GraphError(label, "operator", op, f"must be one of {', '.join(OPERATORS)}")
    wanted = {f.name for f in fields(kind)} - {"name", "inputs", "outputs"}
    if set(options) != wanted:
        raise GraphError(label, "attributes", sorted(options), f"{op} has {', '.join(sorted(wanted))}")
    build: Callable[..., Node] = kind
    hints = get_type_hints(kind)
    values = {key: _value(label, key, item, constants) for key, item in options.items()}
    for key, value in values.items():
        _check_type(label, key, value, hints[key])
    return build(label, sources, targets, **values)


def _check_type(label: str, key: str, value: object, hint: Any) -> None:
    """Raise GraphError unless a value has the type its field is declared with."""
    if get_origin(hint) is tuple:
        kinds = get_args(hint)
        if not isinstance(value, tuple) or (kinds[-1] is not Ellipsis and len(value) != len(kinds)):
            raise GraphError(label, key, value, "must be a list of the right length")
        for i, item in enumerate(value):
            _check_type(label, key, item, kinds[0] if kinds[-1] is Ellipsis else kinds[i])
        return
    if not isinstance(value, hint) or (hint is int and isinstance(value, bool)):
        raise GraphError(label, key, value, f"must be of type {hint.__name__}")
    if hint is int and isinstance(value, int) and abs(value) >= LARGEST:
        raise GraphError(label, key, value, "must be below 2^31")


def _value(label: str, key: str, item: Any, constants: Mapping[int, Array | bytes]) -> Any:
    if isinstance(item, list):
        return tuple(_value(label, key, v, constants) for v in item)
    if not isinstance(item, dict):
        return item
    if set(item) == {"@"}:
        if not isinstance(item["@"], int) or item["@"] not in constants:
            raise GraphError(label, key, f"@{item['@']}", "no such constant")
        return constants[item["@"]]
    if set(item) != {f.name for f in fields(Requant)}:
        raise GraphError(label, key, sorted(item), "is not a requantization")
    if not isinstance(item["mode"], str) or item["mode"] not in RequantMode.__members__:
        raise GraphError(label, f"{key}.mode", item["mode"], f"must be one of {', '.join(RequantMode.__members__)}")
    named = {k: _value(label, k, v, constants) for k, v in item.items()}
    named["mode"] = RequantMode[item["mode"]]
    for field_name, hint in get_type_hints(Requant).items():
        _check_type(label, f"{key}.{field_name}", named[field_name], hint)
    return Requant(**named)
