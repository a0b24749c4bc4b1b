# SPDX-License-Identifier: Apache-2.0
"""Operators at the border between the host's float values and the accelerator's integers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from openvta.compiler.errors import GraphError
from openvta.compiler.graph import INT8, UINT8, NDArray, Node, Tensor
from openvta.compiler.ops._common import eight_bit, floating
from openvta.spec.arith import dequantize_array, quantize_array


def _same_shape(node: str, source: Tensor, target: Tensor) -> None:
    if source.shape != target.shape:
        raise GraphError(node, "output shape", target.shape, f"must be the input's {source.shape}")


@dataclass(frozen=True)
class Quantize(Node):
    """y = saturate(round_half_even(x / scale) + zero_point), division in float32; parameters are the output's."""

    host: ClassVar[bool] = True

    def check(self, inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...]) -> None:
        """See ``Node.check``."""
        floating(self.name, "input", inputs[0])
        eight_bit(self.name, "output", outputs[0])
        _same_shape(self.name, inputs[0], outputs[0])

    def evaluate(self, values: tuple[NDArray, ...], inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...]) -> NDArray:
        """See ``Node.evaluate``."""
        y = outputs[0]
        low, high = y.value_range
        return quantize_array(values[0], y.scale, y.zero_point, low, high).astype(y.numpy_dtype)


@dataclass(frozen=True)
class Dequantize(Node):
    """y = (x - zero_point) * scale in float32; parameters are the input's."""

    host: ClassVar[bool] = True

    def check(self, inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...]) -> None:
        """See ``Node.check``."""
        eight_bit(self.name, "input", inputs[0])
        floating(self.name, "output", outputs[0])
        _same_shape(self.name, inputs[0], outputs[0])

    def evaluate(self, values: tuple[NDArray, ...], inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...]) -> NDArray:
        """See ``Node.evaluate``."""
        return dequantize_array(values[0], inputs[0].scale, inputs[0].zero_point)


@dataclass(frozen=True)
class Recode(Node):
    """int8 <-> uint8 by an offset of 128 on value and zero point: the same bits with the top one flipped."""

    host: ClassVar[bool] = True

    def check(self, inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...]) -> None:
        """See ``Node.check``."""
        x, y = inputs[0], outputs[0]
        _same_shape(self.name, x, y)
        offset = {(UINT8, INT8): -128, (INT8, UINT8): 128}.get((x.dtype, y.dtype))
        if offset is None:
            raise GraphError(self.name, "types", f"{x.dtype} -> {y.dtype}", "must be int8 -> uint8 or uint8 -> int8")
        if y.scale != x.scale or y.zero_point != x.zero_point + offset:
            raise GraphError(self.name, "output", (y.scale, y.zero_point), "must be the input's, moved by 128")

    def evaluate(self, values: tuple[NDArray, ...], inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...]) -> NDArray:
        """See ``Node.evaluate``."""
        flipped = np.ascontiguousarray(values[0]).view(np.uint8) ^ np.uint8(0x80)
        return flipped.view(outputs[0].numpy_dtype)
