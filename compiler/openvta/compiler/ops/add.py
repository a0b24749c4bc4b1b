# SPDX-License-Identifier: Apache-2.0
"""Addition of two tensors of different scales (residual add)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from openvta.compiler.errors import GraphError
from openvta.compiler.graph import COEFFICIENT_BITS, NDArray, Node, Requant, Tensor
from openvta.compiler.ops._common import eight_bit
from openvta.spec.isa import RequantMode


@dataclass(frozen=True)
class Add(Node):
    """y = requant((a - za) * coefficients[0] + (b - zb) * coefficients[1]), the sum within int32.

    ``requant`` has one parameter set: multiplier 1, mode half even and the number of fraction bits as its shift.
    """

    coefficients: tuple[int, int]
    requant: Requant

    arity: ClassVar[int] = 2

    def check(self, inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...]) -> None:
        """See ``Node.check``."""
        y = outputs[0]
        bound = 0
        for label, tensor, factor in zip(("a", "b"), inputs, self.coefficients, strict=True):
            eight_bit(self.name, label, tensor)
            if tensor.shape != y.shape:
                raise GraphError(self.name, f"{label} shape", tensor.shape, f"must be the output's {y.shape}")
            if not abs(factor) < 1 << COEFFICIENT_BITS:
                raise GraphError(self.name, "coefficient", factor, f"must be below 2^{COEFFICIENT_BITS}")
            low, high = tensor.value_range
            bound += max(high - tensor.zero_point, tensor.zero_point - low) * abs(factor)
        if bound >= 1 << 31:
            raise GraphError(self.name, "coefficients", self.coefficients, f"a sum may reach {bound}, limit 2^31 - 1")
        self.requant.check(self.name, y, 1)
        if self.requant.mode is not RequantMode.HALF_EVEN or self.requant.multiplier.values[0] != 1:
            raise GraphError(self.name, "requant.mode", self.requant.mode.name, "must be HALF_EVEN with multiplier 1")

    def evaluate(self, values: tuple[NDArray, ...], inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...]) -> NDArray:
        """See ``Node.evaluate``."""
        a = (values[0].astype(np.int32) - inputs[0].zero_point) * np.int32(self.coefficients[0])
        b = (values[1].astype(np.int32) - inputs[1].zero_point) * np.int32(self.coefficients[1])
        return self.requant.apply(a + b, np.zeros(1, np.int32))

    def ideal(self, values: tuple[NDArray, ...], inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...]) -> NDArray:
        """See ``Node.ideal``."""
        a, b = (v.astype(np.float64) - t.zero_point for v, t in zip(values, inputs, strict=True))
        real: NDArray = (a * inputs[0].scale + b * inputs[1].scale) / outputs[0].scale
        return real
