# SPDX-License-Identifier: Apache-2.0
"""32-bit words: wrapping, ALU operations, sums of products, narrowing. Scalar truth first, numpy form second.

Scalar functions take and return Python ints of any size; results are int32 (-2^31 .. 2^31-1) unless said otherwise.
Array functions do the same on int32 (or int64 before wrapping) arrays, element by element.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from openvta.spec.errors import SpecError
from openvta.spec.isa import AluOpcode

Int32Array = npt.NDArray[np.int32]
IntArray = npt.NDArray[np.integer[Any]]

RSHR_HALF_UP = 0
"""RSHR mode: ties go up."""
RSHR_HALF_EVEN = 1
"""RSHR mode: ties go to the even neighbour."""


def wrap(value: int, bits: int) -> int:
    """Return ``value`` modulo 2^bits as a two's complement number of ``bits`` bits."""
    return ((value + (1 << (bits - 1))) & ((1 << bits) - 1)) - (1 << (bits - 1))


def wrap32(value: int) -> int:
    """Return ``value`` modulo 2^32 as int32."""
    return wrap(value, 32)


def clamp(value: int, low: int, high: int) -> int:
    """Return ``value`` limited to ``low..high``: first to at most ``high``, then to at least ``low``."""
    return max(min(value, high), low)


def shr(x: int, y: int) -> int:
    """Shift arithmetic right by y >= 0 or left by -y > 0, y clamped to -31..31."""
    amount = clamp(y, -31, 31)
    return x >> amount if amount >= 0 else wrap32(x << -amount)


def rounding_shift(x: int, amount: int, *, half_even: bool) -> int:
    """Return x / 2^amount rounded to nearest, ties up or to even; ``amount`` >= 0, any size of ``x``."""
    if amount == 0:
        return x
    quotient = x >> amount
    rest = x - (quotient << amount)
    half = 1 << (amount - 1)
    if half_even and rest == half:
        return quotient + (quotient & 1)
    return quotient + (1 if rest >= half else 0)


def rshr(x: int, y: int, *, half_even: bool) -> int:
    """Rounding shift of the ALU: y clamped to 0..31."""
    return wrap32(rounding_shift(x, clamp(y, 0, 31), half_even=half_even))


def mul(x: int, y: int) -> int:
    """Low 32 bits of the product."""
    return wrap32(x * y)


def mac(acc: int, x: int, y: int) -> int:
    """Low 32 bits of acc + x * y."""
    return wrap32(acc + x * y)


def add(x: int, y: int) -> int:
    """Low 32 bits of the sum."""
    return wrap32(x + y)


def alu(op: AluOpcode, dst: int, src: int, imm: int, *, use_imm: bool) -> int:
    """Return what an ALU operation writes to a lane of acc.

    Args:
        op: the operation.
        dst: int32 lane of acc[dst] before.
        src: int32 lane of acc[src].
        imm: the immediate, a signed 16-bit number. RSHR takes its rounding mode from bit 15 in both forms.
        use_imm: the second operand is the immediate (for RSHR its bits 4:0) instead of acc[src].
    """
    x, y = (src, imm) if use_imm else (dst, src)
    if op is AluOpcode.RSHR:
        return rshr(x, imm & 31 if use_imm else y, half_even=bool(imm & 0x8000))
    if op is AluOpcode.MIN:
        return min(x, y)
    if op is AluOpcode.MAX:
        return max(x, y)
    if op is AluOpcode.ADD:
        return add(x, y)
    if op is AluOpcode.SHR:
        return shr(x, y)
    if op is AluOpcode.MUL:
        return mul(x, y)
    if op is AluOpcode.MAC:
        return mac(dst, x, y)
    return y


def gemm(acc: int, inputs: Sequence[int], weights: Sequence[int]) -> int:
    """Return acc + sum of products of one lane of a GEMM, wrapped to int32.

    Raises:
        SpecError: the sequences differ in length.
    """
    if len(inputs) != len(weights):
        raise SpecError(f"gemm: {len(inputs)} inputs and {len(weights)} weights")
    return wrap32(acc + sum(x * w for x, w in zip(inputs, weights, strict=True)))


