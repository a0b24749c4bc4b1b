# SPDX-License-Identifier: Apache-2.0
"""What the importer makes of patterns found in real files, each checked against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import pytest
from onnx import TensorProto, helper

from compiler.small_models import base_constants, conv_model, conv_nodes, model_of, quantize
from openvta.compiler.importers import ImportResult, import_onnx
from openvta.compiler.ops import (
    AveragePool,
    Clip,
    Conv2d,
    Dense,
    Dequantize,
    GlobalAverage,
    Host,
    Quantize,
    Recode,
    Requantize,
)
from openvta.compiler.passes import lowering_pipeline
from openvta.compiler.reference import evaluate, plain_session
from openvta.compiler.text import parse_graph
from openvta.compiler.validate import compare_with_onnxruntime

NDArray = npt.NDArray[Any]


def _floats(*shape: int, seed: int = 0, spread: float = 30.0) -> NDArray:
    return np.random.default_rng(seed).normal(0, spread, shape).astype(np.float32)


def _same(model: onnx.ModelProto, inputs: dict[str, NDArray], *, strict: bool = True) -> ImportResult:
    """Import, run in both forms, and require onnxruntime's result exactly."""
    result = import_onnx(model, strict=strict)
    session = plain_session(model.SerializeToString())
    names = [o.name for o in session.get_outputs()]
    expected = dict(zip(names, session.run(names, inputs), strict=True))
    for graph in (result.graph, lowering_pipeline().run(result.graph)):
        found = evaluate(graph, inputs)
        for name in names:
            assert found[name].dtype == expected[name].dtype
            assert found[name].shape == expected[name].shape
            assert (found[name] == expected[name]).all(), name
        assert parse_graph(graph.text()) == graph
    return result


def _kinds(result: ImportResult) -> list[str]:
    return [node.op for node in result.graph.nodes]


def test_padding_holds_the_zero_point() -> None:
    result = _same(conv_model(pads=[1, 1, 1, 1]), {"x": _floats(2, 2, 5, 5)})
    conv = result.graph.node("conv")
    assert isinstance(conv, Conv2d)
    sums = conv.weight.values.reshape(3, -1).astype(int).sum(axis=1)
    assert (conv.folded_bias(3).values == conv.bias.values - 3 * sums).all()
    # all-zero real input: every output is the requantized bias, corners included
    zero = evaluate(result.graph, {"x": np.zeros((1, 2, 5, 5), np.float32)})["y"]
    assert (zero == zero[:, :, :1, :1]).all()


@pytest.mark.parametrize("strides", [[2, 2], [3, 3], [5, 5], [1, 2]])
@pytest.mark.parametrize("kernel", [1, 2])
def test_strides_beyond_the_kernel(strides: list[int], kernel: int) -> None:
    rng = np.random.default_rng(1)
    weight = rng.integers(-127, 128, (3, 2, kernel, kernel)).astype(np.int8)
    model = model_of(conv_nodes(strides=strides), {**base_constants(), "w": weight}, inputs={"x": ("n", 2, 7, 7)})
    _same(model, {"x": _floats(1, 2, 7, 7)})


@pytest.mark.parametrize(
    ("size", "kernel", "attributes"),
    [
        ((1, 40), (1, 5), {}),
        ((5, 3), (5, 1), {}),
        ((7, 11), (3, 3), {"strides": [1, 2], "pads": [0, 2, 1, 0]}),
        ((9, 9), (4, 4), {"pads": [1, 1, 2, 2]}),
        ((7, 7), (2, 2), {"strides": [2, 2], "auto_pad": "SAME_UPPER"}),
        ((7, 7), (2, 2), {"strides": [2, 2], "auto_pad": "SAME_LOWER"}),
        ((7, 7), (3, 3), {"strides": [2, 2], "auto_pad": "VALID"}),
    ],
)
def test_rectangles_and_asymmetric_pads(
    size: tuple[int, int], kernel: tuple[int, int], attributes: dict[str, Any]
) -> None:
    weight = np.random.default_rng(2).integers(-127, 128, (3, 2, *kernel)).astype(np.int8)
    model = model_of(conv_nodes(**attributes), {**base_constants(), "w": weight}, inputs={"x": ("n", 2, *size)})
    _same(model, {"x": _floats(1, 2, *size)})


