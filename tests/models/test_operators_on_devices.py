# SPDX-License-Identifier: Apache-2.0
"""Random single-operator networks: integer reference = fsim for all of them, = RTL for some of every operator."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest

from compiler.cases import BUILDERS, Case, make_case
from openvta.compiler import compile as compile_model
from openvta.compiler.importers import import_onnx
from openvta.compiler.reference import Reference
from openvta.driver import Device, open_device
from openvta.spec import load_config

FSIM_CONFIGS = ("default", "tiny", "batch", "b1x32")
PER_OPERATOR = 20
RTL_PLAN = (("tiny", 2), ("batch", 1), ("default", 1))
"""Configurations of the RTL and how many cases of every operator each of them runs."""
CYCLES = 5_000_000

Record = Callable[[str, str], None]


def check(case: Case, device: Device, config: str) -> None:
    """Every output of the case on the device equals the reference."""
    bundle = compile_model(case.model, config=config, strict=True)
    expected = Reference(import_onnx(case.model).graph).run(case.inputs)
    found = device.run(bundle, case.inputs, max_cycles=CYCLES).outputs
    for name, values in expected.items():
        different = int((found[name] != values).sum())
        assert different == 0, f"{case.name} on {config}: {different} of {values.size} values of {name} differ"


@pytest.mark.parametrize("operator", list(BUILDERS))
@pytest.mark.parametrize("config", FSIM_CONFIGS)
def test_fsim_equals_reference(operator: str, config: str, seed: int, record_coverage: Record) -> None:
    share = FSIM_CONFIGS.index(config)
    with open_device("fsim", config=config) as device:
        for number in range(share, PER_OPERATOR, len(FSIM_CONFIGS)):
            check(make_case(operator, 1000 * seed + number), device, config)
    record_coverage("fsim", config)


@pytest.mark.parametrize("operator", list(BUILDERS))
@pytest.mark.parametrize("config", FSIM_CONFIGS)
def test_programs_are_free_of_races(operator: str, config: str, seed: int, record_coverage: Record) -> None:
    with open_device("fsim", config=config, check=True) as device:
        check(make_case(operator, 1000 * seed + 500), device, config)
    record_coverage("fsim, checking", config)


@pytest.fixture(scope="module", params=[config for config, _ in RTL_PLAN])
def rtl(request: pytest.FixtureRequest) -> Iterator[tuple[str, Device]]:
    """The RTL of one configuration (with its name), for every operator in turn."""
    with open_device("cosim", config=load_config(request.param)) as device:
        yield request.param, device


@pytest.mark.parametrize("operator", list(BUILDERS))
def test_rtl_equals_reference(operator: str, rtl: tuple[str, Device], seed: int, record_coverage: Record) -> None:
    config, device = rtl
    for number in range(dict(RTL_PLAN)[config]):
        check(make_case(operator, 1000 * seed + number), device, config)
    record_coverage("rtl", config)


def test_enough_cases() -> None:
    assert PER_OPERATOR * len(BUILDERS) >= 200
    assert sum(count for _, count in RTL_PLAN) * len(BUILDERS) >= 20
    assert np.unique([count for _, count in RTL_PLAN]).min() >= 1
