# SPDX-License-Identifier: Apache-2.0
"""Loop nests expanded to index arrays, in execution order: outer loop, inner loop, micro-op innermost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Indices = npt.NDArray[np.int64]

CHUNK = 1 << 20
"""Operations expanded at a time; longer instructions run in pieces, in order."""


@dataclass(frozen=True)
class Piece:
    """A part of a loop nest: outer and inner iterations and micro-ops from first to before last."""

    outer: tuple[int, int]
    inner: tuple[int, int]
    uops: tuple[int, int]

    def expand(self, base: Indices, outer_factor: int, inner_factor: int) -> Indices:
        """``base[u] + o * outer_factor + i * inner_factor`` over the piece, flat."""
        outer = np.arange(*self.outer, dtype=np.int64) * outer_factor
        inner = np.arange(*self.inner, dtype=np.int64) * inner_factor
        steps = outer[:, None, None] + inner[None, :, None] + base[None, None, slice(*self.uops)]
        return steps.reshape(-1)


def pieces(iter_out: int, iter_in: int, uops: int) -> Iterator[Piece]:
    """A nest in pieces of at most :data:`CHUNK` operations (one piece for all but the longest instructions)."""
    if iter_in * uops <= CHUNK:
        step = max(1, CHUNK // (iter_in * uops))
        for first in range(0, iter_out, step):
            yield Piece((first, min(first + step, iter_out)), (0, iter_in), (0, uops))
        return
    step = max(1, CHUNK // uops)
    for outer in range(iter_out):
        for first in range(0, iter_in, step):
            yield Piece((outer, outer + 1), (first, min(first + step, iter_in)), (0, uops))


def largest(base: Indices, iter_out: int, outer_factor: int, iter_in: int, inner_factor: int) -> int:
    """The largest index of a nest, without expanding it."""
    return int(base.max()) + (iter_out - 1) * outer_factor + (iter_in - 1) * inner_factor


def compact(indices: Indices) -> slice | Indices:
    """A slice with the same elements in the same order where there is one."""
    if len(indices) == 1:
        return slice(int(indices[0]), int(indices[0]) + 1)
    step = int(indices[1]) - int(indices[0])
    if step > 0 and bool((np.diff(indices) == step).all()):
        return slice(int(indices[0]), int(indices[-1]) + 1, step)
    return indices


Nest = tuple[tuple[int, int], ...]
"""Loops as (iterations, step), outermost first."""


def nest(indices: Indices) -> Nest | None:
    """Loops whose sums, added to ``indices[0]``, are the indices in order; None where there are none."""
    count = len(indices)
    if count == 1:
        return ()
    steps = np.diff(indices)
    breaks = np.flatnonzero(steps != steps[0])
    inner = count if len(breaks) == 0 else int(breaks[0]) + 1
    if count % inner or inner < 2:
        return None
    grid = indices.reshape(-1, inner)
    if not bool((grid - grid[:, :1] == grid[0] - grid[0, 0]).all()):
        return None
    outer = nest(grid[:, 0])
    return None if outer is None else (*outer, (inner, int(steps[0])))


def unique_in_order(indices: Indices) -> Indices:
    """Each index once, ascending."""
    return np.unique(indices)
