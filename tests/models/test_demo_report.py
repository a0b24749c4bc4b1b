# SPDX-License-Identifier: Apache-2.0
"""The demo's report: its keys, its page, and that it refuses to pass when a promise is broken."""

from __future__ import annotations

import copy
from html.parser import HTMLParser
from typing import Any

import pytest

from openvta.cli.demo import failures
from openvta.cli.demo_page import png, render
from openvta.spec import hash_text, load_config

KEYS = {
    "accuracy",
    "logits_equal_reference",
    "logits_equal_onnxruntime",
    "rtl_images",
    "rtl_equal_fsim",
    "layers",
    "config_hash",
}


def model() -> dict[str, Any]:
    """What one network's part looks like when all is well."""
    layer = {"name": "conv", "op": "Conv2d", "where": "accelerator", "macs": 1000, "cycles": 10, "utilization": 0.39}
    border = {"name": "q", "op": "Quantize", "where": "host", "macs": 0, "cycles": None, "utilization": None}
    return {
        "description": "a network",
        "images": 1000,
        "accuracy": 0.99,
        "logits": 10000,
        "logits_equal_reference": 10000,
        "logits_equal_onnxruntime": 10000,
        "predictions_equal_onnxruntime": 1000,
        "rtl_images": 20,
        "rtl_equal_fsim": 20,
        "cycles": 100,
        "layers": [border, layer],
        "config_hash": "0",
        "samples": [{"index": 0, "label": 3, "prediction": 3, "width": 2, "pixels": "00ff00ff"}],
    }


def report() -> dict[str, Any]:
    """A report of two such networks."""
    config = load_config("default")
    models = {"resnet8-pot": model(), "resnet8-per-channel": model()}
    top = {key: models["resnet8-pot"][key] for key in KEYS}
    return {
        **top,
        "config": "default",
        "config_hash": hash_text(config),
        "commit": "x",
        "macs_per_cycle": 256,
        "models": models,
    }


def test_a_good_report_passes() -> None:
    assert failures(report(), load_config("default")) == []
    assert set(report()) >= KEYS


@pytest.mark.parametrize(
    ("name", "key", "value"),
    [
        ("resnet8-pot", "accuracy", 0.9889),
        ("resnet8-pot", "logits_equal_reference", 9999),
        ("resnet8-pot", "logits_equal_onnxruntime", 9999),
        ("resnet8-pot", "rtl_equal_fsim", 19),
        ("resnet8-per-channel", "logits_equal_onnxruntime", 9949),
        ("resnet8-per-channel", "predictions_equal_onnxruntime", 999),
    ],
)
def test_a_broken_promise_is_named(name: str, key: str, value: object) -> None:
    bad = copy.deepcopy(report())
    bad["models"][name][key] = value
    found = failures(bad, load_config("default"))
    assert found
    assert all(name in line for line in found)


def test_a_layer_on_the_host_is_named() -> None:
    bad = report()
    bad["models"]["resnet8-pot"]["layers"][1]["where"] = "host"
    assert any("not on the accelerator" in line for line in failures(bad, load_config("default")))


def test_the_page_is_whole() -> None:
    class Checker(HTMLParser):
        def __init__(self) -> None:
            super().__init__()
            self.open: list[str] = []

        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            if tag not in ("meta", "img"):
                self.open.append(tag)

        def handle_endtag(self, tag: str) -> None:
            assert self.open.pop() == tag

    page = render(report())
    checker = Checker()
    checker.feed(page)
    assert checker.open == []
    assert page.count("data:image/png;base64,") == 2


def test_png_has_the_pixels() -> None:
    assert png([0, 255, 255, 0], 2).startswith(b"\x89PNG\r\n\x1a\n")
