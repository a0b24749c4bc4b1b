# SPDX-License-Identifier: Apache-2.0
"""Faults planted in a copy of the RTL: the campaigns of this suite catch every one, and say where to look."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable

import pytest

from openvta.sim.cosim.build import elaborate
from openvta.sim.mutation.catch import catch
from openvta.sim.mutation.known import FAULTS
from openvta.sim.mutation.planted import PlantError, plant
from openvta.spec import load_config

PARTS = ("fetch", "load", "GEMM", "ALU", "requant", "store", "tokens", "AXI read", "AXI write", "registers")
HINTS = {
    "fetch-index": r"compute|load|store", "load-last-pad": r"load\.inp|inp", "gemm-same-row": r"gemm", "alu-max": r"max",
    "requant-tie": r"requant", "store-lanes": r"store", "token-lost": r"waiting for a token from \w+_to_\w+",
    "read-window": r"AR: a burst", "write-beats": r"W: |store \d+ of \d+", "register-decode": r"uop|inp|load",
}  # fmt: skip
"""What the message of a fault in each part must name."""


def test_the_list_names_every_part_once_and_no_fault_twice() -> None:
    assert {fault.unit for fault in FAULTS} == set(PARTS)
    assert {fault.unit for fault in FAULTS if fault.name in HINTS} == set(PARTS)
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)


def test_every_planted_fault_is_caught(
    seed: int, record_coverage: Callable[[str, str], None], show_figures: Callable[[str], None]
) -> None:
    caught = catch(load_config("tiny"), FAULTS, seed=seed)
    missed = [result.fault.name for result in caught if result.caught_by is None]
    show_figures(f"planted faults caught: {len(caught) - len(missed)} of {len(caught)}")
    record_coverage("rtl with planted faults", "tiny")
    assert not missed
    for result in caught:
        hint = HINTS.get(result.fault.name)
        if hint is not None:
            assert re.search(hint, result.text), f"{result.fault.name}: {result.text}"


def test_a_fault_that_does_not_fit_is_refused() -> None:
    design = elaborate(load_config("tiny"))
    for change in ({"old": "nothing of the kind"}, {"module": "NoSuchModule"}, {"old": "clock"}):
        with pytest.raises(PlantError, match=r"planted fault 'fetch-index'.*must be once in each"):
            plant(design, [dataclasses.replace(FAULTS[0], **change)])
