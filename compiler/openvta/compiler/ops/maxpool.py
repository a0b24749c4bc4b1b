# SPDX-License-Identifier: Apache-2.0
"""Maximum over windows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from openvta.compiler.errors import GraphError
from openvta.compiler.graph import NDArray, Node, Tensor
from openvta.compiler.ops._common import (
    check_window,
    eight_bit,
    padded,
    same_batch,
    same_quantization,
    windows,
)


@dataclass(frozen=True)
class MaxPool(Node):
    """Maximum over each window; padding never wins. Ceil mode is already turned into ``pads``.

    ``kernel`` and ``strides`` (rows, columns); ``pads`` (top, left, bottom, right); every window holds at least one
    input value.
    """

    kernel: tuple[int, int]
    strides: tuple[int, int]
    pads: tuple[int, int, int, int]

    def check(self, inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...]) -> None:
        """See ``Node.check``."""
        x, y = inputs[0], outputs[0]
        eight_bit(self.name, "input", x)
        check_window(self.name, x, y, self.kernel, self.strides, self.pads)
        same_batch(self.name, x, y)
        same_quantization(self.name, x, y)
        if x.shape[1] != y.shape[1]:
            raise GraphError(self.name, "output shape", y.shape, f"must have {x.shape[1]} channels")
        check_nonempty(self.name, x, y, self.kernel, self.strides, self.pads)

    def evaluate(self, values: tuple[NDArray, ...], inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...]) -> NDArray:
        """See ``Node.evaluate``."""
        view = windows(padded(values[0], self.pads, inputs[0].value_range[0]), self.kernel, self.strides)
        result: NDArray = view[..., 0, 0].copy()
        for i in range(self.kernel[0]):
            for j in range(self.kernel[1]):
                np.maximum(result, view[..., i, j], out=result)
        return result


def check_nonempty(
    node: str,
    source: Tensor,
    target: Tensor,
    kernel: tuple[int, int],
    strides: tuple[int, int],
    pads: tuple[int, int, int, int],
) -> None:
    """Raise GraphError if some window lies wholly in the padding."""
    for axis in (0, 1):
        size, before = source.shape[2 + axis], pads[axis]
        last = (target.shape[2 + axis] - 1) * strides[axis]
        if kernel[axis] <= before or last >= size + before:
            raise GraphError(node, "pads", pads, "a window holds nothing but padding")
