# SPDX-License-Identifier: Apache-2.0
"""Weight tiles, digits and parameter elements."""

from __future__ import annotations

import numpy as np
import pytest

from openvta.compiler.errors import ModelError
from openvta.compiler.graph import Array, Requant
from openvta.compiler.pack import dense_bank, grouped_bank, parameter_table, uniform_bank
from openvta.compiler.pack.weights import TileBank, digits
from openvta.spec.arith import RequantParams
from openvta.spec.isa import RequantMode


def expand(bank: TileBank, outs: int, ins: int) -> np.ndarray:
    """Every tile at its place: [CO, CI, KH, KW, block, block] as [O, C, KH, KW]."""
    co, _, kh, kw, block, _ = bank.tiles.shape
    full = np.zeros((co, ins, kh, kw, block, block), np.int64)
    for k in range(co):
        full[k, bank.first[k] : bank.first[k] + bank.count[k]] = bank.tiles[k, : bank.count[k]]
    return full.transpose(0, 4, 1, 5, 2, 3).reshape(co * block, ins * block, kh, kw)[:outs]


@pytest.mark.parametrize(("outs", "ins", "block"), [(1, 1, 4), (5, 9, 4), (16, 16, 16), (17, 33, 16)])
def test_dense_tiles_hold_the_weights_and_zero(outs: int, ins: int, block: int, rng: np.random.Generator) -> None:
    weight = rng.integers(-128, 128, (outs, ins, 2, 3))
    bank = dense_bank("w", weight, block, 8)
    found = expand(bank, outs, -(-ins // block))
    assert (found[:, :ins] == weight).all()
    assert not found[:, ins:].any()


@pytest.mark.parametrize(
    ("groups", "outs", "ins", "block"), [(7, 1, 1, 4), (3, 4, 5, 4), (20, 2, 1, 16), (5, 7, 3, 16)]
)
def test_grouped_tiles_are_zero_outside_the_groups(
    groups: int, outs: int, ins: int, block: int, rng: np.random.Generator
) -> None:
    weight = rng.integers(-128, 128, (groups * outs, ins, 2, 2))
    bank = grouped_bank("w", weight, groups, block, 8)
    wanted = np.zeros((groups * outs, groups * ins, 2, 2), np.int64)
    for o in range(groups * outs):
        group = o // outs
        wanted[o, group * ins : (group + 1) * ins] = weight[o]
    found = expand(bank, groups * outs, -(-groups * ins // block))[:, : groups * ins]
    assert (found == wanted).all()


def test_spans_and_reads_of_banded_banks(rng: np.random.Generator) -> None:
    bank = grouped_bank("w", rng.integers(-9, 9, (40, 1, 1, 1)), 40, 8, 8)
    assert bank.span(1, 3) == (1, 3)
    assert bank.reads(2, 0, 2) == (2, 2)
    uniform = uniform_bank("w", 1, 8, 8)
    assert uniform.span(2, 5) == (2, 5)
    assert uniform.reads(3, 2, 5) == (3, 4)


def test_a_weight_out_of_range_names_node_and_limit() -> None:
    with pytest.raises(ModelError, match=r"conv1: weight = 200: must be in -128\.\.127"):
        dense_bank("conv1", np.full((1, 1, 1, 1), 200), 4, 8)
    with pytest.raises(ModelError, match=r"-8\.\.7"):
        uniform_bank("pool", 9, 4, 4)


@pytest.mark.parametrize("bits", [2, 4, 8])
def test_digits_sum_up_and_stay_in_range(bits: int, rng: np.random.Generator) -> None:
    for _ in range(200):
        values = tuple(int(v) for v in rng.integers(-(2**23) + 1, 2**23, 2))
        rows = digits(values, bits)
        for k, value in enumerate(values):
            assert sum(row[k] << (bits * n) for n, row in enumerate(rows)) == value
            assert all(-(1 << (bits - 1)) <= row[k] < 1 << (bits - 1) for row in rows)
    assert digits((0, 0), bits) == ((0, 0),)


def test_parameters_are_three_elements_a_block_for_every_row_of_the_batch() -> None:
    rule = Requant(
        RequantMode.HALF_EVEN, Array([0.5] * 5), Array([3] * 5, np.uint32), Array(range(5), np.uint8), -7, -100, 90
    )
    table = parameter_table((rule,), np.arange(5, dtype=np.int32), 5, 4)
    assert table.per_block
    assert table.sets == 2
    elements = table.elements(0, 2, 2)
    assert elements.shape == (6, 8)
    for channel in range(5):
        for row in range(2):
            words = [int(elements[3 * (channel // 4) + w, row * 4 + channel % 4]) for w in range(3)]
            assert RequantParams.from_words(*words, unsigned=False) == RequantParams(channel, 3, channel, -7, -100, 90)
    empty = [int(elements[3 + w, 1]) for w in range(3)]
    assert RequantParams.from_words(*empty, unsigned=False) == RequantParams(0, 0, 0, -7, -100, 90)


def test_one_rule_for_all_channels_is_one_set() -> None:
    rule = Requant(RequantMode.FLOAT32, Array([0.5]), Array([1], np.uint32), Array([0], np.uint8), 0, -128, 127)
    table = parameter_table((rule, rule), np.zeros(1, np.int32), 1, 8)
    assert not table.per_block
    assert table.sets == 2
    assert table.modes == (RequantMode.FLOAT32, RequantMode.FLOAT32)
