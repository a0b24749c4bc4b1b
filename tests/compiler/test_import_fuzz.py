# SPDX-License-Identifier: Apache-2.0
"""Random nonsense graphs of every operator the importer knows: a graph, a host part or one clear error."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from compiler.small_models import model_of
from openvta.compiler.errors import CompileError
from openvta.compiler.importers import _fold, _layers, _simple, import_onnx
from openvta.compiler.passes import lowering_pipeline

KNOWN = [*_simple.HANDLERS, *_layers.HANDLERS, *_fold.HANDLERS, ("", "Sigmoid"), ("", "Mul"), ("", "Softmax")]
NAMES = (
    *(
        "axis",
        "pads",
        "strides",
        "kernel_shape",
        "dilations",
        "group",
        "ceil_mode",
        "transB",
        "transA",
        "alpha",
        "perm",
    ),
    *("axes", "keepdims", "allowzero", "mode", "value", "auto_pad", "to", "count_include_pad", "output_dtype", "min"),
)
TYPES = (np.float32, np.float32, np.int8, np.uint8, np.int32, np.int64, np.float16, np.int16, np.bool_)
MODELS = 800
LONG = 40_000


def _array(rng: np.random.Generator) -> np.ndarray[Any, Any]:
    shape = tuple(int(v) for v in rng.integers(0, 5, int(rng.integers(0, 5))))
    if rng.integers(2):
        shape = ((), (1,), (2,), (3,), (2, 2, 3, 3), (3, 2, 1, 1), (2, 3))[int(rng.integers(7))]
    values = rng.integers(-3, 9, shape) if rng.integers(2) else rng.normal(0, 1, shape)
    if rng.integers(10) == 0 and values.size:
        values = values.astype(np.float64)
        values.flat[0] = (np.nan, np.inf, -1.0, 0.0, 1e30, 1e-40)[int(rng.integers(6))]
    with np.errstate(all="ignore"):
        return np.asarray(values.astype(TYPES[int(rng.integers(len(TYPES)))]))


def _attribute(rng: np.random.Generator) -> onnx.AttributeProto:
    values: list[Any] = [
        [int(v) for v in rng.integers(-3, 6, int(rng.integers(1, 6)))],
        int(rng.integers(-9, 9)),
        float(rng.normal()),
        ("SAME_UPPER", "VALID", "constant", "reflect")[int(rng.integers(4))],
        [1, 1, 1, 1],
        [2, 2],
    ]
    return helper.make_attribute(NAMES[int(rng.integers(len(NAMES)))], values[int(rng.integers(len(values)))])


def random_model(seed: int) -> onnx.ModelProto:
    """A few random nodes around a sound quantizer."""
    rng = np.random.default_rng(seed)
    constants = {f"k{i}": _array(rng) for i in range(8)}
    constants.update(s=np.array(0.5, np.float32), z=np.array(1, np.int8), w=np.ones((2, 2, 1, 1), np.int8))
    constants.update(zw=np.array(0, np.int8), axes=np.array([2, 3], np.int64), shape=np.array([0, -1], np.int64))
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"], name="quantize"),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["r"], name="dequantize"),
        helper.make_node("DequantizeLinear", ["w", "s", "zw"], ["wr"], name="weights"),
    ]
    names = ["x", "q", "r", "r", "r", "q", "wr", "s", "z", *constants]
    for i in range(int(rng.integers(1, 6))):
        domain, op = KNOWN[int(rng.integers(len(KNOWN)))]
        inputs = [names[int(rng.integers(len(names)))] for _ in range(int(rng.integers(1, 10)))]
        if rng.integers(2):
            usual = {"QuantizeLinear": ["s", "z"], "Conv": ["wr"], "ReduceMean": ["axes"], "Reshape": ["shape"]}
            inputs = [inputs[0], *usual.get(op, inputs[1:2])]
        node = helper.make_node(op, inputs, [f"n{i}"], name=f"node{i}", domain=domain)
        seen: dict[str, onnx.AttributeProto] = {}
        for _ in range(int(rng.integers(0, 3))):
            attribute = _attribute(rng)
            seen[attribute.name] = attribute
        node.attribute.extend(seen.values())
        nodes.append(node)
        names += [f"n{i}"] * 4
    return model_of(nodes, constants, inputs={"x": ("n", 2, 4, 5)}, outputs=(nodes[-1].output[0],))


def _try(seed: int) -> bool:
    try:
        lowering_pipeline().run(import_onnx(random_model(seed)).graph)
    except CompileError as error:
        assert str(error)
        return False
    return True


def test_random_graphs() -> None:
    assert sum(_try(seed) for seed in range(MODELS)) > MODELS // 50


@pytest.mark.long
def test_random_graphs_long() -> None:
    for seed in range(1_000_000, 1_000_000 + LONG):
        _try(seed)