def test_pad_before_a_convolution_folds_only_where_it_is_real_zero() -> None:
    def padded(mode: str, value: float) -> onnx.ModelProto:
        nodes = conv_nodes()
        nodes[4].input[0] = "padded"
        pad = helper.make_node("Pad", ["xr", "pads", "value"], ["padded"], name="pad", mode=mode)
        pads = np.array([0, 0, 1, 2, 0, 0, 0, 1], np.int64)
        constants = {**base_constants(), "pads": pads, "value": np.array(value, np.float32)}
        return model_of([*nodes[:4], pad, *nodes[4:]], constants)

    conv = _same(padded("constant", 0.0), {"x": _floats(1, 2, 5, 5)}).graph.node("conv")
    assert isinstance(conv, Conv2d)
    assert conv.pads == (1, 2, 0, 1)
    for mode, value in (("constant", 0.5), ("reflect", 0.0), ("edge", 0.0)):
        result = _same(padded(mode, value), {"x": _floats(1, 2, 5, 5)}, strict=False)
        assert result.hosts[0].node == "pad"


def test_channel_with_zero_weights_and_zero_scale() -> None:
    constants = base_constants()
    weight = constants["w"].copy()
    weight[1] = 0
    bias = constants["b"].copy()
    bias[1] = 0
    scales = np.array([0.25, 0.0, 0.125], np.float32)
    changes = {"w": weight, "b": bias, "ws": scales, "wz": np.zeros(3, np.int8), "bs": scales * np.float32(0.5)}
    with np.errstate(all="raise"):
        result = _same(conv_model(changes), {"x": _floats(1, 2, 5, 5)})
    y = evaluate(result.graph, {"x": _floats(1, 2, 5, 5)}, keep=["y_q"])["y_q"]
    assert (y[:, 1] == -2).all()


def test_a_zero_point_for_every_channel() -> None:
    """x all 130 (zero 128, scale .05), w all 100 (zeros 5 and 90, scale .02), y scale .1 zero 128."""
    constants: dict[str, NDArray] = {
        "xs": np.array(0.05, np.float32),
        "xz": np.array(128, np.uint8),
        "w": np.full((2, 1, 2, 2), 100, np.uint8),
        "ws": np.array([0.02, 0.02], np.float32),
        "wz": np.array([5, 90], np.uint8),
        "ys": np.array(0.1, np.float32),
        "yz": np.array(128, np.uint8),
    }
    nodes = [n for n in conv_nodes() if n.name != "b_dequantize"]
    next(n for n in nodes if n.op_type == "Conv").input.pop()
    model = model_of(nodes, constants, inputs={"x": ("n", 1, 3, 3)})
    result = import_onnx(model, strict=True)
    x = np.full((1, 1, 3, 3), 2 * 0.05, np.float32)
    y = evaluate(result.graph, {"x": x}, keep=["y_q"])["y_q"]
    assert (y[:, 0] == 136).all()
    assert (y[:, 1] == 129).all()


def test_weights_that_do_not_fit_eight_bits_after_correction() -> None:
    rng = np.random.default_rng(3)
    weight = rng.integers(0, 256, (3, 2, 3, 3)).astype(np.uint8)
    weight[0, 0, 0, 0] = 255
    changes: dict[str, NDArray] = {"w": weight, "wz": np.array(0, np.uint8), "ys": np.array(64.0, np.float32)}
    conv = _same(conv_model(changes), {"x": _floats(1, 2, 5, 5)}).graph.node("conv")
    assert isinstance(conv, Conv2d)
    assert conv.weight.values.dtype == np.int16
    parts = conv.weight_parts
    assert len(parts) == 3
    assert (np.sum([p.values.astype(int) for p in parts], axis=0) == weight).all()


