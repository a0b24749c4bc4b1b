# SPDX-License-Identifier: Apache-2.0
"""Faults planted in a copy of the RTL: the campaigns of this suite catch every one, and say where to look."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable

import pytest

from openvta.sim.cosim.build import elaborate
from openvta.sim.cosim.toolchain import repository
from openvta.sim.mutation.catch import catch
from openvta.sim.mutation.known import FAULTS
from openvta.sim.mutation.planted import PlantError, plant
from openvta.spec import load_config

PARTS = ("fetch", "load", "GEMM", "ALU", "requant", "store", "tokens", "AXI read", "AXI write", "registers")
HINTS = {
    "fetch-index": r"instruction \d+ retired instead of \d+",
    "load-last-pad": r"load unit, .*\[load\.inp .*wrote other values",
    "gemm-same-row": r"compute unit, .*\[gemm .*wrote other values",
    "alu-max": r"compute unit, .*\[alu\.max .*wrote other values",
    "requant-tie": r"compute unit, .*\[requant\.(half_even|float32|tflite_double) .*wrote other values",
    "store-lanes": r"store unit, .*\[store\.out .*wrote other values",
    "token-lost": r"waiting for a token from \w+_to_\w+",
    "read-window": r"AR: a burst",
    "write-beats": r"first W: |retired: .*store (\d+) of (?!\1\b)\d+",
    "register-decode": r"\[load\.(inp|uop) .*wrote other values",
}
"""What the first line of the message must name: the instruction and unit, the channel, or the queue that the faulty line serves."""


def test_the_list_names_every_part_once_and_no_fault_twice() -> None:
    assert {fault.unit for fault in FAULTS} == set(PARTS)
    assert {fault.unit for fault in FAULTS if fault.name in HINTS} == set(PARTS)
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)


def test_every_planted_fault_is_caught(
    seed: int, record_coverage: Callable[[str, str], None], show_figures: Callable[[str], None]
) -> None:
    caught = catch(load_config("tiny"), FAULTS, seed=seed)
    missed = [result.fault.name for result in caught if result.caught_by is None]
    score = f"{len(caught) - len(missed)} of {len(caught)} ({100 * (len(caught) - len(missed)) / len(caught):.0f} %)"
    show_figures(f"mutation score: planted faults caught: {score}")
    record_coverage("rtl with planted faults", "tiny")
    assert not missed
    for result in caught:
        hint = HINTS.get(result.fault.name)
        if hint is not None:
            first = result.text.partition("\n")[0]
            assert re.search(hint, first), f"{result.fault.name}: {first}"


def test_the_hints_tell_faults_apart() -> None:
    """The message of one part's fault does not pass for that of another part (load and registers share theirs)."""
    seen = json.loads((repository() / "docs" / "verification" / "mutation.json").read_text("utf-8"))
    texts = {m["name"]: m["seen"] for m in seen["results"][0]["mutants"]}
    for name, hint in HINTS.items():
        assert re.search(hint, texts[name]), name
        assert len([other for other in HINTS if re.search(hint, texts[other])]) <= 2, name


def test_a_fault_that_does_not_fit_is_refused() -> None:
    design = elaborate(load_config("tiny"))
    for change in ({"old": "nothing of the kind"}, {"module": "NoSuchModule"}, {"old": "clock"}):
        with pytest.raises(PlantError, match=r"planted fault 'fetch-index'.*must be once in each"):
            plant(design, [dataclasses.replace(FAULTS[0], **change)])
