# SPDX-License-Identifier: Apache-2.0
"""Every property holds for every run, has a cover trace, and breaks under a mutant of its module."""

from __future__ import annotations

from pathlib import Path

import pytest

from openvta.sim.cosim.build import ElaboratedDesign, elaborate
from openvta.sim.formal import campaign, circuit, harness, prove
from openvta.spec import load_config

HARNESSES = {found.name: found for found in harness.all_harnesses()}


@pytest.fixture(scope="module")
def tiny() -> ElaboratedDesign:
    return elaborate(load_config("tiny"))


@pytest.mark.parametrize("name", HARNESSES)
def test_properties_hold(name: str, tiny: ElaboratedDesign) -> None:
    result = campaign.run_one(HARNESSES[name], tiny)
    assert not result.open_facts, "proofs rest on what is not proved"
    assert not [f"{item.name}: {item.faults}" for item in result.properties if item.faults]


def test_there_are_enough() -> None:
    assert sum(len(found.texts) for found in HARNESSES.values()) >= 30


def test_a_fault_planted_by_hand_is_a_counterexample(tiny: ElaboratedDesign, tmp_path: Path) -> None:
    """A token queue that takes a token it does not have: named properties fail, with the length of the run that shows it."""
    found = HARNESSES["token_queue"]
    circuit.prepare(found, tiny, tmp_path)
    design = tmp_path / "design.sv"
    text = design.read_text("utf-8")
    start = text.index(f"\nmodule {found.module(tiny.config)}(")
    old = "taken = io_pop & io_ready_0;"
    at = text.index(old, start)
    design.write_text(text[:at] + "taken = io_pop;" + text[at + len(old) :], "utf-8")
    broken = circuit.build(found, tmp_path)
    proofs = {p.name: p for p in prove.prove(broken, steps=2, depth=found.depth, seconds=20, folder=tmp_path)}
    assert proofs["p_count"].method == "counterexample"
    assert proofs["p_empty"].method == "counterexample" or proofs["p_ready"].method == "counterexample"
