# SPDX-License-Identifier: Apache-2.0
"""Requantization: a 32-bit accumulator and three parameter words to an 8-bit (or narrower) result.

With x = (acc + bias) modulo 2^32 as int32, m the multiplier and t the shift (0..63), y by mode:

=================  =================================================================================================
``HALF_UP``        floor((x * m + 2^(t-1)) / 2^t); t = 0: x * m
``HALF_EVEN``      x * m / 2^t to nearest, ties to even
``TFLITE_DOUBLE``  h = (wrap32(x << max(31 - t, 0)) * m + 2^30) >> 31; e = max(t - 31, 0);
                   (h + 2^(e-1) - (h < 0)) >> e; e = 0: h
``TFLITE_RUY``     the same h; (h + 2^(e-1)) >> e; e = 0: h
``FLOAT32``        m as float32 (sign ignored, exponent field 0 is zero, 255 an ordinary exponent): x rounded to 24
                   significant bits, the product rounded to 24 significant bits, then to an integer, always ties to even
``FLOOR``          (x * m) >> t
=================  =================================================================================================

Result: clamp(y + zero point, low, high), of which the low bits of the output's width leave.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from openvta.spec.arith.words import add_array, clamp, rounding_shift, rounding_shift_array, wrap, wrap32, wrap32_array
from openvta.spec.errors import EncodingError, SpecError
from openvta.spec.isa import PARAMETER_WORDS, RequantMode

MULTIPLIER_BITS = 31
"""Bits of an integer multiplier; bit 31 of word 1 is ignored."""
MAX_SHIFT = 63
"""Largest shift."""


@dataclass(frozen=True)
class RequantParams:
    """The parameters of one lane.

    ``bias`` int32; ``multiplier`` the 32 raw bits of word 1; ``shift`` 0..63; ``zero_point``, ``low`` and ``high``
    int8, or uint8 where the instruction says unsigned.
    """

    bias: int
    multiplier: int
    shift: int
    zero_point: int
    low: int
    high: int

    def words(self) -> tuple[int, int, int]:
        """Return the three parameter words as int32.

        Raises:
            EncodingError: a field out of range.
        """
        limits = {
            "bias": (self.bias, -(1 << 31), (1 << 31) - 1),
            "multiplier": (self.multiplier, 0, (1 << 32) - 1),
            "shift": (self.shift, 0, MAX_SHIFT),
            "zero_point": (self.zero_point, -128, 255),
            "low": (self.low, -128, 255),
            "high": (self.high, -128, 255),
        }
        for name, (value, least, most) in limits.items():
            if not least <= value <= most:
                raise EncodingError("requant", name, value, f"must be in {least}..{most}")
        packed = self.shift | (self.zero_point & 255) << 8 | (self.low & 255) << 16 | (self.high & 255) << 24
        return self.bias, wrap32(self.multiplier), wrap32(packed)

    @classmethod
    def from_words(cls, word0: int, word1: int, word2: int, *, unsigned: bool) -> RequantParams:
        """Read parameters from three acc words (int32 or uint32); bits 7:6 of word 2 are ignored."""

        def byte(position: int) -> int:
            value = (word2 >> position) & 255
            return value if unsigned else wrap(value, 8)

        return cls(wrap32(word0), word1 & 0xFFFFFFFF, word2 & MAX_SHIFT, byte(8), byte(16), byte(24))


def round_significant(value: int, bits: int) -> int:
    """Return ``value`` rounded to ``bits`` significant bits, ties to even."""
    excess = abs(value).bit_length() - bits
    if excess <= 0:
        return value
    return rounding_shift(value, excess, half_even=True) << excess


def _float32(x: int, raw: int) -> int:
    """Round x * multiplier by the rule of mode FLOAT32."""
    exponent = (raw >> 23) & 255
    if exponent == 0:
        return 0
    mantissa = (1 << 23) | (raw & 0x7FFFFF)
    product = round_significant(round_significant(x, 24) * mantissa, 24)
    power = exponent - 127 - 23
    return product << power if power >= 0 else rounding_shift(product, -power, half_even=True)


def scale_product(mode: RequantMode, x: int, multiplier: int, shift: int) -> int:
    """Return y of the table above (before zero point and clamp), an int of any size.

    Raises:
        SpecError: no such mode.
    """
    if mode is RequantMode.FLOAT32:
        return _float32(x, multiplier)
    m = multiplier & 0x7FFFFFFF
    if mode is RequantMode.HALF_UP:
        return rounding_shift(x * m, shift, half_even=False)
    if mode is RequantMode.HALF_EVEN:
        return rounding_shift(x * m, shift, half_even=True)
    if mode is RequantMode.FLOOR:
        return (x * m) >> shift
    if mode in (RequantMode.TFLITE_DOUBLE, RequantMode.TFLITE_RUY):
        high = (wrap32(x << max(31 - shift, 0)) * m + (1 << 30)) >> 31
        exponent = max(shift - 31, 0)
        if exponent == 0:
            return high
        nudge = 1 if mode is RequantMode.TFLITE_DOUBLE and high < 0 else 0
        return (high + (1 << (exponent - 1)) - nudge) >> exponent
    raise SpecError(f"requant mode {mode}: must be one of {', '.join(m.name for m in RequantMode)}")


def requant(mode: RequantMode, acc: int, params: RequantParams) -> int:
    """Return clamp(y + zero point, low, high) for one lane."""
    x = wrap32(acc + params.bias)
    y = scale_product(mode, x, params.multiplier, params.shift)
    return clamp(y + params.zero_point, params.low, params.high)


def out_lane(value: int, bits: int) -> int:
    """Return the raw bits (0 .. 2^bits - 1) of a result in an out lane of ``bits`` bits."""
    return value & ((1 << bits) - 1)


# numpy form


def scale_product_array(
    mode: RequantMode,
    x: npt.NDArray[np.int32],
    multiplier: npt.NDArray[np.uint32],
    shift: npt.NDArray[np.integer[Any]],
) -> npt.NDArray[np.int64]:
    """Numpy form of :func:`scale_product`; arrays broadcast. In mode FLOAT32 results beyond +-2^40 are cut to that.

    Raises:
        SpecError: no such mode.
    """
    if mode is RequantMode.FLOAT32:
        raw = multiplier.astype(np.int64)
        exponent = (raw >> 23) & 255
        mantissa = ((1 << 23) | (raw & 0x7FFFFF)).astype(np.float64)
        factor = np.where(exponent == 0, 0.0, np.ldexp(mantissa, (exponent - 150).astype(np.int32)))
        with np.errstate(over="ignore", under="ignore"):
            product = (x.astype(np.float32).astype(np.float64) * factor).astype(np.float32)
        limit = np.float64(1 << 40)
        return np.rint(np.clip(product.astype(np.float64), -limit, limit)).astype(np.int64)
    m = (multiplier & np.uint32(0x7FFFFFFF)).astype(np.int64)
    wide = x.astype(np.int64)
    amount = np.asarray(shift, dtype=np.int64)
    if mode is RequantMode.HALF_UP:
        return rounding_shift_array(wide * m, amount, half_even=False)
    if mode is RequantMode.HALF_EVEN:
        return rounding_shift_array(wide * m, amount, half_even=True)
    if mode is RequantMode.FLOOR:
        floored: npt.NDArray[np.int64] = (wide * m) >> amount
        return floored
    if mode in (RequantMode.TFLITE_DOUBLE, RequantMode.TFLITE_RUY):
        shifted = wrap32_array(wide << np.maximum(31 - amount, 0)).astype(np.int64)
        high = (shifted * m + (1 << 30)) >> 31
        exponent = np.maximum(amount - 31, 0)
        nudge = (high < 0).astype(np.int64) if mode is RequantMode.TFLITE_DOUBLE else np.int64(0)
        half = np.int64(1) << np.maximum(exponent - 1, 0)
        result: npt.NDArray[np.int64] = np.where(exponent == 0, high, (high + half - nudge) >> exponent)
        return result
    raise SpecError(f"requant mode {mode}: must be one of {', '.join(m.name for m in RequantMode)}")


def requant_array(
    mode: RequantMode,
    acc: npt.NDArray[np.integer[Any]],
    bias: npt.ArrayLike,
    multiplier: npt.ArrayLike,
    shift: npt.ArrayLike,
    *,
    zero_point: npt.ArrayLike,
    low: npt.ArrayLike,
    high: npt.ArrayLike,
    unsigned: bool,
) -> npt.NDArray[Any]:
    """Numpy form of :func:`requant`: int32 accumulators to int8 (uint8 where ``unsigned``); parameters broadcast."""
    x = add_array(acc, bias)
    y = scale_product_array(mode, x, np.asarray(multiplier, np.uint32), np.asarray(shift, np.int64))
    limited = np.maximum(np.minimum(y + np.asarray(zero_point, np.int64), high), low)
    return limited.astype(np.uint8 if unsigned else np.int8)


def parameter_words(params: Iterable[RequantParams]) -> npt.NDArray[np.int32]:
    """Return the parameter words of several lanes as int32 ``[3, lanes]``."""
    return np.array([p.words() for p in params], dtype=np.int64).reshape(-1, PARAMETER_WORDS).T.astype(np.int32)
