# SPDX-License-Identifier: Apache-2.0
"""The digit networks on the HLS kernel: logits equal to fsim's, in both kinds of integers and in both modes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from openvta.cli.main import main
from openvta.compiler import compile as compile_model
from openvta.driver import open_device
from openvta.spec.bundle import Bundle

MODELS = Path(__file__).parents[1] / "data" / "models"
POT, REAL = "resnet8_mnist_pot.onnx", "resnet8_mnist_s8s8_sym_pc.onnx"


@pytest.fixture(scope="module")
def digits() -> tuple[Any, Any]:
    with np.load(MODELS / "mnist_subset.npz") as data:
        return ((data["test_x"].astype(np.float32) - 128) / 128)[:, None].astype(np.float32), data["test_y"]


@pytest.fixture(scope="module")
def bundles() -> dict[str, Bundle]:
    return {name: compile_model(MODELS / name, config="default") for name in (POT, REAL)}


def logits(device: str, bundle: Bundle, images: Any, **options: Any) -> Any:
    with open_device(device, config=bundle.config, **options) as opened:
        return opened.run(bundle, {next(iter(bundle.inputs)): images}).outputs[next(iter(bundle.outputs))]


def test_a_thousand_digits_from_the_command_line(digits: Any, bundles: dict[str, Bundle], tmp_path: Path) -> None:
    images, labels = digits
    bundle = bundles[POT]
    bundle.save(tmp_path / "digits.bundle")
    np.save(tmp_path / "digits.npy", images)
    arguments = ["--input", str(tmp_path / "digits.npy"), "--device", "hls", "--out", str(tmp_path / "logits.npz")]
    assert main(["run", str(tmp_path / "digits.bundle"), *arguments]) == 0
    with np.load(tmp_path / "logits.npz") as data:
        found = data[next(iter(bundle.outputs))]
    assert len(found) == 1000
    np.testing.assert_array_equal(found, logits("fsim", bundle, images))
    assert (found.argmax(axis=1) == labels).mean() >= 0.989


@pytest.mark.parametrize("name", [POT, REAL])
@pytest.mark.parametrize(
    ("options", "count"),
    [({"integers": "native"}, 20), ({"integers": "wide"}, 4), ({"integers": "wide", "mode": "threaded"}, 2)],
    ids=["native", "wide", "threaded"],
)
def test_logits_are_those_of_fsim(
    options: dict[str, Any], count: int, name: str, digits: Any, bundles: dict[str, Bundle]
) -> None:
    images = digits[0][:count]
    np.testing.assert_array_equal(
        logits("hls", bundles[name], images, **options), logits("fsim", bundles[name], images)
    )


@pytest.mark.long
@pytest.mark.parametrize("integers", ["native", "wide"])
def test_every_digit_on_both_paths(integers: str, digits: Any, bundles: dict[str, Bundle]) -> None:
    images = digits[0]
    for bundle in bundles.values():
        np.testing.assert_array_equal(logits("hls", bundle, images, integers=integers), logits("fsim", bundle, images))
