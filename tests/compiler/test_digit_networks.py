# SPDX-License-Identifier: Apache-2.0
"""The digit networks: integer graph against onnxruntime with graph optimisation off, on 1,000 digits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from openvta.compiler.importers import import_onnx
from openvta.compiler.ops import Clip, Conv2d, Dequantize, GlobalAverage, Quantize
from openvta.compiler.passes import CanonicalNames, lowering_pipeline
from openvta.compiler.reference import evaluate
from openvta.compiler.text import parse_graph
from openvta.compiler.validate import compare_with_onnxruntime
from openvta.spec.isa import RequantMode

MODELS = Path(__file__).parents[1] / "data" / "models"
POT = "resnet8_mnist_pot.onnx"
REAL = "resnet8_mnist_s8s8_sym_pc.onnx"
QOPERATOR = "resnet8_mnist_qoperator_s8s8.onnx"
MOBILE = "minimobile_mnist_s8s8_sym_pc.onnx"
LEAST_ACCURACY = 0.989


@pytest.fixture(scope="module")
def digits() -> tuple[npt.NDArray[np.float32], npt.NDArray[np.uint8]]:
    with np.load(MODELS / "mnist_subset.npz") as data:
        images = ((data["test_x"].astype(np.float32) - 128) / 128)[:, None]
        return images.astype(np.float32), data["test_y"]


Digits = tuple[npt.NDArray[np.float32], npt.NDArray[np.uint8]]


def test_power_of_two_network_equals_onnxruntime_in_every_logit(digits: Digits) -> None:
    images, labels = digits
    graph = import_onnx(MODELS / POT, strict=True).graph
    logits = evaluate(graph, {"input": images})["logits"]
    assert (logits.argmax(axis=1) == labels).mean() >= LEAST_ACCURACY
    found = compare_with_onnxruntime(MODELS / POT, {"input": images}, layers=False, results={"logits": logits})
    assert found.outputs[0].values == 10_000
    assert found.equal, found
    for node in graph.nodes:
        if isinstance(node, (Conv2d, GlobalAverage)):
            assert node.requant.mode is RequantMode.HALF_EVEN
            assert node.requant.exact, node.name


def test_real_scales_keep_every_prediction(digits: Digits) -> None:
    images, labels = digits
    graph = import_onnx(MODELS / REAL, strict=True).graph
    logits = evaluate(graph, {"input": images})["logits"]
    assert (logits.argmax(axis=1) == labels).mean() >= LEAST_ACCURACY
    found = compare_with_onnxruntime(MODELS / REAL, {"input": images}, layers=False, results={"logits": logits})
    output = found.outputs[0]
    assert output.values == 10_000
    assert output.differing <= 50
    assert output.largest_step <= 1
    assert output.predictions_changed == 0


def _layers(images: npt.NDArray[np.float32]) -> None:
    found = compare_with_onnxruntime(MODELS / REAL, {"input": images})
    assert found.elements == 145_114 * len(images)
    assert found.only_near_ties, found
    assert 0 < found.differing <= found.elements // 1_000_000, found


def test_real_scales_differ_only_at_near_ties(digits: Digits) -> None:
    _layers(digits[0][:200])


@pytest.mark.long
def test_real_scales_differ_only_at_near_ties_on_all_digits(digits: Digits) -> None:
    _layers(digits[0])


@pytest.mark.parametrize("name", [POT, QOPERATOR, MOBILE])
def test_layer_by_layer(name: str, digits: Digits) -> None:
    images = digits[0][:40]
    found = compare_with_onnxruntime(MODELS / name, {"input": images})
    assert found.only_near_ties, found
    if name != MOBILE:
        assert found.differing == 0
        assert found.equal
    assert found.outputs[0].predictions_changed == 0


def test_qoperator_twin_imports_to_the_same_graph() -> None:
    twins = [CanonicalNames().run(import_onnx(MODELS / name, strict=True).graph) for name in (REAL, QOPERATOR)]
    assert twins[0] == twins[1]
    assert twins[0] != CanonicalNames().run(import_onnx(MODELS / POT, strict=True).graph)


@pytest.mark.parametrize("name", [POT, REAL, QOPERATOR, MOBILE])
def test_everything_between_the_borders_is_on_the_accelerator(name: str, digits: Digits) -> None:
    result = import_onnx(MODELS / name, strict=True)
    assert result.hosts == ()
    hosts = [type(node) for node in result.graph.nodes if node.host]
    assert hosts == [Quantize, Dequantize]
    assert not any(isinstance(node, Clip) for node in result.graph.nodes), "every ReLU folds into a clamp"
    assert parse_graph(result.graph.text()) == result.graph
    lowered = lowering_pipeline().run(result.graph)
    images = digits[0][:20]
    first = evaluate(result.graph, {"input": images})["logits"]
    assert (first == evaluate(lowered, {"input": images})["logits"]).all()


def test_import_is_deterministic() -> None:
    data = (MODELS / REAL).read_bytes()
    assert import_onnx(data).graph.text() == import_onnx(MODELS / REAL).graph.text()


def test_batch() -> None:
    assert import_onnx(MODELS / POT, batch=4).graph.tensor("input").shape == (4, 1, 28, 28)
