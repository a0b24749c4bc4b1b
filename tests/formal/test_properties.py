# SPDX-License-Identifier: Apache-2.0
"""Every property holds for every run, has a cover trace, and breaks under a mutant of its module."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest

from formal.defects import DEFECTS, Defect, plant
from openvta.sim.cosim.build import ElaboratedDesign, elaborate
from openvta.sim.formal import campaign, circuit, harness, prove
from openvta.spec import load_config

HARNESSES = {found.name: found for found in harness.all_harnesses()}


@pytest.fixture(scope="module")
def tiny() -> ElaboratedDesign:
    return elaborate(load_config("tiny"))


@pytest.mark.parametrize("name", HARNESSES)
def test_properties_hold(name: str, tiny: ElaboratedDesign, show_figures: Callable[[str], None]) -> None:
    result = campaign.run_one(HARNESSES[name], tiny)
    proved = sum(not item.faults for item in result.properties)
    show_figures(f"{name} on tiny: {proved} of {len(result.properties)} properties proved for runs of any length")
    assert not result.open_facts, "proofs rest on what is not proved"
    assert not [f"{item.name}: {item.faults}" for item in result.properties if item.faults]


def test_there_are_enough() -> None:
    assert sum(len(found.texts) for found in HARNESSES.values()) >= 30


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: defect.name.replace(" ", "-"))
def test_a_planted_defect_is_a_counterexample(defect: Defect, tiny: ElaboratedDesign, tmp_path: Path) -> None:
    """The property that names it fails, with the length of the run that shows it."""
    found = HARNESSES[defect.harness]
    circuit.prepare(found, tiny, tmp_path)
    plant(defect, found.module(tiny.config), tmp_path / "design.sv")
    broken = circuit.build(found, tmp_path)
    goal = f"p_{defect.breaks}"
    kept = {name: literal for name, literal in broken.outputs.items() if name == goal or name.startswith("m_")}
    assert goal in prove.refuted(dataclasses.replace(broken, outputs=kept), depth=found.depth), defect.name
