# SPDX-License-Identifier: Apache-2.0
"""Fully connected layer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from openvta.compiler.errors import GraphError
from openvta.compiler.graph import NDArray, Requant, Tensor
from openvta.compiler.ops._common import eight_bit, matmul_type, rank, same_batch
from openvta.compiler.ops._weights import Weighted, check_weights
from openvta.spec.arith import wrap32_array


@dataclass(frozen=True)
class Dense(Weighted):
    """y = requant((x - z) @ weight.T + bias) for x ``[N, C]``; weight ``[O, C]``."""

    requant: Requant

    def check(self, inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...]) -> None:
        """See ``Node.check``."""
        x, y = inputs[0], outputs[0]
        eight_bit(self.name, "input", x)
        rank(self.name, "input", x, 2)
        rank(self.name, "output", y, 2)
        same_batch(self.name, x, y)
        if len(self.weight.shape) != 2 or self.weight.shape[1] != x.shape[1]:
            raise GraphError(self.name, "weight shape", self.weight.shape, f"must be O, {x.shape[1]}")
        if y.shape[1] != self.weight.shape[0]:
            raise GraphError(self.name, "output shape", y.shape, f"must have {self.weight.shape[0]} channels")
        check_weights(self.name, self.weight, self.weight_scale, self.bias)
        self.requant.check(self.name, y, self.weight.shape[0])

    def accumulate(self, x: NDArray, zero_point: int) -> NDArray:
        """Return the int32 accumulators (bias excluded) ``[N, O]`` of ``x [N, C]``."""
        kind = matmul_type(self.weight.values.T, 255)
        return wrap32_array((x.astype(kind) - kind(zero_point)) @ self.weight.values.T.astype(kind))

    def evaluate(self, values: tuple[NDArray, ...], inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...]) -> NDArray:
        """See ``Node.evaluate``."""
        acc = self.accumulate(values[0], inputs[0].zero_point)
        return self.requant.apply(acc, self.bias.values)

    def ideal(self, values: tuple[NDArray, ...], inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...]) -> NDArray:
        """See ``Node.ideal``."""
        acc = self.accumulate(values[0], inputs[0].zero_point).astype(np.float64)
        real: NDArray = (acc + self.bias.values) * self.requant.ratio.values
        return real

    def macs(self, inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...]) -> int:
        """See ``Node.macs``."""
        return outputs[0].shape[0] * self.weight.shape[0] * self.weight.shape[1]
