# SPDX-License-Identifier: Apache-2.0
"""Tile shapes fit every buffer of every configuration, and cover each output once."""

from __future__ import annotations

import numpy as np
import pytest

from openvta.compiler.errors import ModelError
from openvta.compiler.schedule.gemm import SlotCache, rectangles, slot_places
from openvta.compiler.schedule.tiling import Problem, Tiling, choose_tiling, even_parts, tile_grid
from openvta.spec import ConfigError, HardwareConfig, load_config


def random_config(rng: np.random.Generator) -> HardwareConfig:
    """A legal configuration with buffers from a few elements up."""
    base = load_config("default")
    while True:
        block, batch = 1 << int(rng.integers(1, 7)), 1 << int(rng.integers(0, 3))
        lanes = block * batch
        try:
            return base.replace(
                batch=batch,
                block=block,
                uop_buffer_bytes=max(64, 4 << int(rng.integers(2, 14))),
                inp_buffer_bytes=max(64, lanes << int(rng.integers(2, 12))),
                wgt_buffer_bytes=max(64, block * block << int(rng.integers(2, 11))),
                acc_buffer_bytes=max(64, 4 * lanes << int(rng.integers(2, 12))),
            )
        except ConfigError:
            continue


def random_problem(rng: np.random.Generator) -> Problem:
    def pick(high: int) -> int:
        return int(rng.integers(1, high + 1))

    banded = rng.random() < 0.3
    outs = pick(32)
    return Problem(
        "layer",
        outs,
        outs if banded else pick(32),
        pick(56),
        pick(56),
        (pick(7), pick(7)),
        (pick(3), pick(3)),
        banded=banded,
        operands=1 + int(rng.random() < 0.2),
        shared_weights=bool(banded and rng.random() < 0.5),
        parameter_sets=outs,
    )


def check(problem: Problem, tiling: Tiling, config: HardwareConfig) -> None:
    assert tiling.inp_slots * tiling.inp_slot <= config.inp_depth
    assert tiling.wgt_slots * tiling.wgt_slot <= config.wgt_depth
    assert tiling.acc_slots * tiling.acc_slot + tiling.parameters <= config.acc_depth
    assert min(tiling.inp_slots, tiling.wgt_slots, tiling.acc_slots) >= 1
    assert tiling.rows * tiling.columns * tiling.outs == tiling.acc_slot
    assert tiling.cycles > 0
    covered = np.zeros((problem.outs, problem.height, problem.width), np.int64)
    for (co, n), (row, rows), (column, columns) in tile_grid(problem, tiling):
        assert n <= tiling.outs
        assert rows <= tiling.rows
        assert columns <= tiling.columns
        covered[co : co + n, row : row + rows, column : column + columns] += 1
    assert (covered == 1).all()


@pytest.mark.parametrize("part", range(10))
def test_tilings_are_legal_for_a_grid_of_configurations(part: int, seed: int) -> None:
    rng = np.random.default_rng([seed, part])
    for _ in range(20):
        config, problem = random_config(rng), random_problem(rng)
        check(problem, choose_tiling(problem, config), config)


def test_a_layer_no_tile_fits_names_the_buffer() -> None:
    config = load_config("tiny").replace(acc_buffer_bytes=64)
    problem = Problem("conv7", 1, 1, 4, 4, (1, 1), (1, 1), operands=1, sources=1, parameter_sets=1)
    check(problem, choose_tiling(problem, config), config)
    wide = Problem("add7", 1, 1, 4, 4, (1, 1), (1, 1), parameter_sets=2, spread_parameters=False)
    check(wide, choose_tiling(wide, config), config)
    bad = Problem("conv8", 0, 1, 4, 4, (1, 1), (1, 1))
    with pytest.raises(ModelError, match=r"conv8: tile .* does not fit: needs 4 acc elements of 4"):
        choose_tiling(bad, config)


def test_the_large_layer_keeps_the_multipliers_busy() -> None:
    """3x3 over 28x28, 128 to 128 channels: the predicted cycles stay within 94 % of peak."""
    problem = Problem("conv", 8, 8, 28, 28, (3, 3), (1, 1), parameter_sets=8)
    tiling = choose_tiling(problem, load_config("default"))
    assert 28 * 28 * 8 * 8 * 9 / tiling.cycles > 0.94


def test_even_parts() -> None:
    assert even_parts(7) == [7, 4, 3, 2, 1]
    assert even_parts(7, 3) == [3, 2, 1]


def test_slot_cache_replaces_the_least_recently_used() -> None:
    cache = SlotCache([0, 10])
    assert cache.place((1,)) == (0, False)
    assert cache.place((2,)) == (10, False)
    assert cache.place((1,)) == (0, True)
    assert cache.place((3,)) == (10, False)
    assert cache.place((2,)) == (0, False)


def test_slots_lie_where_the_layer_before_is_done() -> None:
    last_use = np.full(100, -1, np.int64)
    last_use[:40] = 7
    last_use[40:80] = 5
    assert slot_places(last_use, 2, 20) == [80, 60]
    assert slot_places(last_use, 1, 30) == [60]
    assert slot_places(last_use, 2, 50) == [50, 0]
    assert slot_places(np.full(100, -1, np.int64), 3, 30) == [0, 30, 60]


def test_rectangles_cover_each_position_once(rng: np.random.Generator) -> None:
    for _ in range(20):
        classes = np.outer(rng.integers(1, 3, 6), rng.integers(1, 4, 7))
        seen = np.zeros(classes.shape, np.int64)
        for kind, (row, rows), (column, columns) in rectangles(classes):
            part = classes[row : row + rows, column : column + columns]
            assert (part == kind).all()
            seen[row : row + rows, column : column + columns] += 1
        assert (seen == 1).all()
