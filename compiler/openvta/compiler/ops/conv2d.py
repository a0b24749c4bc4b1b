# SPDX-License-Identifier: Apache-2.0
"""Convolution over two dimensions, grouped and depthwise included."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from openvta.compiler.errors import GraphError
from openvta.compiler.graph import NDArray, Requant, Tensor
from openvta.compiler.ops._common import (
    CHUNK_BYTES,
    check_window,
    eight_bit,
    matmul_type,
    padded,
    same_batch,
    windows,
)
from openvta.compiler.ops._weights import Weighted, check_weights
from openvta.spec.arith import wrap32_array


@dataclass(frozen=True)
class Conv2d(Weighted):
    """y = requant(sum((x - z) * weight) + bias) over windows of the padded input.

    ``weight`` ``[O, C / groups, KH, KW]``; ``strides`` (rows, columns); ``pads`` (top, left, bottom, right) of real zeros;
    ``groups`` divides C and O.
    """

    strides: tuple[int, int]
    pads: tuple[int, int, int, int]
    groups: int
    requant: Requant

    @property
    def kernel(self) -> tuple[int, int]:
        """Height and width of the kernel."""
        return self.weight.shape[2], self.weight.shape[3]

    def check(self, inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...]) -> None:
        """See ``Node.check``."""
        x, y = inputs[0], outputs[0]
        eight_bit(self.name, "input", x)
        if len(self.weight.shape) != 4:
            raise GraphError(self.name, "weight shape", self.weight.shape, "must be O, C / groups, KH, KW")
        check_window(self.name, x, y, self.kernel, self.strides, self.pads)
        same_batch(self.name, x, y)
        o, per_group = self.weight.shape[:2]
        if self.groups < 1 or x.shape[1] % self.groups or o % self.groups:
            raise GraphError(self.name, "groups", self.groups, f"must divide {x.shape[1]} and {o} channels")
        if per_group * self.groups != x.shape[1]:
            raise GraphError(self.name, "weight shape", self.weight.shape, f"needs {x.shape[1]} / groups channels")
        if y.shape[1] != o:
            raise GraphError(self.name, "output shape", y.shape, f"must have {o} channels")
        check_weights(self.name, self.weight, self.weight_scale, self.bias)
        self.requant.check(self.name, y, o)

    def accumulate(self, x: NDArray, zero_point: int) -> NDArray:
        """Return the int32 accumulators (bias excluded) ``[N, O, OH, OW]`` of ``x [N, C, H, W]``."""
        o, per_group, kh, kw = self.weight.shape
        kind = matmul_type(self.weight.values.reshape(o, -1).T, 255)
        image = padded(x.astype(kind) - kind(zero_point), self.pads, 0)
        view = windows(image, self.kernel, self.strides)
        n, _, oh, ow = view.shape[:4]
        if per_group == 1:
            return self._depthwise(view)
        result = np.empty((n, o, oh * ow), dtype=np.int32)
        step = max(1, CHUNK_BYTES // (8 * oh * ow * per_group * kh * kw))
        outs = o // self.groups
        for group in range(self.groups):
            rows = self.weight.values[group * outs : (group + 1) * outs].reshape(outs, -1).astype(kind)
            channels = slice(group * per_group, (group + 1) * per_group)
            for start in range(0, n, step):
                part = view[start : start + step, channels].transpose(0, 1, 4, 5, 2, 3)
                flat = part.reshape(part.shape[0], per_group * kh * kw, oh * ow)
                sums = wrap32_array(rows @ flat)
                result[start : start + step, group * outs : (group + 1) * outs] = sums
        return result.reshape(n, o, oh, ow)

    def _depthwise(self, view: NDArray) -> NDArray:
        """Return the accumulators where every output channel reads one input channel."""
        o, _, kh, kw = self.weight.shape
        source = np.arange(o) // (o // self.groups)
        taps = self.weight.values.astype(view.dtype)
        result = np.zeros((view.shape[0], o, *view.shape[2:4]), view.dtype)
        for i in range(kh):
            for j in range(kw):
                result += view[..., i, j][:, source] * taps[None, :, 0, i, j, None, None]
        return wrap32_array(result)

    def evaluate(self, values: tuple[NDArray, ...], inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...]) -> NDArray:
        """See ``Node.evaluate``."""
        acc = self.accumulate(values[0], inputs[0].zero_point)
        return self.requant.apply(acc, self.bias.values)

    def ideal(self, values: tuple[NDArray, ...], inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...]) -> NDArray:
        """See ``Node.ideal``."""
        acc = self.accumulate(values[0], inputs[0].zero_point).astype(np.float64)
        form = (1, -1, 1, 1)
        real: NDArray = (acc + self.bias.values.reshape(form)) * self.requant.ratio.values.reshape(form)
        return real

    def macs(self, inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...]) -> int:
        """See ``Node.macs``."""
        _, per_group, kh, kw = self.weight.shape
        return int(np.prod(outputs[0].shape, dtype=np.int64)) * per_group * kh * kw
