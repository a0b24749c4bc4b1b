# SPDX-License-Identifier: Apache-2.0
"""Average over windows, and over whole planes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from openvta.compiler.errors import GraphError
from openvta.compiler.graph import Array, NDArray, Node, Requant, Tensor
from openvta.compiler.ops._common import check_window, eight_bit, padded, rank, windows


@dataclass(frozen=True)
class AveragePool(Node):
    """y = requants[k](sum of (x - z) over the window), k chosen by the position's divisor.

    ``kernel`` and ``strides`` (rows, columns); ``pads`` (top, left, bottom, right) of real zeros; ``divisors`` int32
    ``[OH, OW]``, the number each window's sum is divided by; ``divisor_values`` the distinct divisors in rising order,
    each with its rule in ``requants`` (one parameter set each).
    """

    kernel: tuple[int, int]
    strides: tuple[int, int]
    pads: tuple[int, int, int, int]
    divisors: Array
    divisor_values: tuple[int, ...]
    requants: tuple[Requant, ...]

    def check(self, inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...]) -> None:
        """See ``Node.check``."""
        x, y = inputs[0], outputs[0]
        eight_bit(self.name, "input", x)
        check_window(self.name, x, y, self.kernel, self.strides, self.pads)
        if x.shape[:2] != y.shape[:2]:
            raise GraphError(self.name, "output shape", y.shape, f"N and C must be {x.shape[:2]}")
        if self.divisors.shape != y.shape[2:] or self.divisors.values.dtype != np.dtype(np.int32):
            raise GraphError(self.name, "divisors", self.divisors, f"must be int32 of shape {y.shape[2:]}")
        found = tuple(int(v) for v in np.unique(self.divisors.values))
        if found != self.divisor_values or found[0] < 1:
            raise GraphError(self.name, "divisor_values", self.divisor_values, f"must be {found}, all >= 1")
        if len(self.requants) != len(found):
            raise GraphError(self.name, "requants", len(self.requants), f"needs {len(found)}, one for each divisor")
        for rule in self.requants:
            rule.check(self.name, y, 1)

    def evaluate(self, values: tuple[NDArray, ...], inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...]) -> NDArray:
        """See ``Node.evaluate``."""
        acc = self._sums(values[0], inputs[0].zero_point)
        result = np.empty(acc.shape, outputs[0].numpy_dtype)
        for divisor, rule in zip(self.divisor_values, self.requants, strict=True):
            mask = self.divisors.values == divisor
            result[:, :, mask] = rule.apply(acc[:, :, mask], np.zeros(1, np.int32))
        return result

    def ideal(self, values: tuple[NDArray, ...], inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...]) -> NDArray:
        """See ``Node.ideal``."""
        acc = self._sums(values[0], inputs[0].zero_point).astype(np.float64)
        real: NDArray = acc * inputs[0].scale / (self.divisors.values * outputs[0].scale)
        return real

    def _sums(self, x: NDArray, zero: int) -> NDArray:
        """Return the int32 sums of ``x`` minus its zero point over every window."""
        image = padded(x.astype(np.int32), self.pads, zero) - zero
        view = windows(image, self.kernel, self.strides)
        acc = np.zeros(view.shape[:4], np.int32)
        for i in range(self.kernel[0]):
            for j in range(self.kernel[1]):
                acc += view[..., i, j]
        return acc


@dataclass(frozen=True)
class GlobalAverage(Node):
    """y = requant(sum of (x - z) over H and W), output ``[N, C, 1, 1]``."""

    requant: Requant

    def check(self, inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...]) -> None:
        """See ``Node.check``."""
        x, y = inputs[0], outputs[0]
        eight_bit(self.name, "input", x)
        rank(self.name, "input", x, 4)
        if y.shape != (*x.shape[:2], 1, 1):
            raise GraphError(self.name, "output shape", y.shape, f"must be {(*x.shape[:2], 1, 1)}")
        self.requant.check(self.name, y, 1)

    def evaluate(self, values: tuple[NDArray, ...], inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...]) -> NDArray:
        """See ``Node.evaluate``."""
        x = values[0].astype(np.int32) - inputs[0].zero_point
        acc = x.sum(axis=(2, 3), keepdims=True, dtype=np.int32)
        return self.requant.apply(acc, np.zeros(1, np.int32))

    def ideal(self, values: tuple[NDArray, ...], inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...]) -> NDArray:
        """See ``Node.ideal``."""
        total = (values[0].astype(np.float64) - inputs[0].zero_point).sum(axis=(2, 3), keepdims=True)
        count = values[0].shape[2] * values[0].shape[3]
        real: NDArray = total * inputs[0].scale / (count * outputs[0].scale)
        return real
