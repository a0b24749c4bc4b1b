# SPDX-License-Identifier: Apache-2.0
"""The driver on the functional simulator: a whole network, several images side by side, another configuration, a deadlock."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from openvta.compiler import compile as compile_model
from openvta.driver import ConfigMismatch, Fault, open_device
from openvta.spec import Program
from openvta.spec.bundle import Bundle, Segment
from openvta.spec.isa import Cause

MODELS = Path(__file__).parents[1] / "data" / "models"


@pytest.fixture(scope="module")
def network() -> Bundle:
    return compile_model(MODELS / "resnet8_mnist_pot.onnx", config="default", strict=True)


@pytest.fixture(scope="module")
def digits() -> npt.NDArray[np.float32]:
    pixels = np.load(MODELS / "mnist_subset.npz")["test_x"].reshape(-1, 1, 28, 28)[:3]
    return ((pixels.astype(np.float32) - 128) / 128).astype(np.float32)


def test_images_side_by_side_equal_images_alone(network: Bundle, digits: npt.NDArray[np.float32]) -> None:
    with open_device("fsim") as device:
        together = device.run(network, {"input": digits})
        alone = [device.run(network, {"input": digits[n : n + 1]}) for n in range(len(digits))]
    assert (together.passes, together.images) == (1, 3)
    assert np.array_equal(together.outputs["logits"], np.concatenate([result.outputs["logits"] for result in alone]))
    assert together.counters == alone[0].counters
    assert "cycles" not in together.counters, "the functional simulator has no cycles"
    assert not together.layer_cycles


def test_trace_and_checks_run_one_image_at_a_time(network: Bundle, digits: npt.NDArray[np.float32]) -> None:
    with open_device("fsim", check=True, trace=True) as device:
        result = device.run(network, {"input": digits[:2]})
    assert result.passes == 2
    assert len(result.trace) == len(network.segments[0].program)


def test_refuses_a_bundle_of_another_configuration(network: Bundle, digits: npt.NDArray[np.float32]) -> None:
    with open_device("fsim", config="tiny") as device, pytest.raises(ConfigMismatch, match="block = 4 there, 16 here"):
        device.run(network, {"input": digits})


def test_a_missing_push_is_named_and_the_device_recovers(network: Bundle, digits: npt.NDArray[np.float32]) -> None:
    segment = network.segments[0]
    words = list(segment.program.words)
    at = next(n for n, word in enumerate(words) if word >> 5 & 3)
    words[at] &= ~(3 << 5)
    broken = Bundle(
        **{**vars(network), "segments": (Segment(Program(network.config, tuple(words)), segment.insn_offset),)}
    )
    with open_device("fsim") as device:
        with pytest.raises(Fault, match=r"deadlock: .* that never comes") as caught:
            device.run(broken, {"input": digits[:1]})
        assert caught.value.cause is Cause.WATCHDOG
        assert device.run(network, {"input": digits[:1]}).outputs["logits"].shape == (1, 10)
