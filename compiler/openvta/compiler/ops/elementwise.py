# SPDX-License-Identifier: Apache-2.0
"""Operators on single values: clamp and change of scale."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from openvta.compiler.errors import GraphError
from openvta.compiler.graph import NDArray, Node, Requant, Tensor
from openvta.compiler.ops._common import eight_bit, same_quantization


def _same_shape(node: str, source: Tensor, target: Tensor) -> None:
    if source.shape != target.shape:
        raise GraphError(node, "output shape", target.shape, f"must be the input's {source.shape}")


@dataclass(frozen=True)
class Clip(Node):
    """y = min(max(x, low), high), in the integers of the tensor's type; scale and zero point stay."""

    low: int
    high: int

    def check(self, inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...]) -> None:
        """See ``Node.check``."""
        x, y = inputs[0], outputs[0]
        eight_bit(self.name, "input", x)
        _same_shape(self.name, x, y)
        same_quantization(self.name, x, y)
        least, most = x.value_range
        if not least <= self.low <= self.high <= most:
            raise GraphError(self.name, "clamp", (self.low, self.high), f"must be ordered in {least}..{most}")

    def evaluate(self, values: tuple[NDArray, ...], inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...]) -> NDArray:
        """See ``Node.evaluate``."""
        result: NDArray = np.clip(values[0], self.low, self.high)
        return result


@dataclass(frozen=True)
class Requantize(Node):
    """y = requant(x - z): a change of scale, zero point or type, with a clamp."""

    requant: Requant

    def check(self, inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...]) -> None:
        """See ``Node.check``."""
        x, y = inputs[0], outputs[0]
        eight_bit(self.name, "input", x)
        _same_shape(self.name, x, y)
        self.requant.check(self.name, y, 1)

    def evaluate(self, values: tuple[NDArray, ...], inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...]) -> NDArray:
        """See ``Node.evaluate``."""
        acc = values[0].astype(np.int32) - inputs[0].zero_point
        return self.requant.apply(acc, np.zeros(1, np.int32))

    def ideal(self, values: tuple[NDArray, ...], inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...]) -> NDArray:
        """See ``Node.ideal``."""
        real: NDArray = (values[0].astype(np.float64) - inputs[0].zero_point) * inputs[0].scale / outputs[0].scale
        return real
