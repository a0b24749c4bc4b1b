# SPDX-License-Identifier: Apache-2.0
"""The multiplier cells on every pair, the requantizer on its corner grid and many random points; and that either could fail."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from openvta.cli.verify_exhaustion import expected
from openvta.sim.exhaustion import multiplier
from openvta.sim.exhaustion.errors import ExhaustionError
from openvta.sim.exhaustion.multiplier import run_pairs
from openvta.sim.exhaustion.requant import grid, run_requant
from openvta.spec import RequantMode, load_config

Record = Callable[[str, str], None]
Show = Callable[[str], None]
TINY = load_config("tiny")
EVERY = 41
"""Of the corner grid in the short run: a prime, so that no axis is left out."""


def test_every_pair_on_every_cell(seed: int, record_coverage: Record, show_figures: Show) -> None:
    found = run_pairs(TINY, seed=seed)
    assert not found.failures, "\n".join(found.failures)
    assert (found.pairs, found.cells, found.products) == (65_536, 16, 16 * 65_536)
    show_figures(f"multiplier cells on tiny: {found.pairs} pairs on each of {found.cells} cells, 0 mismatches")
    record_coverage("rtl exhaustion", "tiny")


def test_one_wrong_product_is_found(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    right = multiplier._weights

    def wrong(config: object, rotation: int) -> multiplier.Ints:
        weights = right(TINY, rotation)
        weights[0, 0] += 1
        return weights

    place = multiplier._place
    monkeypatch.setattr(multiplier, "_weights", wrong)
    monkeypatch.setattr(
        multiplier, "_place", lambda d, c, b, p, lane, values, weights: place(d, c, b, p, lane, values, right(c, 0))
    )
    found = run_pairs(TINY, seed=seed)
    assert len(found.failures) == 1
    assert found.failures[0].endswith("first wrong product with a = [-128]")


def test_a_million_requantizations(seed: int, show_figures: Show) -> None:
    found = run_requant(TINY, 1_000_000, expected, seed=seed, every=EVERY, sample=10_000)
    assert not found.failures, "\n".join(found.failures)
    assert found.random == 1_000_000
    show_figures(
        f"requantizer: {found.grid} corner points and {found.random} random points of seed {seed}, "
        f"{found.against_spec} of them against the specification, 0 mismatches"
    )


@pytest.mark.long
def test_a_hundred_million_requantizations(seed: int, show_figures: Show) -> None:
    found = run_requant(TINY, 100_000_000, expected, seed=seed + 1)
    assert not found.failures, "\n".join(found.failures)
    show_figures(f"requantizer: {found.grid} corner points and {found.random} random points, 0 mismatches")


@pytest.mark.parametrize("bit", [0, 31, 40])
def test_one_wrong_bit_of_the_product_is_found(bit: int, seed: int) -> None:
    found = run_requant(TINY, 20_000, expected, seed=seed, every=1009, sample=1_000, upset=1 << bit)
    assert any("random points" in failure for failure in found.failures)
    assert any(failure.startswith("RTL: ") and "openvta.spec.arith" in failure for failure in found.failures)
    assert not any(failure.startswith("compiled rule") for failure in found.failures)


def test_the_grid_has_every_mode_and_shift() -> None:
    corners = np.concatenate([grid(mode, False, every=EVERY) for mode in RequantMode])
    assert set(corners[:, 0].tolist()) == {int(mode) for mode in RequantMode}
    integer = corners[corners[:, 0] != int(RequantMode.FLOAT32)]
    assert set((integer[:, 5] & 63).tolist()) == set(range(64))
    assert len(set(expected(integer[::50]).tolist())) > 20


def test_configurations_it_is_not_for() -> None:
    narrow = TINY.replace(name="narrow", inp_bits=4)
    with pytest.raises(ExhaustionError, match=r"configuration 'narrow': inp_bits = 4: must be at least 8; take 'tiny'"):
        run_pairs(narrow)
    plain = TINY.replace(name="plain", extensions=())
    with pytest.raises(ExhaustionError, match=r"configuration 'plain' has no extension 'requant'"):
        run_requant(plain, 10, expected)