def test_conv_relu_folds_into_the_clamp_in_every_form() -> None:
    def nodes(*, middle: bool, second: str) -> list[onnx.NodeProto]:
        found = conv_nodes()[:-2]
        source = "c"
        if middle:
            found += quantize("c", "cr", "y")
            source = "cr"
        found.append(helper.make_node("Relu", [source], ["r"], name="relu"))
        return [*found, *quantize("r", "y", second)]

    for middle in (False, True):
        result = _same(model_of(nodes(middle=middle, second="y"), base_constants()), {"x": _floats(1, 2, 5, 5)})
        assert _kinds(result) == ["Quantize", "Conv2d", "Dequantize"]
        conv = result.graph.nodes[1]
        assert isinstance(conv, Conv2d)
        assert (conv.requant.low, conv.requant.high) == (-2, 127)
        assert "relu" in conv.origin
    constants = {**base_constants(), "zs": np.array(16.0, np.float32), "zz": np.array(5, np.int8)}
    result = _same(model_of(nodes(middle=True, second="z"), constants), {"x": _floats(1, 2, 5, 5)})
    assert _kinds(result) == ["Quantize", "Conv2d", "Requantize", "Dequantize"], "two roundings do not fold"


def test_clip_bounds_off_the_grid() -> None:
    def model(low: float, high: float) -> onnx.ModelProto:
        nodes = [*quantize("x", "xr", "x"), helper.make_node("Clip", ["xr", "low", "high"], ["c"], name="clip")]
        nodes += [helper.make_node("GlobalAveragePool", ["c"], ["g"], name="mean"), *quantize("g", "y", "x")]
        bounds = {"low": np.array(low, np.float32), "high": np.array(high, np.float32)}
        return model_of(nodes, {**base_constants(), **bounds}, inputs={"x": ("n", 2, 4, 4)})

    x = {"x": _floats(1, 2, 4, 4)}
    assert _kinds(_same(model(0.0, 6.0), x)) == ["Quantize", "Clip", "GlobalAverage", "Dequantize"]
    assert _kinds(_same(model(-1e9, 1e9), x)) == ["Quantize", "GlobalAverage", "Dequantize"]
    result = _same(model(0.3, 6.0), x, strict=False)
    assert {h.node for h in result.hosts} == {"clip", "mean"}
    assert any("not multiples of its scale" in str(h) for h in result.hosts)


def test_clip_with_bounds_in_the_wrong_order() -> None:
    nodes = [*quantize("x", "xr", "x"), helper.make_node("Clip", ["xr", "low", "high"], ["c"], name="clip")]
    bounds = {"low": np.array(5.0, np.float32), "high": np.array(-5.0, np.float32)}
    _same(model_of([*nodes, *quantize("c", "y", "x")], {**base_constants(), **bounds}), {"x": _floats(1, 2, 5, 5)})


@pytest.mark.parametrize("axes", [[-1, -2], [2, 3], [3, -2]])
def test_mean_over_negative_axes_without_a_quantizer_before_the_reshape(axes: list[int]) -> None:
    nodes = [
        *quantize("x", "xr", "x"),
        helper.make_node("Relu", ["xr"], ["r"], name="relu"),
        helper.make_node("ReduceMean", ["r", "axes"], ["m"], name="mean", keepdims=1),
        helper.make_node("Reshape", ["m", "shape"], ["v"], name="reshape", allowzero=1),
        *quantize("v", "y", "x"),
    ]
    constants: dict[str, NDArray] = {
        **base_constants(),
        "axes": np.array(axes, np.int64),
        "shape": np.array([-1, 2], np.int64),
    }
    result = _same(model_of(nodes, constants, inputs={"x": ("n", 2, 7, 7)}), {"x": _floats(3, 2, 7, 7)})
    assert _kinds(result) == ["Quantize", "Clip", "GlobalAverage", "Reshape", "Dequantize"]
    mean = result.graph.node("mean")
    assert isinstance(mean, GlobalAverage)
    assert mean.requant.exact


