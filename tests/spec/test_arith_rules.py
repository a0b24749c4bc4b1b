# SPDX-License-Identifier: Apache-2.0
"""Choosing multipliers, pooling geometry and rules, quantization at the border."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from openvta.spec import arith
from openvta.spec.errors import SpecError
from openvta.spec.isa import RequantMode


def test_global_average_over_49_is_exact_for_every_sum() -> None:
    """Input scale 1/8, output scale 1/32: clamp(round_half_even(4 * sum / 49)), every reachable sum tried."""
    ratio = Fraction(4, 49)
    reach = 49 * 255
    rule = arith.choose_rational(ratio, reach)
    assert rule.exact
    assert rule.mode is RequantMode.HALF_EVEN
    for total in range(-reach, reach + 1):
        expected = arith.average(total, 49, Fraction(4), 0, -128, 127)
        params = arith.RequantParams(0, rule.multiplier, rule.shift, 0, -128, 127)
        assert arith.requant(rule.mode, total, params) == expected


@pytest.mark.parametrize("divisor", range(1, 50))
@pytest.mark.parametrize("power", [-3, -1, 0, 1, 2, 4])
def test_every_rational_rule_that_claims_exactness_is_exact(divisor: int, power: int) -> None:
    ratio = Fraction(2) ** power / divisor
    reach = 255 * divisor
    rule = arith.choose_rational(ratio, reach)
    if ratio.denominator % 2 or ratio.denominator & (ratio.denominator - 1) == 0:
        assert rule.exact
    sums = list(range(-reach, reach + 1, 7)) + [k * divisor + divisor // 2 for k in range(-200, 200)]
    wrong = 0
    for total in sums:
        params = arith.RequantParams(0, rule.multiplier, rule.shift, 0, -128, 127)
        wrong += arith.requant(rule.mode, total, params) != arith.average(total, 1, ratio, 0, -128, 127)
    assert wrong == 0 or not rule.exact


def test_integer_scaling_is_nearest() -> None:
    rng = np.random.default_rng(1)
    for _ in range(500):
        ratio = Fraction(int(rng.integers(1, 10**6)), int(rng.integers(1, 10**6)))
        multiplier, shift = arith.integer_scaling(ratio)
        assert 0 < multiplier < 1 << 31
        assert abs(Fraction(multiplier, 1 << shift) - ratio) <= Fraction(1, 1 << (shift + 1))
        assert abs(Fraction(multiplier, 1 << shift) / ratio - 1) < Fraction(1, 1 << 29)
    assert arith.integer_scaling(Fraction(0)) == (0, 0)
    assert arith.integer_scaling(Fraction(3, 8)) == (3, 3)
    with pytest.raises(SpecError, match="ratio"):
        arith.integer_scaling(Fraction(1 << 31))


def test_powers_of_two() -> None:
    rules = arith.choose_powers([1.0, 0.25, 8.0, 0.0, 2.0**-63])
    assert [(r.multiplier, r.shift) for r in rules] == [(1, 0), (1, 2), (8, 0), (0, 0), (1, 63)]
    assert all(r.exact and r.mode is RequantMode.HALF_EVEN for r in rules)
    for bad in (0.3, 2.0**-64, 2.0**31, -1.0, float("nan"), float("inf")):
        with pytest.raises(SpecError, match="ratio"):
            arith.choose_powers([bad])


def test_float32_bits() -> None:
    assert arith.float32_bits(1.0) == 0x3F800000
    assert arith.float32_bits(0.0) == 0
    assert arith.float32_bits(1e-40) == 0
    for bad in (-1.0, float("nan"), float("inf"), 1e39):
        with pytest.raises(SpecError, match="multiplier"):
            arith.float32_bits(bad)


def test_add_coefficients_powers_of_two_are_exact() -> None:
    found = arith.add_coefficients((0.5, 2.0), (255, 255), 23)
    assert found == ((1, 4), 1, True)
    rng = np.random.default_rng(2)
    for _ in range(200):
        a, b = (int(v) for v in rng.integers(-255, 256, 2))
        expected = arith.clamp(round(Fraction(a, 2) + 2 * b), -128, 127)
        assert arith.add_scaled(a, b, (1, 4), 1, 0, -128, 127) == expected


def test_add_coefficients_fit_and_have_twenty_fraction_bits() -> None:
    rng = np.random.default_rng(3)
    for _ in range(300):
        ratios = (float(np.float32(rng.uniform(0.05, 3.5))), float(np.float32(rng.uniform(0.05, 3.5))))
        reach = (int(rng.integers(128, 256)), int(rng.integers(128, 256)))
        found = arith.add_coefficients(ratios, reach, 23)
        assert found is not None
        pair, shift, _ = found
        assert max(pair) < 1 << 23
        assert reach[0] * pair[0] + reach[1] * pair[1] < 1 << 31
        assert shift >= 20
    assert arith.add_coefficients((1e9, 1.0), (255, 255), 23) is None


def test_ceil_mode_average_divisors() -> None:
    """1..16 as 4x4, 3x3, stride 2, pad 1, ceil, padding counted."""
    size = arith.pooled_size(4, 3, 2, 1, 1, ceil_mode=True)
    assert size == 3
    counts = arith.divisors((4, 4), (3, 3), (3, 3), (2, 2), (1, 1, 1, 1), count_include_pad=True)
    image = np.pad(np.arange(1, 17).reshape(4, 4), ((1, 2), (1, 2)))
    sums = [[int(image[2 * i : 2 * i + 3, 2 * j : 2 * j + 3].sum()) for j in range(3)] for i in range(3)]
    means = [[Fraction(sums[i][j], int(counts[i, j])) for j in range(3)] for i in range(3)]
    assert means == [
        [Fraction(14, 9), Fraction(10, 3), 2],
        [Fraction(19, 3), 11, 6],
        [Fraction(9, 2), Fraction(15, 2), 4],
    ]
    bare = arith.divisors((4, 4), (3, 3), (3, 3), (2, 2), (1, 1, 1, 1), count_include_pad=False)
    assert bare.tolist() == [[4, 6, 2], [6, 9, 3], [2, 3, 1]]


def test_ceil_mode_drops_a_window_that_starts_in_the_end_padding() -> None:
    assert arith.pooled_size(5, 2, 3, 0, 1, ceil_mode=True) == 2
    assert arith.pooled_size(4, 2, 3, 0, 1, ceil_mode=True) == 2
    assert arith.pooled_size(3, 2, 3, 0, 2, ceil_mode=True) == 1
    assert arith.pooled_size(2, 5, 1, 0, 0, ceil_mode=False) < 1


def test_a_window_over_nothing_is_refused() -> None:
    with pytest.raises(SpecError, match="covers none"):
        arith.divisors((2, 2), (2, 2), (1, 1), (1, 1), (1, 1, 0, 0), count_include_pad=False)


def test_float32_forms_agree_with_the_rules_away_from_ties() -> None:
    rng = np.random.default_rng(4)
    a, b = (rng.integers(-255, 256, 4000).astype(np.int32) for _ in range(2))
    scales = (float(np.float32(0.031)), float(np.float32(0.047)), float(np.float32(0.06)))
    found = arith.add_coefficients((scales[0] / scales[2], scales[1] / scales[2]), (255, 255), 23)
    assert found is not None
    pair, shift, _ = found
    floats = arith.float32_add(a, b, scales, 3, -128, 127)
    for i in range(a.size):
        rule = arith.add_scaled(int(a[i]), int(b[i]), pair, shift, 3, -128, 127)
        exact = Fraction(int(a[i])) * Fraction(scales[0]) + Fraction(int(b[i])) * Fraction(scales[1])
        near = abs(abs(exact / Fraction(scales[2]) % 1) - Fraction(1, 2)) < Fraction(1, 10000)
        assert near or rule == floats[i]
    total = rng.integers(-12495, 12496, 4000).astype(np.int32)
    floats = arith.float32_average(total, 49, 0.125, 0.03125, 0, -128, 127)
    assert floats.tolist() == [arith.average(int(t), 49, Fraction(4), 0, -128, 127) for t in total]


def test_quantize_half_even_and_saturation() -> None:
    values = np.arange(-9, 10) / 2
    got = arith.quantize_array(values, 1.0, 0, -128, 127)
    assert got.tolist() == [round(v) for v in values]
    assert got.tolist()[9:] == [0, 0, 1, 2, 2, 2, 3, 4, 4, 4]
    assert arith.quantize_array([1e30, -1e30, np.inf, -np.inf], 0.5, 3, -128, 127).tolist() == [
        127,
        -128,
        127,
        -128,
    ]
    with pytest.raises(SpecError, match="NaN"):
        arith.quantize_array([np.nan], 1.0, 0, -128, 127)
    back = arith.dequantize_array(np.array([0, 255], np.uint8), 0.5, 128)
    assert back.dtype == np.float32
    assert back.tolist() == [-64.0, 63.5]
