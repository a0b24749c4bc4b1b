# SPDX-License-Identifier: Apache-2.0
"""Inputs of a matrix product collected from the scratchpad: a strided window where the indices are affine, else a take.

A convolution reads base + y * a + x * b + ky * c + kx * d: copying that window moves whole runs of elements, where a take
looks up and moves one element after the other.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from openvta.sim.fsim.loops import Indices, Nest, nest

MOST_LEVELS = 6
"""Loop levels of a window; deeper nests (odd micro-op lists) are taken element by element."""


def _window(indices: Indices) -> Nest | None:
    """Loops over points and terms that visit ``indices`` ``[points, terms]`` in order, or None."""
    first = indices[0]
    if not bool((indices - first == indices[:, :1] - first[0]).all()):
        return None
    points, terms = nest(indices[:, 0]), nest(first)
    if points is None or terms is None or len(points) + len(terms) > MOST_LEVELS:
        return None
    return points + terms


class Gather:
    """inp elements ``[points, terms]`` of every row as the left operand of a product."""

    def __init__(self, indices: Indices) -> None:
        self.indices = indices
        self._base = int(indices[0, 0])
        loops = _window(indices)
        self._affine = loops is not None
        self._counts = tuple(count for count, _ in loops or ())
        self._steps = tuple(step for _, step in loops or ())

    def rows(self, inp: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """``[rows * points, terms * block]`` from inp ``[rows, depth, block]``."""
        points, terms = self.indices.shape
        rows, _, block = inp.shape
        if not self._affine:
            return inp.take(self.indices, axis=1).reshape(rows * points, terms * block)
        row, element, lane = inp.strides
        steps = [step * element for step in self._steps]
        view = np.ndarray((rows, *self._counts, block), inp.dtype, inp.data, self._base * element, (row, *steps, lane))
        return view.reshape(rows * points, terms * block)

    def part(self, inp: npt.NDArray[np.float32], points: slice) -> npt.NDArray[np.float32]:
        """Some points of one row: ``[points, terms * block]`` from inp ``[depth, block]``."""
        return inp.take(self.indices[points], axis=0).reshape(-1, self.indices.shape[1] * inp.shape[1])
