# SPDX-License-Identifier: Apache-2.0
"""Random one-operator graphs with int8 inputs and outputs, by seed."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from openvta.compiler.graph import Array, Graph, Node, Requant, Tensor
from openvta.compiler.ops import (
    Add,
    AveragePool,
    Clip,
    Conv2d,
    Dense,
    GlobalAverage,
    MaxPool,
    Requantize,
    Reshape,
)
from openvta.spec.arith import Scaling, choose_float32, choose_powers, choose_rational
from openvta.spec.isa import RequantMode

Rng = np.random.Generator


def _int(rng: Rng, low: int, high: int) -> int:
    return int(rng.integers(low, high + 1))


def _zero(rng: Rng) -> int:
    return 0 if rng.random() < 0.4 else _int(rng, -128, 127)


def _rule(rng: Rng, ratios: list[float], zero: int) -> Requant:
    kind = _int(rng, 0, 2)
    if kind == 0:
        found = choose_powers([2.0 ** round(float(np.log2(r))) for r in ratios])
    elif kind == 1:
        found = choose_float32([float(np.float32(r)) for r in ratios])
    else:
        found = [choose_rational(Fraction(r).limit_denominator(1 << 20), 1 << 24) for r in ratios]
        mode = found[0].mode
        found = found if all(f.mode is mode for f in found) else choose_float32(ratios)
    low, high = (-128, 127) if rng.random() < 0.5 else sorted((_int(rng, -128, 127), _int(rng, -128, 127)))
    return _requant(found, ratios, zero, low, high)


def _requant(found: list[Scaling], ratios: list[float], zero: int, low: int, high: int) -> Requant:
    return Requant(
        found[0].mode,
        Array(ratios, np.float64),
        Array([f.multiplier for f in found], np.uint32),
        Array([f.shift for f in found], np.uint8),
        zero,
        low,
        high,
    )


def _weights(rng: Rng, shape: tuple[int, ...]) -> Array:
    if rng.random() < 0.2:
        return Array(rng.integers(-255, 256, shape), np.int16)
    return Array(rng.integers(-128, 128, shape), np.int8)


def _window(rng: Rng) -> tuple[tuple[int, int], tuple[int, int], tuple[int, int, int, int], tuple[int, int]]:
    """Kernel, strides, pads and an input size they fit."""
    kernel = _int(rng, 1, 5), _int(rng, 1, 5)
    strides = _int(rng, 1, 4), _int(rng, 1, 4)
    pads = tuple(_int(rng, 0, 3) for _ in range(4))
    size = (
        max(1, kernel[0] - pads[0] - pads[2]) + _int(rng, 0, 12),
        max(1, kernel[1] - pads[1] - pads[3]) + _int(rng, 0, 12),
    )
    return kernel, strides, (pads[0], pads[1], pads[2], pads[3]), size


def _output(
    size: tuple[int, int], kernel: tuple[int, int], strides: tuple[int, int], pads: tuple[int, ...]
) -> tuple[int, int]:
    return (
        (size[0] + pads[0] + pads[2] - kernel[0]) // strides[0] + 1,
        (size[1] + pads[1] + pads[3] - kernel[1]) // strides[1] + 1,
    )


def conv_graph(
    rng: Rng,
    channels: tuple[int, int],
    size: tuple[int, int],
    kernel: tuple[int, int],
    strides: tuple[int, int],
    pads: tuple[int, int, int, int],
    groups: int = 1,
) -> Graph:
    """A convolution with random weights and scales."""
    cin, cout = channels
    x = Tensor("x", (1, cin, *size), "int8", 0.5, _zero(rng))
    y = Tensor("y", (1, cout, *_output(size, kernel, strides, pads)), "int8", 0.25, _zero(rng))
    weight = _weights(rng, (cout, cin // groups, *kernel))
    spread = 100.0 * float(np.sqrt(cin // groups * kernel[0] * kernel[1]))
    count = cout if rng.random() < 0.6 else 1
    ratios = [float(r) for r in rng.uniform(0.3, 2.0, count) / spread]
    rule = _rule(rng, ratios, y.zero_point)
    bias = Array(rng.integers(-3000, 3000, cout), np.int32)
    node = Conv2d("conv", ("x",), ("y",), weight, Array(np.ones(cout)), bias, strides, pads, groups, rule)
    return Graph("conv", (x, y), (node,), ("x",), ("y",)).verify()


def _conv(rng: Rng) -> Graph:
    kernel, strides, pads, size = _window(rng)
    return conv_graph(rng, (_int(rng, 1, 40), _int(rng, 1, 40)), size, kernel, strides, pads)


def _grouped(rng: Rng) -> Graph:
    kernel, strides, pads, size = _window(rng)
    groups = _int(rng, 2, 24)
    return conv_graph(rng, (groups * _int(rng, 1, 3), groups * _int(rng, 1, 3)), size, kernel, strides, pads, groups)


def _depthwise(rng: Rng) -> Graph:
    kernel, strides, pads, size = _window(rng)
    channels = _int(rng, 2, 40)
    return conv_graph(rng, (channels, channels * _int(rng, 1, 2)), size, kernel, strides, pads, channels)


def _dense_node(rng: Rng, features: int, outs: int, source: str, target: Tensor) -> Node:
    rule = _rule(rng, [float(r) for r in rng.uniform(0.3, 2.0, outs) / (100.0 * np.sqrt(features))], target.zero_point)
    bias = Array(rng.integers(-3000, 3000, outs), np.int32)
    return Dense("dense", (source,), (target.name,), _weights(rng, (outs, features)), Array(np.ones(outs)), bias, rule)


def _dense(rng: Rng) -> Graph:
    features, outs = _int(rng, 1, 300), _int(rng, 1, 80)
    x = Tensor("x", (1, features), "int8", 0.5, _zero(rng))
    y = Tensor("y", (1, outs), "int8", 0.5, _zero(rng))
    return Graph("dense", (x, y), (_dense_node(rng, features, outs, "x", y),), ("x",), ("y",)).verify()


def _flatten(rng: Rng) -> Graph:
    shape = _int(rng, 1, 40), _int(rng, 1, 7), _int(rng, 1, 7)
    features, outs = int(np.prod(shape)), _int(rng, 1, 40)
    zero = _zero(rng)
    x = Tensor("x", (1, *shape), "int8", 0.5, zero)
    f = Tensor("f", (1, features), "int8", 0.5, zero)
    y = Tensor("y", (1, outs), "int8", 0.5, _zero(rng))
    nodes = (Reshape("flatten", ("x",), ("f",)), _dense_node(rng, features, outs, "f", y))
    return Graph("flatten", (x, f, y), nodes, ("x",), ("y",)).verify()


def _add(rng: Rng) -> Graph:
    shape = (1, _int(rng, 1, 40), _int(rng, 1, 12), _int(rng, 1, 12))
    a = Tensor("a", shape, "int8", 0.5, _zero(rng))
    b = Tensor("b", shape, "int8", 0.25, _zero(rng))
    y = Tensor("y", shape, "int8", 0.5, _zero(rng))
    kind = _int(rng, 0, 2)
    if kind == 0:
        pair, shift = (1 << _int(rng, 0, 6), 1 << _int(rng, 0, 6)), 3
    elif kind == 1:
        pair, shift = (_int(rng, 0, 1 << 22), _int(rng, 0, 1 << 22)), 22
    else:
        pair, shift = (_int(rng, 0, 300), _int(rng, 0, 70000)), 15
    rule = _requant([Scaling(RequantMode.HALF_EVEN, 1, shift, True)], [2.0**-shift], y.zero_point, -128, 127)
    return Graph("add", (a, b, y), (Add("add", ("a", "b"), ("y",), pair, rule),), ("a", "b"), ("y",)).verify()


def _pads_inside(rng: Rng, kernel: tuple[int, int]) -> tuple[int, int, int, int]:
    low = [_int(rng, 0, k - 1) for k in kernel]
    high = [_int(rng, 0, k - 1) for k in kernel]
    return low[0], low[1], high[0], high[1]


def _maxpool(rng: Rng) -> Graph:
    kernel, strides, _, size = _window(rng)
    pads = _pads_inside(rng, kernel)
    size = max(size[0], kernel[0]), max(size[1], kernel[1])
    channels, zero = _int(rng, 1, 40), _zero(rng)
    x = Tensor("x", (1, channels, *size), "int8", 0.5, zero)
    y = Tensor("y", (1, channels, *_output(size, kernel, strides, pads)), "int8", 0.5, zero)
    return Graph(
        "maxpool", (x, y), (MaxPool("maxpool", ("x",), ("y",), kernel, strides, pads),), ("x",), ("y",)
    ).verify()


def _averagepool(rng: Rng) -> Graph:
    kernel, strides, _, size = _window(rng)
    pads = _pads_inside(rng, kernel)
    size = max(size[0], kernel[0]), max(size[1], kernel[1])
    channels = _int(rng, 1, 40)
    x = Tensor("x", (1, channels, *size), "int8", 0.5, _zero(rng))
    out = _output(size, kernel, strides, pads)
    y = Tensor("y", (1, channels, *out), "int8", 0.5, _zero(rng))
    divisors = np.full(out, kernel[0] * kernel[1], np.int32)
    if rng.random() < 0.6:
        divisors = np.outer(rng.integers(1, kernel[0] + 1, out[0]), rng.integers(1, kernel[1] + 1, out[1])).astype(
            np.int32
        )
    values = tuple(int(v) for v in np.unique(divisors))
    rules = tuple(
        _requant([choose_rational(Fraction(1, v), 1 << 16)], [1 / v], y.zero_point, -128, 127) for v in values
    )
    node = AveragePool("pool", ("x",), ("y",), kernel, strides, pads, Array(divisors), values, rules)
    return Graph("averagepool", (x, y), (node,), ("x",), ("y",)).verify()


def _global(rng: Rng) -> Graph:
    shape = (1, _int(rng, 1, 70), _int(rng, 1, 14), _int(rng, 1, 14))
    x = Tensor("x", shape, "int8", 0.5, _zero(rng))
    y = Tensor("y", (*shape[:2], 1, 1), "int8", 0.25, _zero(rng))
    ratio = Fraction(int(rng.integers(1, 5)), shape[2] * shape[3])
    rule = _requant([choose_rational(ratio, 1 << 16)], [float(ratio)], y.zero_point, -128, 127)
    return Graph("global", (x, y), (GlobalAverage("mean", ("x",), ("y",), rule),), ("x",), ("y",)).verify()


def _clip(rng: Rng) -> Graph:
    shape = (1, _int(rng, 1, 40), _int(rng, 1, 12), _int(rng, 1, 12))
    zero = _zero(rng)
    low, high = sorted((_int(rng, -128, 127), _int(rng, -128, 127)))
    x, y = (Tensor(name, shape, "int8", 0.5, zero) for name in "xy")
    return Graph("clip", (x, y), (Clip("clip", ("x",), ("y",), low, high),), ("x",), ("y",)).verify()


def _requantize(rng: Rng) -> Graph:
    shape = (1, _int(rng, 1, 40), _int(rng, 1, 12), _int(rng, 1, 12))
    x = Tensor("x", shape, "int8", 0.5, _zero(rng))
    y = Tensor("y", shape, "int8", 0.25, _zero(rng))
    rule = _rule(rng, [float(rng.uniform(0.1, 4.0))], y.zero_point)
    return Graph("requantize", (x, y), (Requantize("scale", ("x",), ("y",), rule),), ("x",), ("y",)).verify()


MAKERS: dict[str, Callable[[Rng], Graph]] = {
    "conv": _conv,
    "grouped": _grouped,
    "depthwise": _depthwise,
    "dense": _dense,
    "flatten": _flatten,
    "add": _add,
    "maxpool": _maxpool,
    "averagepool": _averagepool,
    "global": _global,
    "clip": _clip,
    "requantize": _requantize,
}
"""Graph makers by operator."""


def make_graph(operator: str, seed: int) -> Graph:
    """Return the random graph of an operator and seed."""
    return MAKERS[operator](np.random.default_rng([seed, sorted(MAKERS).index(operator)]))
