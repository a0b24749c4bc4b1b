# SPDX-License-Identifier: Apache-2.0
"""Pooling and residual addition: geometry, divisors, integer rules and what onnxruntime computes in float32.

The exact value of an average is sum / divisor; of an addition a * scale_a + b * scale_b. Both are rounded once, half to
even, after division by the output's scale. The integer rules are ``requant`` of the sum; the float32 forms here repeat
onnxruntime's unfused arithmetic, for comparison only.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt

from openvta.spec.arith.words import clamp, rounding_shift, wrap32
from openvta.spec.errors import SpecError


def round_half_even(value: Fraction) -> int:
    """Return a rational number rounded to the nearest integer, ties to even."""
    return round(value)


def pooled_size(size: int, kernel: int, stride: int, before: int, after: int, *, ceil_mode: bool) -> int:
    """Return the number of windows of a pooling along one axis; 0 or less where the window does not fit.

    In ceil mode a last, partial window counts only if it starts inside the input or the padding before it.
    """
    span = size + before + after - kernel
    if not ceil_mode:
        return span // stride + 1
    count = -(-span // stride) + 1
    if count > 0 and (count - 1) * stride >= size + before:
        count -= 1
    return count


def divisor_along(
    position: int, size: int, kernel: int, stride: int, before: int, after: int, *, count_include_pad: bool
) -> int:
    """Return how many values window ``position`` covers along one axis.

    With ``count_include_pad`` the declared padding counts, what ceil mode hangs over it never does.
    """
    start = position * stride - before
    end = start + kernel
    if count_include_pad:
        return min(end, size + after) - start
    return min(end, size) - max(start, 0)


def divisors(
    size: tuple[int, int],
    output: tuple[int, int],
    kernel: tuple[int, int],
    strides: tuple[int, int],
    pads: tuple[int, int, int, int],
    *,
    count_include_pad: bool,
) -> npt.NDArray[np.int32]:
    """Return the divisor of every position of an average pooling, int32 ``[OH, OW]``; pads top, left, bottom, right.

    Raises:
        SpecError: a window covers nothing.
    """
    counts = []
    for axis in (0, 1):
        before, after = pads[axis], pads[axis + 2]
        line = [
            divisor_along(
                p, size[axis], kernel[axis], strides[axis], before, after, count_include_pad=count_include_pad
            )
            for p in range(output[axis])
        ]
        if min(line, default=1) < 1:
            raise SpecError(f"pooling: a window of {kernel[axis]} over {size[axis]} values, pads {pads}, covers none")
        counts.append(np.array(line, dtype=np.int32))
    return np.outer(counts[0], counts[1]).astype(np.int32)


def average(total: int, divisor: int, ratio: Fraction, zero_point: int, low: int, high: int) -> int:
    """Return the ideal quantized average: round_half_even(total * ratio / divisor) + zero_point, clamped.

    ``total`` is the sum of (x - zero point of x); ``ratio`` input scale / output scale.
    """
    return clamp(round_half_even(Fraction(total) * ratio / divisor) + zero_point, low, high)


def add_scaled(a: int, b: int, coefficients: tuple[int, int], shift: int, zero_point: int, low: int, high: int) -> int:
    """Return clamp(round_half_even((a * ca + b * cb) / 2^shift) + zero_point); a and b without their zero points."""
    total = wrap32(a * coefficients[0] + b * coefficients[1])
    return clamp(rounding_shift(total, shift, half_even=True) + zero_point, low, high)


def float32_average(
    total: npt.NDArray[np.int32],
    divisor: int,
    scale_in: float,
    scale_out: float,
    zero_point: int,
    low: int,
    high: int,
) -> npt.NDArray[np.int32]:
    """Return what float32 arithmetic makes of an average: the sum scaled, divided, scaled, rounded half to even."""
    real = total.astype(np.float32) * np.float32(scale_in)
    mean = real / np.float32(divisor)
    steps = np.rint(mean / np.float32(scale_out)) + np.float32(zero_point)
    result: npt.NDArray[np.int32] = np.clip(steps, low, high).astype(np.int32)
    return result


def float32_add(
    a: npt.NDArray[np.int32],
    b: npt.NDArray[np.int32],
    scales: tuple[float, float, float],
    zero_point: int,
    low: int,
    high: int,
) -> npt.NDArray[np.int32]:
    """Return what float32 arithmetic makes of a + b (both without zero point); scales of a, b and the output."""
    real = a.astype(np.float32) * np.float32(scales[0]) + b.astype(np.float32) * np.float32(scales[1])
    steps = np.rint(real / np.float32(scales[2])) + np.float32(zero_point)
    result: npt.NDArray[np.int32] = np.clip(steps, low, high).astype(np.int32)
    return result
