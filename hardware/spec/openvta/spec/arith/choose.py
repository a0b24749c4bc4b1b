# SPDX-License-Identifier: Apache-2.0
"""Choosing multiplier and shift for a ratio, with proof of exactness where there is one.

*Exact* means: for every accumulator of magnitude up to ``reach`` whose result is not clamped away, the hardware rule
gives round_half_even(acc * ratio).

- ratio = p / 2^k with p < 2^31: the half-even shift is the definition itself.
- ratio = p / q, q odd and above 1: acc * p / q is never a tie (2 * acc * p would have to be an odd multiple of q) and
  stays at least 1 / (2q) away from one. With m the integer nearest ratio * 2^t the product errs by at most reach /
  2^(t+1); the half-even shift is exact when reach * q < 2^t.
- otherwise ties exist that an integer multiplier cannot hit; float32 mode often does (its product is rounded to 24
  bits, which restores a tie that is near enough). That is decided by trying every accumulator.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from openvta.spec.arith.requant import MAX_SHIFT, MULTIPLIER_BITS, scale_product_array
from openvta.spec.errors import SpecError
from openvta.spec.isa import RequantMode

EXHAUSTIVE = 1 << 23
"""Largest reach that is proved by trying every accumulator."""


@dataclass(frozen=True)
class Scaling:
    """A hardware rule for a ratio: ``multiplier`` raw bits of word 1, ``shift`` 0..63."""

    mode: RequantMode
    multiplier: int
    shift: int
    exact: bool


def is_power_of_two(value: float) -> bool:
    """Return whether a positive finite number is 2^k for an integer k."""
    return value > 0 and np.isfinite(value) and np.frexp(value)[0] == 0.5


def float32_bits(value: float) -> int:
    """Return the bits of ``value`` as float32, the multiplier of mode FLOAT32; numbers below 2^-126 become zero.

    Raises:
        SpecError: a negative, infinite or NaN value, or one of 2^128 or more.
    """
    with np.errstate(over="ignore"):
        single = np.float32(value)
    if not np.isfinite(single) or single < 0:
        raise SpecError(f"multiplier = {value}: must be in 0 .. 2^128")
    bits = int(single.view(np.uint32))
    return bits if bits >> 23 else 0


def integer_scaling(ratio: Fraction, limit: int = MULTIPLIER_BITS) -> tuple[int, int]:
    """Return (multiplier, shift) with multiplier / 2^shift nearest to ``ratio`` and multiplier < 2^limit.

    The largest shift that fits is taken, and reduced while the multiplier is even.

    Raises:
        SpecError: the ratio is negative or 2^limit or more.
    """
    if ratio < 0 or ratio >= 1 << limit:
        raise SpecError(f"ratio = {float(ratio)}: must be in 0 .. 2^{limit}")
    if ratio == 0:
        return 0, 0
    shift = MAX_SHIFT
    while shift > 0 and round(ratio * (1 << shift)) >= 1 << limit:
        shift -= 1
    multiplier = round(ratio * (1 << shift))
    if multiplier >= 1 << limit:
        multiplier = (1 << limit) - 1
    while shift > 0 and multiplier and multiplier % 2 == 0:
        multiplier, shift = multiplier // 2, shift - 1
    return multiplier, shift


def half_even_ratio(acc: npt.NDArray[np.int64], ratio: Fraction) -> npt.NDArray[np.int64]:
    """Return round_half_even(acc * ratio) exactly; |acc| * numerator and 2 * denominator must fit 62 bits.

    Raises:
        SpecError: they do not.
    """
    top, bottom = ratio.numerator, ratio.denominator
    largest = int(np.abs(acc).max(initial=0))
    if largest * abs(top) >= 1 << 62 or bottom >= 1 << 61:
        raise SpecError(f"ratio = {ratio}: too many digits for an exact check up to {largest}")
    product = acc * top
    quotient = product // bottom
    twice = 2 * (product - quotient * bottom)
    up = (twice > bottom) | ((twice == bottom) & (quotient % 2 != 0))
    result: npt.NDArray[np.int64] = quotient + up
    return result


def holds_exactly(scaling: Scaling, ratio: Fraction, low: int, high: int, clip: int = 1 << 9) -> bool:
    """Return whether ``scaling`` is right for every accumulator in ``low..high``; results beyond +-``clip`` count as
    equal.

    The clip stands for the clamp to 8 bits that follows, zero point included.
    """
    acc = np.arange(low, high + 1, dtype=np.int64)
    ideal = half_even_ratio(acc, ratio)
    shift = np.full(1, scaling.shift, np.int64)
    got = scale_product_array(scaling.mode, acc.astype(np.int32), np.full(1, scaling.multiplier, np.uint32), shift)
    return bool((np.clip(ideal, -clip, clip) == np.clip(got, -clip, clip)).all())


def choose_rational(ratio: Fraction, reach: int) -> Scaling:
    """Return the rule for an exactly known ratio and accumulators up to +-``reach``.

    Half-even shift where it is exact, else float32 mode where that is, else the half-even shift with ``exact`` False.

    Raises:
        SpecError: the ratio is negative or 2^31 or more.
    """
    multiplier, shift = integer_scaling(ratio)
    shifted = Scaling(RequantMode.HALF_EVEN, multiplier, shift, False)
    bottom = ratio.denominator
    if Fraction(multiplier, 1 << shift) == ratio:
        return Scaling(shifted.mode, multiplier, shift, True)
    if bottom % 2 and abs(Fraction(multiplier, 1 << shift) - ratio) * reach * 2 * bottom < 1:
        return Scaling(shifted.mode, multiplier, shift, True)
    single = Scaling(RequantMode.FLOAT32, float32_bits(float(ratio)), 0, False)
    if reach <= EXHAUSTIVE and reach * ratio.numerator < 1 << 62 and bottom < 1 << 61:
        for rule in (shifted, single):
            if holds_exactly(rule, ratio, -reach, reach):
                return Scaling(rule.mode, rule.multiplier, rule.shift, True)
    return shifted


def choose_powers(ratios: list[float]) -> list[Scaling]:
    """Return half-even shifts for ratios that are powers of two (or zero), exact by definition.

    Raises:
        SpecError: a ratio that is neither, or outside 2^-63 .. 2^30.
    """
    found = []
    for ratio in ratios:
        if ratio == 0:
            found.append(Scaling(RequantMode.HALF_EVEN, 0, 0, True))
            continue
        if not is_power_of_two(ratio) or not 2.0**-MAX_SHIFT <= ratio < 2.0**MULTIPLIER_BITS:
            raise SpecError(f"ratio = {ratio}: must be a power of two in 2^-{MAX_SHIFT} .. 2^{MULTIPLIER_BITS - 1}")
        power = int(np.frexp(ratio)[1]) - 1
        found.append(Scaling(RequantMode.HALF_EVEN, 1 << max(power, 0), max(-power, 0), True))
    return found


def choose_float32(ratios: list[float]) -> list[Scaling]:
    """Return float32 multipliers for real ratios (already float32 values): onnxruntime's integer-kernel rule."""
    return [Scaling(RequantMode.FLOAT32, float32_bits(ratio), 0, False) for ratio in ratios]


