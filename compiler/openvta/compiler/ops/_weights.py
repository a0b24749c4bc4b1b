# SPDX-License-Identifier: Apache-2.0
"""Weights and biases of convolution and dense layers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from openvta.compiler.errors import GraphError
from openvta.compiler.graph import Array, Node
from openvta.spec.arith import wrap32_array


@dataclass(frozen=True)
class Weighted(Node):
    """A layer with weights.

    ``weight`` int8 or int16 (values -255..255), output channels O first, its zero point already subtracted;
    ``weight_scale`` float64 (float32 values) ``[O]``; ``bias`` int32 ``[O]`` in units of input scale * weight scale.
    """

    weight: Array
    weight_scale: Array
    bias: Array

    @property
    def weight_parts(self) -> tuple[Array, ...]:
        """Int8 arrays that add up to ``weight``: one if it fits 8 bits, else two or three (corrected by a zero point)."""
        rest = self.weight.values.astype(np.int32)
        parts: list[Array] = []
        while not parts or rest.any():
            part = np.clip(rest, -128, 127)
            parts.append(Array(part, np.int8))
            rest = rest - part
        return tuple(parts)

    def folded_bias(self, zero_point: int) -> Array:
        """Return bias - zero_point * sum(weight), wrapped to int32 ``[O]``: the bias for inputs not corrected by z."""
        sums = self.weight.values.reshape(self.weight.shape[0], -1).astype(np.int64).sum(axis=1)
        return Array(wrap32_array(self.bias.values.astype(np.int64) - zero_point * sums))


def check_weights(node: str, weight: Array, scale: Array, bias: Array) -> None:
    """Raise GraphError unless weights, their scales and the bias have legal types, shapes and values."""
    channels = weight.shape[0]
    if weight.values.dtype not in (np.dtype(np.int8), np.dtype(np.int16)):
        raise GraphError(node, "weight dtype", weight.values.dtype, "must be int8 or int16")
    if weight.values.size == 0:
        raise GraphError(node, "weight shape", weight.shape, "must not be empty")
    if int(np.abs(weight.values.astype(np.int32)).max()) > 255:
        raise GraphError(node, "weight", int(np.abs(weight.values.astype(np.int32)).max()), "must be in -255..255")
    if bias.shape != (channels,) or bias.values.dtype != np.dtype(np.int32):
        raise GraphError(node, "bias", bias, f"must be int32 of shape ({channels},)")
    if scale.shape != (channels,) or scale.values.dtype != np.dtype(np.float64):
        raise GraphError(node, "weight_scale", scale, f"must be float64 of shape ({channels},)")
    if not (np.isfinite(scale.values).all() and (scale.values >= 0).all()):
        raise GraphError(node, "weight_scale", float(scale.values.min()), "must be finite and >= 0")