def test_mean_over_other_axes_is_a_host_part() -> None:
    nodes = [*quantize("x", "xr", "x"), helper.make_node("ReduceMean", ["xr", "axes"], ["m"], name="mean", keepdims=1)]
    constants = {**base_constants(), "axes": np.array([1], np.int64)}
    result = _same(model_of([*nodes, *quantize("m", "y", "x")], constants), {"x": _floats(1, 2, 5, 5)}, strict=False)
    assert "axes [1]" in str(result.hosts[0])


def test_average_pool_in_ceil_mode_divides_by_what_it_covers() -> None:
    """1..16 as 4x4, 3x3, stride 2, pad 1, ceil, padding counted; output scale 1/18 holds thirds and halves."""
    for include, corner in ((1, 14 / 9), (0, 14 / 4)):
        flags = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1], "ceil_mode": 1}
        nodes = [
            *quantize("x", "xr", "x"),
            helper.make_node("AveragePool", ["xr"], ["p"], name="pool", count_include_pad=include, **flags),
            *quantize("p", "y", "y"),
        ]
        constants: dict[str, NDArray] = {
            "xs": np.array(1.0, np.float32),
            "xz": np.array(0, np.int8),
            "ys": np.array(0.125, np.float32),
            "yz": np.array(0, np.uint8),
        }
        x = np.arange(1, 17, dtype=np.float32).reshape(1, 1, 4, 4)
        graph = import_onnx(model_of(nodes, constants, inputs={"x": ("n", 1, 4, 4)}), strict=True).graph
        y = evaluate(graph, {"x": x})["y"][0, 0]
        exact = np.array([[14 / 9, 10 / 3, 2], [19 / 3, 11, 6], [4.5, 7.5, 4]]) if include else None
        assert y[0, 0] == np.rint(corner * 8) / 8
        if exact is not None:
            assert (y == np.rint(exact * 8) / 8).all()
        pool = graph.node("pool")
        assert isinstance(pool, AveragePool)
        assert pool.divisor_values == ((4, 6, 9) if include else (1, 2, 3, 4, 6, 9))
        assert all(rule.exact for rule in pool.requants)


def test_bias_scale_of_one_entry_or_one_for_each_channel() -> None:
    one = import_onnx(conv_model()).graph.node("conv")
    each = import_onnx(conv_model({"bs": np.full(3, 0.125, np.float32)})).graph.node("conv")
    assert isinstance(one, Conv2d)
    assert isinstance(each, Conv2d)
    assert one.bias == each.bias


def test_float_bias_is_rounded_and_noted() -> None:
    nodes = [n for n in conv_nodes() if n.name != "b_dequantize"]
    bias = np.array([-890.8524, 3.0, 0.25], np.float32) * np.float32(0.125)
    result = import_onnx(model_of(nodes, {**base_constants(), "br": bias}), strict=True)
    conv = result.graph.node("conv")
    assert isinstance(conv, Conv2d)
    assert conv.bias.values.tolist() == [-891, 3, 0]
    assert len(result.notes) == 1
    assert "conv: the float bias was rounded by up to 0.25" in result.notes[0]


def test_bias_changes_results_by_itself_only() -> None:
    with_bias = import_onnx(conv_model()).graph.node("conv")
    nodes = [n for n in conv_nodes() if n.name != "b_dequantize"]
    next(n for n in nodes if n.op_type == "Conv").input.pop()
    without = import_onnx(model_of(nodes, base_constants())).graph.node("conv")
    assert isinstance(with_bias, Conv2d)
    assert isinstance(without, Conv2d)
    assert without.bias.values.tolist() == [0, 0, 0]
    assert without.weight == with_bias.weight
    assert without.requant == with_bias.requant