def add_coefficients(
    ratios: tuple[float, float], reach: tuple[int, int], bits: int
) -> tuple[tuple[int, int], int, bool] | None:
    """Return ((ca, cb), shift, exact) for a * ratio_a + b * ratio_b, or None where no coefficients fit.

    Coefficients are below 2^bits and ``reach[0] * ca + reach[1] * cb`` below 2^31, reach being the largest magnitude
    of each input without its zero point. Powers of two become the smallest exact coefficients; else as many fraction
    bits as fit.
    """
    exact = [Fraction(r) for r in ratios]
    limit = (1 << 31) - 1

    def fits(pair: tuple[int, int]) -> bool:
        return max(pair) < 1 << bits and reach[0] * pair[0] + reach[1] * pair[1] <= limit

    if all(r == 0 or is_power_of_two(r) for r in ratios):
        shift = max(r.denominator.bit_length() - 1 for r in exact)
        scaled = [int(r * (1 << shift)) for r in exact]
        pair = (scaled[0], scaled[1])
        if shift <= MAX_SHIFT and fits(pair):
            return pair, shift, True
    for shift in range(MAX_SHIFT, -1, -1):
        pair = (round(exact[0] * (1 << shift)), round(exact[1] * (1 << shift)))
        if fits(pair):
            return pair, shift, all(Fraction(c, 1 << shift) == r for c, r in zip(pair, exact, strict=True))
    return None
