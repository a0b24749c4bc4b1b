# SPDX-License-Identifier: Apache-2.0
"""Bad models: one clear error that names node or file, field, value and limit; never another exception."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from compiler.small_models import base_constants, conv_model, conv_nodes, model_of, quantize
from openvta.compiler.errors import CompileError, ModelError
from openvta.compiler.importers import Limits, import_onnx

MODELS = Path(__file__).parents[1] / "data" / "models"


def _f32(value: float) -> Any:
    return np.array(value, np.float32)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 0.0, -0.5])
@pytest.mark.parametrize("which", ["xs", "ws", "ys"])
def test_bad_scales(which: str, value: float) -> None:
    with pytest.raises(ModelError, match="must be finite and greater than 0") as found:
        import_onnx(conv_model({which: _f32(value)}))
    assert found.value.field == "scale"
    assert found.value.node in ("x_quantize", "xr_quantize", "w_dequantize", "y_quantize")


def test_zero_point_out_of_range() -> None:
    with pytest.raises(ModelError, match=r"zero point = 200: must be in -128..127"):
        import_onnx(conv_model({"wz": np.array(200, np.int16)}))
    with pytest.raises(ModelError, match="zero point type"):
        import_onnx(conv_model({"wz": np.array(100, np.uint8)}))


def test_scale_count_does_not_fit() -> None:
    with pytest.raises(ModelError, match=r"w_dequantize: scale = 4 entries: axis 0 has 3 indices"):
        import_onnx(conv_model({"ws": np.full(4, 0.25, np.float32)}))


def test_axis_out_of_range() -> None:
    nodes = conv_nodes()
    nodes[2] = helper.make_node("DequantizeLinear", ["w", "ws"], ["wr"], name="w_dequantize", axis=7)
    with pytest.raises(ModelError, match=r"axis = 7: must be in -4..3"):
        import_onnx(model_of(nodes, {**base_constants(), "ws": np.full(3, 0.25, np.float32)}))


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"strides": [0, 1]}, r"conv: strides = \[0, 1\]: must be >= 1"),
        ({"strides": [1]}, r"conv: strides = \[1\]: must have 2 entries"),
        ({"dilations": [0, 1]}, "dilations"),
        ({"pads": [1, 1, 1]}, "must have 4 entries"),
        ({"kernel_shape": [2, 3]}, r"kernel_shape = \[2, 3\]: the weights are 3 x 3"),
        ({"group": 2}, "conv: group = 2"),
        ({"group": 0}, "conv: group = 0"),
        ({"group": -1}, "conv: group = -1"),
        ({"auto_pad": "SAME"}, "auto_pad = SAME"),
        ({"auto_pad": "SAME_UPPER", "pads": [1, 1, 1, 1]}, "must not be given with auto_pad"),
        ({"strides": "ab"}, "must be a list of integers"),
        ({"strides": [1 << 40, 1]}, r"must be between -2\^31 and 2\^31"),
    ],
)
def test_bad_attributes(attributes: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        import_onnx(conv_model(**attributes))


def test_kernel_larger_than_the_image() -> None:
    model = model_of(conv_nodes(), base_constants(), inputs={"x": ("n", 2, 2, 5)})
    with pytest.raises(ModelError, match=r"kernel_shape = \[3, 3\]: does not fit 2 x 5"):
        import_onnx(model)


def test_channels_do_not_fit() -> None:
    with pytest.raises(ModelError, match="conv: group = 1: 7 channels"):
        import_onnx(model_of(conv_nodes(), base_constants(), inputs={"x": ("n", 7, 5, 5)}))


def test_bias_beyond_int32() -> None:
    changes = {"ws": _f32(7.843e-10), "b": np.full(3, 5, np.int32), "bs": np.array([1.0], np.float32)}
    with pytest.raises(ModelError, match=r"conv: bias = .*must fit 32 bits"):
        import_onnx(conv_model(changes))


def test_bias_of_the_wrong_length() -> None:
    with pytest.raises(ModelError, match="conv: bias = 2 values: must have 3"):
        import_onnx(conv_model({"b": np.zeros(2, np.int32)}))


def test_bias_not_finite() -> None:
    nodes = conv_nodes()
    del nodes[3]
    constants = {**base_constants(), "br": np.array([1, np.nan, 0], np.float32)}
    with pytest.raises(ModelError, match="conv: bias = NaN or infinity"):
        import_onnx(model_of(nodes, constants))


def test_float_model() -> None:
    with pytest.raises(ModelError, match="a float model is not quantized") as found:
        import_onnx(MODELS / "resnet8_mnist_fp32.onnx")
    assert found.value.node == "resnet8_mnist_fp32.onnx"


@pytest.mark.parametrize(
    ("operator", "domain", "message"),
    [
        ("DynamicQuantizeLinear", "", "dynamic quantization"),
        ("ConvInteger", "", "dynamic quantization"),
        ("Quant", "qonnx.custom_op.general", "QONNX dialect"),
        ("BipolarQuant", "onnx.brevitas", "QONNX dialect"),
    ],
)
def test_other_dialects_are_named(operator: str, domain: str, message: str) -> None:
    node = helper.make_node(operator, ["x"], ["y"], name="node", domain=domain)
    with pytest.raises(ModelError, match=message):
        import_onnx(model_of([node], {}))


def test_unknown_operator_is_a_host_part_or_an_error() -> None:
    nodes = conv_nodes()
    nodes.append(helper.make_node("Frobnicate", ["y"], ["z"], name="frob", domain="com.example"))
    model = model_of(nodes, base_constants(), outputs=("z",), domains=(("com.example", 1),))
    with pytest.raises(
        ModelError, match=r"frob: output 'z' shape = unknown: cannot be inferred for operator Frobnicate"
    ):
        import_onnx(model)
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info("z", TensorProto.FLOAT, ["n", 3, 3, 3]))
    result = import_onnx(model)
    assert [str(h) for h in result.hosts] == ["frob (Frobnicate): the accelerator has no such operator"]
    with pytest.raises(ModelError, match=r"host parts = 1: strict allows none: frob \(Frobnicate\)"):
        import_onnx(model, strict=True)


def test_domain_without_opset() -> None:
    nodes = conv_nodes()
    nodes.append(helper.make_node("Frobnicate", ["y"], ["z"], name="frob", domain="com.example"))
    with pytest.raises(ModelError, match=r"frob: domain = com.example: is not in the model's opset_import"):
        import_onnx(model_of(nodes, base_constants(), outputs=("z",)))


@pytest.mark.parametrize("opset", [9, 26, 1 << 40])
def test_opset_limits(opset: int) -> None:
    with pytest.raises(ModelError, match=r"opset = .*: must be 10..25"):
        import_onnx(model_of(conv_nodes(), base_constants(), opset=opset))


def test_no_default_opset() -> None:
    model = conv_model()
    del model.opset_import[:]
    with pytest.raises(ModelError, match="opset_import"):
        import_onnx(model)


def test_open_dimensions() -> None:
    with pytest.raises(ModelError, match=r"input 'x': shape\[2\] = h: must be a known size"):
        import_onnx(model_of(conv_nodes(), base_constants(), inputs={"x": ("n", 2, "h", 5)}))
    with pytest.raises(ModelError, match=r"input 'x': shape\[2\] = 0"):
        import_onnx(model_of(conv_nodes(), base_constants(), inputs={"x": ("n", 2, 0, 5)}))
    with pytest.raises(ModelError, match=r"input 'x': shape\[3\] = -3"):
        import_onnx(model_of(conv_nodes(), base_constants(), inputs={"x": ("n", 2, 5, -3)}))


def test_batch() -> None:
    fixed = model_of(conv_nodes(), base_constants(), inputs={"x": (2, 2, 5, 5)})
    assert import_onnx(fixed).graph.tensor("x").shape[0] == 2
    with pytest.raises(ModelError, match="batch = 3: the model's batch is fixed to 2"):
        import_onnx(fixed, batch=3)
    with pytest.raises(ModelError, match=r"batch = 0: must be 1..65536"):
        import_onnx(fixed, batch=0)


def test_cycle() -> None:
    nodes = [
        *quantize("x", "xr", "x"),
        helper.make_node("Add", ["xr", "b2"], ["a"], name="add"),
        helper.make_node("Relu", ["a"], ["b2"], name="relu"),
        *quantize("a", "y", "y"),
    ]
    with pytest.raises(ModelError, match=r"add: inputs = Add: is part of a cycle"):
        import_onnx(model_of(nodes, base_constants()))


def test_names() -> None:
    twice = [*conv_nodes(), helper.make_node("Relu", ["x"], ["c"], name="second")]
    with pytest.raises(ModelError, match="second: output = c: is defined twice"):
        import_onnx(model_of(twice, base_constants()))
    missing = [*quantize("x", "xr", "x"), helper.make_node("Relu", ["nowhere"], ["y"], name="relu")]
    with pytest.raises(ModelError, match="relu: input = nowhere: no node, input or constant defines it"):
        import_onnx(model_of(missing, base_constants()))
    model = conv_model()
    model.graph.output[0].name = "elsewhere"
    with pytest.raises(ModelError, match="output 'elsewhere'"):
        import_onnx(model)
    model = conv_model()
    model.graph.initializer.append(numpy_helper.from_array(_f32(1.0), "xs"))
    with pytest.raises(ModelError, match="is defined twice"):
        import_onnx(model)


def test_same_node_name_twice_is_fine() -> None:
    nodes = conv_nodes()
    for node in nodes:
        node.name = "same"
    names = [node.name for node in import_onnx(model_of(nodes, base_constants())).graph.nodes]
    assert len(set(names)) == len(names)


def test_node_order_in_the_file_does_not_matter() -> None:
    assert len(import_onnx(model_of(conv_nodes()[::-1], base_constants())).graph.nodes) == 3


def test_shape_faults() -> None:
    nodes = [*quantize("x", "xr", "x"), helper.make_node("Reshape", ["xr", "shape"], ["r"], name="reshape")]
    nodes += quantize("r", "y", "x")
    for shape, message in (([0, 7], "does not hold"), ([-1, 7], "does not divide"), ([-1, -1], "does not hold")):
        with pytest.raises(ModelError, match=f"reshape: shape = .*{message}"):
            import_onnx(model_of(nodes, {**base_constants(), "shape": np.array(shape, np.int64)}))


def test_external_data_is_refused() -> None:
    for location in ("weights.bin", "../secret.bin", "/etc/passwd"):
        model = conv_model()
        tensor = next(t for t in model.graph.initializer if t.name == "w")
        tensor.data_location = TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value=location)
        tensor.ClearField("raw_data")
        with pytest.raises(ModelError, match=r"initializer 'w': external data = .*inside the model file"):
            import_onnx(model)


def test_external_data_in_a_constant_node_is_refused() -> None:
    tensor = numpy_helper.from_array(np.zeros(4, np.int64), "t")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="../x")
    nodes = [helper.make_node("Constant", [], ["shape"], name="constant", value=tensor), *quantize("x", "y", "x")]
    with pytest.raises(ModelError, match="constant: external data"):
        import_onnx(model_of(nodes, base_constants()))


@pytest.mark.parametrize(
    ("dims", "message"),
    [
        ([65536, 65536], r"at most \d+ values"),
        ([3, 2, 3, 4], "shape .* needs 72"),
        ([-1, 54], "must not be negative"),
        ([1 << 40, 1 << 40], r"at most \d+ values"),
        ([1] * 9 + [54], "at most 8"),
    ],
)
def test_declared_shape_does_not_fit_the_data(dims: list[int], message: str) -> None:
    model = conv_model()
    tensor = next(t for t in model.graph.initializer if t.name == "w")
    del tensor.dims[:]
    tensor.dims.extend(dims)
    with pytest.raises(ModelError, match=message):
        import_onnx(model)


def test_control_flow_functions_and_sparse_constants() -> None:
    branch = helper.make_graph([helper.make_node("Identity", ["x"], ["o"])], "branch", [], [])
    nodes = [*conv_nodes(), helper.make_node("If", ["y"], ["z"], name="if", then_branch=branch, else_branch=branch)]
    with pytest.raises(ModelError, match=r"if: .*control flow"):
        import_onnx(model_of(nodes, base_constants()))
    model = conv_model()
    model.functions.add(name="f", domain="d")
    with pytest.raises(ModelError, match="functions = 1"):
        import_onnx(model)
    model = conv_model()
    model.graph.sparse_initializer.add()
    with pytest.raises(ModelError, match="sparse_initializer"):
        import_onnx(model)


def test_limits() -> None:
    with pytest.raises(ModelError, match=r"size = .*at most 100 bytes"):
        import_onnx(MODELS / "resnet8_mnist_pot.onnx", limits=Limits(file_bytes=100))
    with pytest.raises(ModelError, match="nodes = 7: at most 3"):
        import_onnx(conv_model(), limits=Limits(nodes=3))
    with pytest.raises(ModelError, match=r"initializer 'w': shape .*at most 10 values"):
        import_onnx(conv_model(), limits=Limits(tensor_values=10))


def test_huge_tensors_and_windows() -> None:
    with pytest.raises(ModelError, match=r"tensor 'x': shape = .*at most 268435456 values"):
        import_onnx(model_of(conv_nodes(), base_constants(), inputs={"x": ("n", 2, 1 << 20, 1 << 20)}))
    with pytest.raises(ModelError, match=r"conv: output = .*at most 268435456 positions"):
        import_onnx(conv_model(pads=[1 << 20, 1 << 20, 1 << 20, 1 << 20]))


def test_long_chains_end_in_time() -> None:
    relus = [helper.make_node("Relu", [f"r{i}"], [f"r{i + 1}"]) for i in range(1000)]
    result = import_onnx(model_of([*quantize("x", "r0", "x"), *relus, *quantize("r1000", "y", "x")], base_constants()))
    assert any("more than 64 operators without a quantizer" in str(host) for host in result.hosts)
    sigmoids = [helper.make_node("Sigmoid", [f"r{i}"], [f"r{i + 1}"]) for i in range(300)]
    nodes = [*quantize("x", "r0", "x"), *sigmoids, *quantize("r300", "y", "x")]
    graph = import_onnx(model_of(nodes, base_constants())).graph
    assert [node.op for node in graph.nodes] == ["Quantize", "Dequantize", "Host", "Quantize", "Dequantize"]


def test_files(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="no such file"):
        import_onnx(tmp_path / "missing.onnx")
    with pytest.raises(ModelError, match="no such file, or not a regular file"):
        import_onnx(tmp_path)
    empty = tmp_path / "empty.onnx"
    empty.touch()
    with pytest.raises(ModelError, match="the file is empty"):
        import_onnx(empty)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(ModelError, match="not a regular file"):
        import_onnx(pipe)
    text = tmp_path / "text.onnx"
    text.write_text("this is not a model", encoding="utf-8")
    with pytest.raises(ModelError):
        import_onnx(text)


def test_truncated_file() -> None:
    data = (MODELS / "resnet8_mnist_pot.onnx").read_bytes()
    for keep in (1, 10, 1000, len(data) // 2, len(data) - 1):
        with pytest.raises(ModelError):
            import_onnx(data[:keep])


def test_names_reach_messages_escaped() -> None:
    nodes = conv_nodes(strides=[0, 1])
    nodes[4].name = "a\x1b[31m\n" + "x" * 5000
    with pytest.raises(ModelError) as found:
        import_onnx(model_of(nodes, base_constants()))
    assert "\x1b" not in str(found.value)
    assert "\n" not in str(found.value)
    assert len(str(found.value)) < 500


def _flip(rng: np.random.Generator, data: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(int(rng.integers(1, 4))):
        changed[int(rng.integers(len(changed)))] = int(rng.integers(256))
    return bytes(changed)


def _cut(rng: np.random.Generator, data: bytes) -> bytes:
    start = int(rng.integers(len(data)))
    return data[:start] + data[start + int(rng.integers(1, 20)) :]


def _double(rng: np.random.Generator, data: bytes) -> bytes:
    start = int(rng.integers(len(data)))
    return data[: start + int(rng.integers(1, 40))] + data[start:]


@pytest.mark.parametrize("damage", [_flip, _cut, _double])
def test_damaged_bytes_end_in_one_clear_error_or_a_graph(damage: Callable[[np.random.Generator, bytes], bytes]) -> None:
    data = conv_model(pads=[1, 0, 1, 0]).SerializeToString()
    rng = np.random.default_rng(1)
    for _ in range(500):
        try:
            import_onnx(damage(rng, data)).graph.verify()
        except CompileError:
            continue


def test_attribute_fuzz_of_every_operator() -> None:
    """Random attributes on real models: a graph, a host part or a clear error."""
    from compiler.cases import BUILDERS, make_case

    rng = np.random.default_rng(2)
    names = ["axis", "pads", "strides", "kernel_shape", "dilations", "group", "ceil_mode", "transB", "alpha", "perm"]
    for operator in BUILDERS:
        for seed in range(15):
            model = onnx.ModelProto.FromString(make_case(operator, seed).model)
            for node in model.graph.node:
                if rng.integers(3) == 0:
                    key = names[int(rng.integers(len(names)))]
                    values = [int(v) for v in rng.integers(-3, 6, int(rng.integers(0, 6)))]
                    choice = int(rng.integers(3))
                    value = [values, int(rng.integers(-9, 9)), 1.5][choice]
                    kept = [a for a in node.attribute if a.name != key]
                    del node.attribute[:]
                    node.attribute.extend(kept)
                    if value != []:
                        node.attribute.append(helper.make_attribute(key, value))
            try:
                import_onnx(model)
            except CompileError:
                continue