def test_product_and_later_bias() -> None:
    rng = np.random.default_rng(4)
    nodes = [
        *quantize("x", "xr", "x"),
        helper.make_node("DequantizeLinear", ["w", "ws", "wz"], ["wr"], name="w_dequantize", axis=1),
        helper.make_node("MatMul", ["xr", "wr"], ["m"], name="matmul"),
        helper.make_node("DequantizeLinear", ["b", "bs"], ["br"], name="b_dequantize"),
        helper.make_node("Add", ["br", "m"], ["a"], name="add"),
        *quantize("a", "y", "y"),
    ]
    constants = {
        **base_constants(),
        "w": rng.integers(-127, 128, (6, 3)).astype(np.int8),
        "ws": np.array([0.25, 0.5, 0.125], np.float32),
        "wz": np.zeros(3, np.int8),
        "bs": np.array(0.25, np.float32),
    }
    result = _same(model_of(nodes, constants, inputs={"x": ("n", 6)}), {"x": _floats(4, 6)})
    dense = result.graph.node("matmul")
    assert isinstance(dense, Dense)
    assert set(dense.origin) >= {"matmul", "add"}
    assert dense.bias.values.tolist() == np.rint(constants["b"] * 0.25 / (0.5 * constants["ws"])).astype(int).tolist()


def test_dense_behind_a_flattened_image_becomes_a_convolution() -> None:
    rng = np.random.default_rng(5)
    nodes = [
        *quantize("x", "xr", "x"),
        helper.make_node("Flatten", ["xr"], ["f"], name="flatten"),
        helper.make_node("DequantizeLinear", ["w", "ws", "wz"], ["wr"], name="w_dequantize"),
        helper.make_node("Gemm", ["f", "wr"], ["g"], name="gemm", transB=1),
        *quantize("g", "y", "y"),
    ]
    constants = {**base_constants(), "w": rng.integers(-127, 128, (4, 50)).astype(np.int8)}
    result = _same(model_of(nodes, constants), {"x": _floats(2, 2, 5, 5)})
    assert _kinds(result) == ["Quantize", "Reshape", "Dense", "Dequantize"]
    lowered = lowering_pipeline().run(result.graph)
    assert [n.op for n in lowered.nodes] == ["Quantize", "Conv2d", "Reshape", "Dequantize"]
    assert lowered.tensor(lowered.nodes[1].output).shape == (1, 4, 1, 1)


def test_float_result_of_a_layer_stays_on_the_host() -> None:
    model = model_of(conv_nodes()[:-2], base_constants(), outputs=("c",))
    result = _same(model, {"x": _floats(1, 2, 5, 5)}, strict=False)
    assert [str(h) for h in result.hosts] == ["conv (Conv): its result is used without being quantized"]
    assert _kinds(result) == ["Quantize", "Dequantize", "Host"]


def test_unsupported_parts_run_on_the_host_between_accelerator_parts() -> None:
    nodes = [
        *conv_nodes()[:-1],
        helper.make_node("DequantizeLinear", ["y_q", "ys", "yz"], ["cr"], name="c_dequantize"),
        helper.make_node("Sigmoid", ["cr"], ["s"], name="sigmoid"),
        helper.make_node("Mul", ["s", "cr"], ["m"], name="mul"),
        *quantize("m", "mr", "y"),
        helper.make_node("Relu", ["mr"], ["r"], name="relu"),
        *quantize("r", "rr", "y"),
        helper.make_node("Softmax", ["rr"], ["y"], name="softmax", axis=1),
    ]
    result = _same(model_of(nodes, base_constants()), {"x": _floats(2, 2, 5, 5)}, strict=False)
    assert [h.node for h in result.hosts] == ["sigmoid", "mul", "softmax"]
    hosts = [n for n in result.graph.nodes if isinstance(n, Host)]
    assert [len(h.reasons) for h in hosts] == [2, 1], "neighbours merge"
    assert _kinds(result) == ["Quantize", "Conv2d", "Dequantize", "Host", "Quantize", "Clip", "Dequantize", "Host"]