def truncate(value: int, bits: int) -> int:
    """Return the low ``bits`` bits as a signed number (what GEMM and ALU write to out)."""
    return wrap(value, bits)


def saturate(value: int, bits: int) -> int:
    """Return ``value`` limited to the range of a signed number of ``bits`` bits (out with ``sat``)."""
    return clamp(value, -(1 << (bits - 1)), (1 << (bits - 1)) - 1)


# numpy forms


def wrap32_array(values: npt.ArrayLike) -> Int32Array:
    """Numpy form of :func:`wrap32` for integers within int64."""
    return np.asarray(values).astype(np.int64, copy=False).astype(np.int32, copy=False)


def shr_array(x: npt.ArrayLike, y: npt.ArrayLike) -> Int32Array:
    """Numpy form of :func:`shr`."""
    amount = np.clip(np.asarray(y, dtype=np.int64), -31, 31)
    wide = np.asarray(x, dtype=np.int64)
    return wrap32_array(np.where(amount >= 0, wide >> np.maximum(amount, 0), wide << np.maximum(-amount, 0)))


def rounding_shift_array(x: npt.ArrayLike, amount: npt.ArrayLike, *, half_even: bool) -> npt.NDArray[np.int64]:
    """Numpy form of :func:`rounding_shift` for |x| < 2^63 and amounts 0..63."""
    wide = np.asarray(x, dtype=np.int64)
    shift = np.asarray(amount, dtype=np.int64)
    quotient = wide >> shift
    rest = wide - (quotient << shift)
    half = np.where(shift > 0, np.int64(1) << np.maximum(shift - 1, 0), np.int64(0))
    up = (rest > half) | ((rest == half) & ((quotient & 1) == 1)) if half_even else rest >= half
    result: npt.NDArray[np.int64] = quotient + (up & (shift > 0))
    return result


def rshr_array(x: npt.ArrayLike, y: npt.ArrayLike, *, half_even: bool) -> Int32Array:
    """Numpy form of :func:`rshr`."""
    return wrap32_array(rounding_shift_array(x, np.clip(np.asarray(y, np.int64), 0, 31), half_even=half_even))


def mul_array(x: npt.ArrayLike, y: npt.ArrayLike) -> Int32Array:
    """Numpy form of :func:`mul`."""
    return wrap32_array(np.asarray(x, np.int64) * np.asarray(y, np.int64))


def mac_array(acc: npt.ArrayLike, x: npt.ArrayLike, y: npt.ArrayLike) -> Int32Array:
    """Numpy form of :func:`mac` (the sum of an int32 and a 62-bit product fits int64)."""
    return wrap32_array(np.asarray(acc, np.int64) + np.asarray(x, np.int64) * np.asarray(y, np.int64))


def add_array(x: npt.ArrayLike, y: npt.ArrayLike) -> Int32Array:
    """Numpy form of :func:`add`."""
    return wrap32_array(np.asarray(x, np.int64) + np.asarray(y, np.int64))


def gemm_array(acc: npt.ArrayLike, inputs: npt.ArrayLike, weights: npt.ArrayLike) -> Int32Array:
    """Numpy form of :func:`gemm`: ``acc [..., M] + inputs [..., K] @ weights [M, K].T``, wrapped to int32.

    Operands of up to 16 bits and K below 2^31 keep the int64 sum exact.
    """
    product = np.asarray(inputs, np.int64) @ np.asarray(weights, np.int64).T
    return wrap32_array(np.asarray(acc, np.int64) + product)


def truncate_array(values: npt.ArrayLike, bits: int) -> Int32Array:
    """Numpy form of :func:`truncate`."""
    wide = np.asarray(values, np.int64)
    return wrap32_array(((wide + (1 << (bits - 1))) & ((1 << bits) - 1)) - (1 << (bits - 1)))


def saturate_array(values: npt.ArrayLike, bits: int) -> Int32Array:
    """Numpy form of :func:`saturate`."""
    return wrap32_array(np.clip(np.asarray(values, np.int64), -(1 << (bits - 1)), (1 << (bits - 1)) - 1))
