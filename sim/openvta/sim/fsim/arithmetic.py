# SPDX-License-Identifier: Apache-2.0
"""The functional simulator's arithmetic on arrays, written for speed, checked against the specification's scalars."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from openvta.spec import AluOpcode, RequantMode

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]

FLOAT_MANTISSA = 1 << 23
ORDINARY_EXPONENT = 127 + 96
"""Float multipliers below 2^96 times 2^31 stay finite in float32."""
FLOAT64_BITS = 20
"""Multipliers of at most so many significant bits, times 32 bits and a half, are exact in float64."""
FLOAT64_ROUNDING = (RequantMode.HALF_UP, RequantMode.HALF_EVEN, RequantMode.FLOOR)


def narrow(values: Int32, bits: int, *, saturate: bool) -> npt.NDArray[np.int8]:
    """acc lanes on their way to out: the low ``bits`` (1..8), or limited to their range; int8, sign extended."""
    if saturate:
        limit = 1 << (bits - 1)
        return np.clip(values, -limit, limit - 1).astype(np.int8)
    return keep_low(values, bits)


def keep_low(values: npt.NDArray[Any], bits: int) -> npt.NDArray[np.int8]:
    """The low ``bits`` (1..8) of integers as a signed number."""
    low = values.astype(np.int8)
    if bits == 8:
        return low
    away = np.int8(8 - bits)
    shifted: npt.NDArray[np.int8] = (low << away) >> away
    return shifted


def _unsigned(values: Int32) -> npt.NDArray[np.uint32]:
    return values.view(np.uint32)


def shift(x: Int32, amount: Int32) -> Int32:
    """x shifted right by the amount, left where it is negative; the amount is limited to -31..31."""
    limited = np.clip(amount, -31, 31)
    right = x >> np.maximum(limited, 0)
    left = _unsigned(x) << np.maximum(-limited, 0).astype(np.uint32)
    return np.where(limited >= 0, right, left.view(np.int32))


def shift_by(x: Int32, amount: int) -> Int32:
    """:func:`shift` by the same amount everywhere."""
    limited = min(max(amount, -31), 31)
    if limited >= 0:
        return x >> np.int32(limited)
    return (_unsigned(x) << np.uint32(-limited)).view(np.int32)


def round_shift(x: npt.NDArray[np.signedinteger[Any]], amount: Int64 | np.int64, *, even: bool) -> Int64:
    """x / 2^amount to the nearest integer, ties up or to even; amounts 0..63, |x| + 2^(amount-1) within int64."""
    wide = x.astype(np.int64)
    positive = amount > 0
    below = np.maximum(amount - 1, 0)
    half = np.where(positive, np.int64(1) << below, np.int64(0))
    if even:
        lift = np.where(positive, half - 1 + ((wide >> amount) & 1), np.int64(0))
        return (wide + lift) >> amount
    return (wide + half) >> amount


def alu_function(op: AluOpcode, imm: int, *, use_imm: bool) -> Callable[[Int32, Int32], Int32]:
    """``f(dst, src)`` of an ALU instruction: what goes to acc[dst], a new array, given lanes of acc[dst] and acc[src].

    With an immediate ``dst`` is only looked at by MAC; MOV with an immediate looks at neither's values.
    """
    value = np.int32(imm)
    if op is AluOpcode.RSHR:
        even = bool(imm & 0x8000)
        if use_imm:
            amount = np.int64(imm & 31)
            return lambda dst, src: round_shift(src, amount, even=even).astype(np.int32)
        return lambda dst, src: round_shift(dst, np.clip(src, 0, 31).astype(np.int64), even=even).astype(np.int32)
    if use_imm:
        unsigned = np.uint32(imm & 0xFFFFFFFF)
        table: dict[AluOpcode, Callable[[Int32, Int32], Int32]] = {
            AluOpcode.MIN: lambda dst, src: np.minimum(src, value),
            AluOpcode.MAX: lambda dst, src: np.maximum(src, value),
            AluOpcode.ADD: lambda dst, src: (_unsigned(src) + unsigned).view(np.int32),
            AluOpcode.SHR: lambda dst, src: shift_by(src, imm),
            AluOpcode.MUL: lambda dst, src: (_unsigned(src) * unsigned).view(np.int32),
            AluOpcode.MAC: lambda dst, src: (_unsigned(dst) + _unsigned(src) * unsigned).view(np.int32),
            AluOpcode.MOV: lambda dst, src: np.full_like(dst, value),
        }
        return table[op]
    plain: dict[AluOpcode, Callable[[Int32, Int32], Int32]] = {
        AluOpcode.MIN: lambda dst, src: np.minimum(dst, src),
        AluOpcode.MAX: lambda dst, src: np.maximum(dst, src),
        AluOpcode.ADD: lambda dst, src: (_unsigned(dst) + _unsigned(src)).view(np.int32),
        AluOpcode.SHR: shift,
        AluOpcode.MUL: lambda dst, src: (_unsigned(dst) * _unsigned(src)).view(np.int32),
        AluOpcode.MAC: lambda dst, src: (_unsigned(dst) + _unsigned(dst) * _unsigned(src)).view(np.int32),
        AluOpcode.MOV: lambda dst, src: src.copy(),
    }
    return plain[op]


@dataclass(frozen=True)
class Parameters:
    """Requantization parameters decoded for one mode; every array broadcasts against the lanes.

    ``factor``: where a product in its float type, rounded once, is the mode's exact result: float32 in mode FLOAT32 (no
    extreme exponents), float64 in integer modes (few enough significant bits). Otherwise None, and ``multiplier`` and
    ``shift`` (int64) or, in mode FLOAT32, ``mantissa`` (float64) and ``power`` are used. ``float_zero`` is None
    where every zero point is 0.
    """

    mode: RequantMode
    bias: Int32
    zero: Int32
    low: Int32
    high: Int32
    multiplier: Int64
    shift: Int64
    mantissa: npt.NDArray[np.float64]
    power: npt.NDArray[np.int32]
    factor: npt.NDArray[Any] | None
    float_zero: npt.NDArray[Any] | None
    float_low: npt.NDArray[Any]
    float_high: npt.NDArray[Any]


def decode_parameters(
    mode: RequantMode, bias: Int32, multiplier: Int32, packed: Int32, *, unsigned: bool
) -> Parameters:
    """Parameters from the three words of every lane (any shape)."""
    raw = multiplier.astype(np.int64) & 0xFFFFFFFF
    word = packed.astype(np.int64) & 0xFFFFFFFF

    def byte(position: int) -> Int32:
        lane = ((word >> position) & 255).astype(np.uint8)
        return lane.astype(np.int32) if unsigned else lane.view(np.int8).astype(np.int32)

    exponent = (raw >> 23) & 255
    mantissa = np.where(exponent == 0, 0, (raw & (FLOAT_MANTISSA - 1)) | FLOAT_MANTISSA).astype(np.float64)
    integer, shift = raw & 0x7FFFFFFF, word & 63
    factor: npt.NDArray[Any] | None = None
    kind: type[np.floating[Any]] = np.float64
    if mode is RequantMode.FLOAT32:
        kind = np.float32
        if int(exponent.max()) < ORDINARY_EXPONENT:
            factor = np.where(exponent == 0, 0, raw & 0x7FFFFFFF).astype(np.uint32).view(np.float32)
    elif mode in FLOAT64_ROUNDING:
        odd = integer // np.maximum(integer & -integer, 1)
        if int(odd.max()) < 1 << FLOAT64_BITS:
            factor = np.ldexp(integer.astype(np.float64), -shift.astype(np.int32))
    zero, low, high = byte(8), byte(16), byte(24)
    return Parameters(
        mode=mode,
        bias=bias,
        zero=zero,
        low=low,
        high=high,
        multiplier=integer,
        shift=shift,
        mantissa=mantissa,
        power=(exponent - 150).astype(np.int32),
        factor=factor,
        float_zero=zero.astype(kind) if zero.any() else None,
        float_low=low.astype(kind),
        float_high=high.astype(kind),
    )


def spread(p: Parameters, shape: tuple[int, ...]) -> Parameters:
    """The same parameters with the arrays of the fast path at full ``shape``, single numbers where all lanes agree.

    Loops over one long row cost a fraction of loops over many short ones.
    """
    if p.factor is None:
        return p

    def full(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
        first = array.reshape(-1)[0]
        if bool((array == first).all()):
            return np.full((1,) * len(shape), first)
        return np.ascontiguousarray(np.broadcast_to(array, shape))

    return replace(
        p,
        bias=full(p.bias),
        factor=full(p.factor),
        float_zero=None if p.float_zero is None else full(p.float_zero),
        float_low=full(p.float_low),
        float_high=full(p.float_high),
    )


def requantize(acc: Int32, p: Parameters) -> npt.NDArray[Any]:
    """clamp(y + zero point, low, high) of every lane, whole numbers of some type; where low is above high, low."""
    x = acc + p.bias
    if p.factor is not None:
        return _scaled(x, p, p.factor)
    if p.mode is RequantMode.FLOAT32:
        product = (x.astype(np.float32).astype(np.float64) * p.mantissa).astype(np.float32).astype(np.float64)
        exact = np.rint(np.ldexp(product, p.power)) + p.zero
        limited: npt.NDArray[Any] = np.maximum(np.minimum(exact, p.high), p.low)
        return limited
    wide = x.astype(np.int64)
    if p.mode in (RequantMode.TFLITE_DOUBLE, RequantMode.TFLITE_RUY):
        y = _tflite(x, p)
    elif p.mode is RequantMode.FLOOR:
        y = (wide * p.multiplier) >> p.shift
    else:
        y = round_shift(wide * p.multiplier, p.shift, even=p.mode is RequantMode.HALF_EVEN)
    result: npt.NDArray[Any] = np.maximum(np.minimum(y + p.zero, p.high), p.low)
    return result


def _scaled(x: Int32, p: Parameters, factor: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """One float product and one rounding. Results beyond 2^24 may lose the zero point; every clamp cuts them anyway."""
    y = x.astype(factor.dtype)
    y *= factor
    if p.mode is RequantMode.HALF_UP:
        y += 0.5
        np.floor(y, out=y)
    elif p.mode is RequantMode.FLOOR:
        np.floor(y, out=y)
    else:
        np.rint(y, out=y)
    if p.float_zero is not None:
        y += p.float_zero
    if p.float_low.size == 1 and p.float_high.size == 1:
        low = p.float_low.item()
        return y.clip(low, max(low, p.float_high.item()), out=y)
    np.minimum(y, p.float_high, out=y)
    np.maximum(y, p.float_low, out=y)
    return y


def _tflite(x: Int32, p: Parameters) -> Int64:
    left = np.maximum(31 - p.shift, 0).astype(np.uint32)
    shifted = (_unsigned(x) << left).view(np.int32).astype(np.int64)
    high = (shifted * p.multiplier + (1 << 30)) >> 31
    right = np.maximum(p.shift - 31, 0)
    if p.mode is RequantMode.TFLITE_DOUBLE:
        high = high - np.where(right > 0, (high < 0).astype(np.int64), np.int64(0))
    return round_shift(high, right, even=False)