@pytest.mark.parametrize(("attributes", "reason"), [({"dilations": [2, 2]}, "dilations [2, 2]")])
def test_unsupported_attributes_run_on_the_host(attributes: dict[str, Any], reason: str) -> None:
    result = _same(conv_model(**attributes), {"x": _floats(1, 2, 5, 5)}, strict=False)
    assert reason in str(result.hosts[0])


def test_float_weights_run_on_the_host() -> None:
    nodes = [n for n in conv_nodes() if n.name != "w_dequantize"]
    constants = {**base_constants(), "wr": _floats(3, 2, 3, 3, spread=1.0)}
    result = _same(model_of(nodes, constants), {"x": _floats(1, 2, 5, 5)}, strict=False)
    assert "its weights are not quantized" in str(result.hosts[0])


def test_weights_quantized_in_the_graph() -> None:
    nodes = conv_nodes()
    nodes.insert(2, helper.make_node("QuantizeLinear", ["wf", "ws", "wz"], ["w"], name="w_quantize"))
    constants = base_constants()
    weight = constants.pop("w")
    constants["wf"] = weight.astype(np.float32) * np.float32(0.25) + np.float32(0.01)
    result = _same(model_of(nodes, constants), {"x": _floats(1, 2, 5, 5)})
    conv = result.graph.node("conv")
    assert isinstance(conv, Conv2d)
    assert (conv.weight.values == weight).all()


def test_integer_clip_of_a_narrow_activation() -> None:
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "xs", "xz"], ["q"], name="quantize"),
        helper.make_node("Clip", ["q", "low", "high"], ["n"], name="narrow"),
        helper.make_node("DequantizeLinear", ["n", "xs", "xz"], ["y"], name="dequantize"),
    ]
    constants = {**base_constants(), "low": np.array(-8, np.int8), "high": np.array(7, np.int8)}
    result = _same(model_of(nodes, constants), {"x": _floats(1, 2, 5, 5)})
    clip = result.graph.node("narrow")
    assert isinstance(clip, Clip)
    assert (clip.low, clip.high) == (-8, 7)


def test_concatenation_with_differing_scales_runs_on_the_host() -> None:
    nodes = [
        *quantize("a", "ar", "x"),
        *quantize("other", "br", "y"),
        helper.make_node("Concat", ["ar", "br"], ["c"], name="concat", axis=1),
        *quantize("c", "y", "x"),
    ]
    model = model_of(nodes, base_constants(), inputs={"a": ("n", 8, 3, 3), "other": ("n", 24, 3, 3)})
    result = _same(model, {"a": _floats(1, 8, 3, 3), "other": _floats(1, 24, 3, 3, seed=1)}, strict=False)
    assert [h.operator for h in result.hosts] == ["Concat"]


@pytest.mark.parametrize("kind", [np.int8, np.uint8])
def test_integer_inputs_and_outputs(kind: type[np.integer[Any]]) -> None:
    rng = np.random.default_rng(6)
    zero = 3 if kind is np.int8 else 120
    constants: dict[str, NDArray] = {
        "xs": np.array(0.5, np.float32),
        "xz": np.array(zero, kind),
        "w": rng.integers(-60, 61, (3, 2, 3, 3)).astype(np.int8),
        "ws": np.array(0.25, np.float32),
        "wz": np.array(0, np.int8),
        "ys": np.array(16.0, np.float32),
        "yz": np.array(zero, kind),
    }
    operands = ["x", "xs", "xz", "w", "ws", "wz", "ys", "yz"]
    code = TensorProto.INT8 if kind is np.int8 else TensorProto.UINT8
    node = helper.make_node("QLinearConv", operands, ["y"], name="conv", pads=[1, 1, 1, 1])
    model = model_of([node], constants, input_type=code, output_type=code)
    low, high = np.iinfo(kind).min, np.iinfo(kind).max
    result = _same(model, {"x": rng.integers(low, high + 1, (2, 2, 5, 5)).astype(kind)})
    lowered = [type(n) for n in lowering_pipeline().run(result.graph).nodes]
    assert lowered == ([Conv2d] if kind is np.int8 else [Recode, Conv2d, Recode])


