# SPDX-License-Identifier: Apache-2.0
"""Windows and takes collect the same inputs; loops found in a list of indices visit that list."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from openvta.sim.fsim.gather import Gather
from openvta.sim.fsim.loops import nest

DEPTH = 64
BLOCK = 4

loops = st.lists(st.tuples(st.integers(1, 4), st.integers(-3, 12)), max_size=3)


def visited(levels: list[tuple[int, int]]) -> np.ndarray:
    """Sums of the loops, outermost first."""
    sums = np.zeros(1, np.int64)
    for count, step in levels:
        sums = (sums[:, None] + np.arange(count) * step).reshape(-1)
    return sums


@given(loops)
def test_nest_finds_loops_that_visit_the_indices(levels: list[tuple[int, int]]) -> None:
    indices = visited(levels)
    found = nest(indices)
    assert found is None or np.array_equal(visited(list(found)), indices - indices[0])


def test_nest_of_a_convolution() -> None:
    assert nest(visited([(7, 30), (28, 1)])) == ((7, 30), (28, 1))
    assert nest(np.array([0, 1, 2, 30, 31])) is None
    assert nest(np.array([5])) == ()


@given(loops, loops, st.integers(1, 3), st.booleans(), st.integers(0, 2**32 - 1))
def test_window_equals_take(
    points: list[tuple[int, int]], terms: list[tuple[int, int]], rows: int, torn: bool, seed: int
) -> None:
    random = np.random.default_rng(seed)
    indices = visited(points)[:, None] + visited(terms)
    indices = (indices - indices.min()) % DEPTH
    if torn:
        indices = random.permuted(indices, axis=0)
    inp = random.integers(-128, 128, (rows + 1, DEPTH, BLOCK)).astype(np.float32)
    taken = inp[1:].take(indices, axis=1).reshape(rows * len(indices), -1)
    gather = Gather(indices)
    assert np.array_equal(gather.rows(inp[1:]), taken)
    assert np.array_equal(gather.part(inp[1], slice(0, None)), taken[: len(indices)])
