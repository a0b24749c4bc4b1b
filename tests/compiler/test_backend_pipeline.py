# SPDX-License-Identifier: Apache-2.0
"""Whole models: placement, strict, host parts between segments, determinism, and errors that name what is wrong."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from compiler.backend_cases import conv_graph, make_graph
from compiler.test_backend_operators import Record, assert_equal, run_checked
from openvta.compiler import CompileError, ModelError, PlacementError, compile, compile_graph, compile_model
from openvta.compiler.graph import Array, Graph, Tensor
from openvta.compiler.importers import import_onnx
from openvta.compiler.ops import Clip, Conv2d, MaxPool, Reshape
from openvta.compiler.reference import evaluate
from openvta.spec import load_config, named_configs
from openvta.spec.bundle import AccelStep, Bundle, HostStep
from openvta.spec.isa import Opcode

MODELS = Path(__file__).parents[1] / "data" / "models"
DIGITS = ("resnet8_mnist_pot.onnx", "resnet8_mnist_s8s8_sym_pc.onnx", "minimobile_mnist_s8s8_sym_pc.onnx")
FAST = ("default", "batch", "b1x32")


def images(count: int, seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {"input": (rng.integers(-128, 128, (count, 1, 28, 28)) / 128).astype(np.float32)}


@pytest.mark.parametrize("model", DIGITS)
@pytest.mark.parametrize("name", FAST)
def test_digit_networks_compile_strict_and_equal_the_reference(
    model: str, name: str, seed: int, record_coverage: Record
) -> None:
    config = load_config(name)
    bundle = compile(MODELS / model, config, strict=True)
    hosts = bundle.placement.on_host()
    assert {layer.op for layer in hosts} <= {"Quantize", "Dequantize"}
    assert len(bundle.segments) == 1
    inputs = images(3, seed)
    assert_equal(run_checked(bundle, config, inputs), evaluate(import_onnx(MODELS / model).graph, inputs), model)
    record_coverage("fsim", name)


def check_on_tiny_buffers(model: str, seed: int, record_coverage: Record) -> None:
    config = load_config("tiny")
    inputs = images(1, seed)
    found = run_checked(compile(MODELS / model, config, strict=True), config, inputs)
    assert_equal(found, evaluate(import_onnx(MODELS / model).graph, inputs), model)
    record_coverage("fsim", "tiny")


def test_a_digit_network_on_tiny_buffers(seed: int, record_coverage: Record) -> None:
    check_on_tiny_buffers(DIGITS[2], seed, record_coverage)


@pytest.mark.long
@pytest.mark.parametrize("model", DIGITS[:2])
def test_digit_networks_on_tiny_buffers(model: str, seed: int, record_coverage: Record) -> None:
    check_on_tiny_buffers(model, seed, record_coverage)


@pytest.mark.parametrize("name", named_configs())
def test_equal_models_give_equal_bytes(name: str) -> None:
    first, second = (compile(MODELS / DIGITS[1], name).to_bytes() for _ in range(2))
    assert first == second


def test_layers_say_where_their_instructions_are() -> None:
    bundle = compile(MODELS / DIGITS[0], strict=True)
    program = bundle.segments[0].program.insns()
    end = -1
    for layer in bundle.layers:
        if layer.segment < 0:
            continue
        assert layer.first_insn == end + 1
        end = layer.last_insn
        assert layer.dram_bytes > 0
        work = [i for i in program[layer.first_insn : end + 1] if i.opcode in (Opcode.GEMM, Opcode.ALU)]
        uops = sum(i["iter_out"] * i["iter_in"] * (i["uop_end"] - i["uop_begin"]) for i in work)
        assert layer.uops == uops
        if layer.op == "Conv2d":
            assert layer.macs > 0
            assert layer.predicted_cycles * bundle.config.macs_per_cycle >= layer.macs
    assert end == len(program) - 2
    assert "node_Conv_138" in str(bundle.placement)


def chain_with_host_reshape(rng: np.random.Generator) -> Graph:
    """conv, a reshape that moves values across channels, then a max pooling and a clip."""
    first = conv_graph(rng, (5, 6), (4, 4), (3, 3), (1, 1), (1, 1, 1, 1))
    y = first.tensor("y")
    r = replace(y, name="r", shape=(1, 3, 4, 8))
    m = replace(y, name="m", shape=(1, 3, 2, 4))
    c = replace(m, name="c")
    nodes = (
        *first.nodes,
        Reshape("reshape", ("y",), ("r",)),
        MaxPool("pool", ("r",), ("m",), (2, 2), (2, 2), (0, 0, 0, 0)),
        Clip("clip", ("m",), ("c",), -50, 60),
    )
    return Graph("chain", (first.tensor("x"), y, r, m, c), nodes, ("x",), ("c",)).verify()


@pytest.mark.parametrize("name", ["default", "batch"])
def test_host_parts_run_between_segments(name: str, rng: np.random.Generator, tmp_path: Path) -> None:
    config = load_config(name)
    graph = chain_with_host_reshape(rng)
    with pytest.raises(PlacementError, match=r"reshape \(Reshape\): .* moves values across channels for pool"):
        compile_graph(graph, config, strict=True)
    bundle = compile_graph(graph, config).bundle
    assert [type(step) for step in bundle.steps] == [AccelStep, HostStep, AccelStep]
    assert [layer.name for layer in bundle.placement.on_host()] == ["reshape"]
    inputs = {"x": rng.integers(-128, 128, (3, 5, 4, 4)).astype(np.int8)}
    bundle.save(tmp_path / "chain.ovta")
    again = Bundle.load(tmp_path / "chain.ovta")
    assert_equal(run_checked(again, config, inputs), evaluate(graph, inputs), "chain")


def test_reshapes_that_rename_dimensions_share_memory(rng: np.random.Generator) -> None:
    x = Tensor("x", (1, 9, 2, 6), "int8", 0.5, 3)
    f, c = replace(x, name="f", shape=(1, 9, 12, 1)), replace(x, name="c", shape=(1, 9, 12, 1))
    nodes = (Reshape("rows", ("x",), ("f",)), Clip("clip", ("f",), ("c",), -9, 70))
    graph = Graph("view", (x, f, c), nodes, ("x",), ("c",)).verify()
    bundle = compile_graph(graph, load_config("tiny"), strict=True).bundle
    assert bundle.tensor("x").offset == bundle.tensor("f").offset
    inputs = {"x": rng.integers(-128, 128, (2, 9, 2, 6)).astype(np.int8)}
    assert_equal(run_checked(bundle, load_config("tiny"), inputs), evaluate(graph, inputs), "view")


@pytest.mark.parametrize("pads", [(20, 0, 0, 3), (0, 17, 18, 16), (30, 30, 30, 30)])
def test_padding_beyond_the_encoding(pads: tuple[int, int, int, int], rng: np.random.Generator) -> None:
    graph = conv_graph(rng, (3, 5), (4, 3), (19, 18), (3, 2), pads) if min(pads) else None
    graph = graph or conv_graph(rng, (3, 5), (4, 22), (2, 3), (3, 2), pads)
    inputs = {"x": rng.integers(-128, 128, (1, *graph.tensor("x").shape[1:])).astype(np.int8)}
    for name in ("default", "tiny"):
        config = load_config(name)
        assert_equal(run_checked(compile_graph(graph, config).bundle, config, inputs), evaluate(graph, inputs), name)


def test_padding_without_the_extension(rng: np.random.Generator) -> None:
    config = load_config("tiny").replace(extensions=["acc8", "requant"])
    for number in range(4):
        graph = make_graph("conv", 50 + number)
        inputs = {"x": rng.integers(-128, 128, (1, *graph.tensor("x").shape[1:])).astype(np.int8)}
        assert_equal(run_checked(compile_graph(graph, config).bundle, config, inputs), evaluate(graph, inputs), "padv")


def test_errors_name_node_value_and_limit() -> None:
    graph = make_graph("maxpool", 1)
    with pytest.raises(ModelError, match=r"maxpool: extensions = .*: MaxPool needs 'acc8'"):
        compile_graph(graph, load_config("default").replace(extensions=["requant"]))
    with pytest.raises(ModelError, match=r"conv: extensions = .*: Conv2d needs 'requant'"):
        compile_graph(make_graph("conv", 1), load_config("default").replace(extensions=["acc8"]))
    with pytest.raises(ModelError, match=r"conv: inp_bits = 4"):
        compile_graph(make_graph("conv", 1), load_config("default").replace(inp_bits=4, inp_buffer_bytes=1 << 14))
    with pytest.raises(CompileError, match=r"device memory = \d+ bytes: the limit is 4096"):
        compile_graph(make_graph("conv", 1), load_config("default"), memory_limit=4096)


def test_a_tensor_too_large_is_refused() -> None:
    shape = (1, 1 << 14, 1 << 9, 1 << 9)
    x, y = (Tensor(name, shape, "int8", 0.5, 0) for name in "xy")
    graph = Graph("large", (x, y), (Clip("clip", ("x",), ("y",), -1, 1),), ("x",), ("y",))
    with pytest.raises(ModelError, match=r"clip: tensor x = 4294967296 values: at most 2147483648"):
        compile_graph(graph, load_config("default"))


def test_wide_weights_are_summed_in_parts(rng: np.random.Generator) -> None:
    graph = conv_graph(rng, (4, 4), (5, 5), (3, 3), (1, 1), (0, 1, 2, 1))
    node = graph.nodes[0]
    assert isinstance(node, Conv2d)
    weight = Array(rng.choice([-255, 255], node.weight.shape), np.int16)
    graph = replace(graph, nodes=(replace(node, weight=weight),)).verify()
    config = load_config("tiny")
    inputs = {"x": rng.integers(-128, 128, (2, 4, 5, 5)).astype(np.int8)}
    assert_equal(run_checked(compile_graph(graph, config).bundle, config, inputs), evaluate(graph, inputs), "wide")


def test_compile_model_keeps_what_led_to_the_bundle() -> None:
    compiled = compile_model(MODELS / DIGITS[0], "tiny", name="digits")
    assert compiled.bundle.name == "digits"
    assert compiled.text().count("# layer") >= 14
    assert {place.where for place in compiled.places} == {"accelerator", "host"}