def test_two_readers_keep_the_unclamped_value() -> None:
    nodes = [
        *conv_nodes()[:-2],
        *quantize("c", "cr", "y"),
        helper.make_node("Relu", ["cr"], ["r"], name="relu"),
        *quantize("r", "rr", "y"),
        helper.make_node("Add", ["rr", "cr"], ["a"], name="add"),
        *quantize("a", "y", "y"),
    ]
    result = _same(model_of(nodes, base_constants()), {"x": _floats(1, 2, 5, 5)})
    assert _kinds(result) == ["Quantize", "Conv2d", "Clip", "Add", "Dequantize"]


def test_quantizing_twice_with_the_same_parameters_costs_nothing() -> None:
    nodes = [*quantize("x", "xr", "x"), *quantize("xr", "x2", "x"), *quantize("x2", "y", "x")]
    assert _kinds(_same(model_of(nodes, base_constants()), {"x": _floats(1, 2, 5, 5)})) == ["Quantize", "Dequantize"]


def test_change_of_scale_alone() -> None:
    nodes = [*quantize("x", "xr", "x"), *quantize("xr", "y", "y")]
    result = _same(model_of(nodes, base_constants()), {"x": _floats(1, 2, 5, 5)})
    assert [type(n) for n in result.graph.nodes] == [Quantize, Requantize, Dequantize]


def test_shape_computations_left_by_exporters() -> None:
    nodes = [
        *quantize("x", "xr", "x"),
        helper.make_node("Shape", ["xr"], ["shape"], name="shape"),
        helper.make_node("Gather", ["shape", "zero"], ["batch"], name="gather"),
        helper.make_node("Unsqueeze", ["batch", "axes"], ["batch1"], name="unsqueeze"),
        helper.make_node("Concat", ["batch1", "rest"], ["target"], name="concat", axis=0),
        helper.make_node("Reshape", ["xr", "target"], ["r"], name="reshape"),
        *quantize("r", "y", "x"),
    ]
    constants = {
        **base_constants(),
        "zero": np.array(0, np.int64),
        "axes": np.array([0], np.int64),
        "rest": np.array([-1], np.int64),
    }
    assert _kinds(_same(model_of(nodes, constants), {"x": _floats(1, 2, 5, 5)})) == [
        "Quantize",
        "Reshape",
        "Dequantize",
    ]


def test_unused_nodes_disappear() -> None:
    nodes = [*conv_nodes(), helper.make_node("Sigmoid", ["y"], ["unused"], name="unused")]
    result = import_onnx(model_of(nodes, base_constants()))
    assert _kinds(result) == ["Quantize", "Conv2d", "Dequantize"]


def test_real_scales_use_the_float_rule_and_powers_of_two_the_shift() -> None:
    pot = import_onnx(conv_model()).graph.node("conv")
    real = import_onnx(conv_model({"ys": np.array(31.0, np.float32)})).graph.node("conv")
    assert isinstance(pot, Conv2d)
    assert isinstance(real, Conv2d)
    assert pot.requant.mode.name == "HALF_EVEN"
    assert pot.requant.exact
    assert real.requant.mode.name == "FLOAT32"
    ratio = np.float32(0.5) * np.float32(0.25) / np.float32(31.0)
    assert (real.requant.multiplier.values == ratio.view(np.uint32)).all()


def test_comparison_reports_what_differs() -> None:
    model = conv_model().SerializeToString()
    x = {"x": _floats(2, 2, 5, 5)}
    good = compare_with_onnxruntime(model, x)
    assert good.equal
    assert good.images == 2
    assert [layer.operator for layer in good.layers] == ["Quantize", "Conv2d"]
    wrong = {"y": evaluate(import_onnx(model).graph, x)["y"].copy()}
    wrong["y"][0, 0, 0, 0] += 64.0
    bad = compare_with_onnxruntime(model, x, layers=False, results=wrong)
    assert bad.outputs[0].differing == 1
    assert bad.outputs[0].largest_step == 2
