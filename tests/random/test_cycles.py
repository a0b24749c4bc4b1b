# SPDX-License-Identifier: Apache-2.0
"""Cycle counts are behaviour: every conformance program takes exactly as many cycles as the golden file says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conformance.programs import build, names
from openvta.driver import open_device
from openvta.spec import load_config

GOLDEN = Path(__file__).resolve().parent.parent / "golden" / "cycles.json"
CONFIG = "tiny"


def test_every_program_takes_its_cycles(update_golden: bool) -> None:
    config = load_config(CONFIG)
    measured = {}
    with open_device("cosim", config=config) as device:
        for name in names(config):
            case = build(config, name)
            device.load(case.bundle)
            measured[name] = device.launch(case.bundle).counters["cycles"]
            device.load(case.bundle)
            assert device.launch(case.bundle).counters["cycles"] == measured[name], (
                f"{name} takes other cycles the second time"
            )
    assert len(measured) >= 50
    if update_golden:
        GOLDEN.write_text(json.dumps({CONFIG: measured}, indent=1) + "\n", "utf-8")
    golden = json.loads(GOLDEN.read_text("utf-8"))[CONFIG]
    changed = {
        name: f"{golden.get(name)} -> {measured.get(name)}"
        for name in sorted({*golden, *measured})
        if golden.get(name) != measured.get(name)
    }
    if changed:
        pytest.fail(
            f"cycles changed (python -m pytest --update-golden tests/random/test_cycles.py accepts them): {changed}"
        )
