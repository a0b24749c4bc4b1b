# SPDX-License-Identifier: Apache-2.0
"""Change of shape without change of values."""

from __future__ import annotations

import math
from dataclasses import dataclass

from openvta.compiler.errors import GraphError
from openvta.compiler.graph import NDArray, Node, Tensor
from openvta.compiler.ops._common import eight_bit, same_quantization


@dataclass(frozen=True)
class Reshape(Node):
    """The same values in row-major order of N, C, H, W under the output's shape; N is kept."""

    def check(self, inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...]) -> None:
        """See ``Node.check``."""
        x, y = inputs[0], outputs[0]
        eight_bit(self.name, "input", x)
        same_quantization(self.name, x, y)
        if x.shape[0] != y.shape[0] or math.prod(x.shape) != math.prod(y.shape):
            raise GraphError(self.name, "output shape", y.shape, f"must keep N and the number of values of {x.shape}")

    def evaluate(self, values: tuple[NDArray, ...], inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...]) -> NDArray:
        """See ``Node.evaluate``."""
        return values[0].reshape(values[0].shape[0], *outputs[0].shape[1:])
