# SPDX-License-Identifier: Apache-2.0
"""Requantization: scalar truth by independent formulas, numpy form against the scalars."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from openvta.spec import arith
from openvta.spec.errors import EncodingError
from openvta.spec.isa import RequantMode

INTEGER_MODES = [m for m in RequantMode if m is not RequantMode.FLOAT32]
EDGE_ACC = [0, 1, -1, 2**24, 2**24 + 1, -(2**24) - 1, 2**31 - 1, -(2**31), 2**25 + 2, 127, -128]


def _cases(seed: int, count: int) -> list[tuple[int, int, int, int]]:
    """(acc, bias, multiplier raw, shift), small and large, with edges."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(count):
        acc = int(rng.integers(-(2**31), 2**31)) >> int(rng.integers(0, 31))
        bias = int(rng.integers(-(2**31), 2**31)) >> int(rng.integers(0, 31))
        multiplier = int(rng.integers(0, 2**32)) >> int(rng.integers(0, 32))
        found.append((acc, bias, multiplier, int(rng.integers(0, 64))))
    for acc in EDGE_ACC:
        found += [(acc, 0, m, t) for m in (0, 1, 2**31 - 1, 2**32 - 1, 2**30) for t in (0, 1, 30, 31, 32, 62, 63)]
    return found


@pytest.mark.parametrize("mode", list(RequantMode))
@pytest.mark.parametrize("unsigned", [False, True])
def test_numpy_equals_scalar(mode: RequantMode, unsigned: bool) -> None:
    cases = _cases(int(mode), 4000)
    rng = np.random.default_rng(9)
    span = (0, 256) if unsigned else (-128, 128)
    zero, low, high = (rng.integers(*span, len(cases)) for _ in range(3))
    acc = np.array([c[0] for c in cases], dtype=np.int32)
    bias = np.array([c[1] for c in cases], dtype=np.int32)
    multiplier = np.array([c[2] for c in cases], dtype=np.uint32)
    shift = np.array([c[3] for c in cases], dtype=np.uint8)
    got = arith.requant_array(
        mode, acc, bias, multiplier, shift, zero_point=zero, low=low, high=high, unsigned=unsigned
    )
    expected = []
    for i, (a, b, m, t) in enumerate(cases):
        params = arith.RequantParams(b, m, t, int(zero[i]), int(low[i]), int(high[i]))
        expected.append(arith.requant(mode, a, params))
    assert got.dtype == (np.uint8 if unsigned else np.int8)
    assert got.tolist() == expected


def test_rounding_modes_equal_fractions() -> None:
    for acc, bias, multiplier, shift in _cases(77, 3000):
        x = arith.wrap32(acc + bias)
        m = multiplier & 0x7FFFFFFF
        exact = Fraction(x * m, 1 << shift)
        assert arith.scale_product(RequantMode.HALF_UP, x, multiplier, shift) == math.floor(exact + Fraction(1, 2))
        assert arith.scale_product(RequantMode.HALF_EVEN, x, multiplier, shift) == round(exact)
        assert arith.scale_product(RequantMode.FLOOR, x, multiplier, shift) == math.floor(exact)


def _srdhm(a: int, b: int) -> int:
    """Saturating rounding doubling high multiply with C's truncating division, for b > 0."""
    product = a * b
    nudge = (1 << 30) if product >= 0 else 1 - (1 << 30)
    total = product + nudge
    return abs(total) // (1 << 31) * (1 if total >= 0 else -1)


def _divide_by_power(x: int, exponent: int) -> int:
    """Rounding division by 2^exponent, ties away from zero."""
    mask = (1 << exponent) - 1
    threshold = (mask >> 1) + (1 if x < 0 else 0)
    return (x >> exponent) + (1 if (x & mask) > threshold else 0)


def test_tflite_modes_equal_the_published_formulas() -> None:
    rng = np.random.default_rng(5)
    for _ in range(5000):
        sh = int(rng.integers(-31, 8))
        m = int(rng.integers(1 << 30, 1 << 31))
        x = int(rng.integers(-(2**31), 2**31)) >> int(rng.integers(8 if sh > 0 else 0, 31))
        high = _srdhm(x << max(sh, 0), m)
        exponent = max(-sh, 0)
        t = 31 - sh
        assert arith.scale_product(RequantMode.TFLITE_DOUBLE, x, m, t) == _divide_by_power(high, exponent)
        ruy = high if exponent == 0 else (high + (1 << (exponent - 1))) >> exponent
        assert arith.scale_product(RequantMode.TFLITE_RUY, x, m, t) == ruy


def test_float32_mode_equals_float32_arithmetic() -> None:
    rng = np.random.default_rng(6)
    count = 200_000
    x = (rng.integers(-(2**31), 2**31, count) >> rng.integers(0, 31, count)).astype(np.int32)
    factor = np.exp2(rng.uniform(-40, 6, count)).astype(np.float32)
    expected = np.rint(x.astype(np.float32) * factor)
    bits = factor.view(np.uint32)
    got = arith.scale_product_array(RequantMode.FLOAT32, x, bits, np.zeros(1, np.uint8))
    assert np.array_equal(got, expected.astype(np.int64))
    for i in range(0, count, 97):
        assert arith.scale_product(RequantMode.FLOAT32, int(x[i]), int(bits[i]), 17) == int(expected[i])


@pytest.mark.parametrize(
    ("raw", "x", "expected"),
    [
        (0x00000001, 2**31 - 1, 0),  # exponent field 0 is zero, not a subnormal
        (0x007FFFFF, -(2**31), 0),
        (0x3F800000, 5, 5),
        (0xBF800000, 5, 5),  # the sign is ignored
        (0x3F000000, 5, 2),  # 2.5 to even
        (0x3F000000, 7, 4),
        (0x7F800000, 1, 1 << 128),  # exponent 255 is an ordinary exponent
        (0x3F800000, 2**24 + 1, 2**24),  # 24 significant bits, ties to even
        (0x3F800000, 2**24 + 3, 2**24 + 4),
        (0x3F800000, 2**31 - 1, 2**31),
    ],
)
def test_float32_mode_by_hand(raw: int, x: int, expected: int) -> None:
    assert arith.scale_product(RequantMode.FLOAT32, x, raw, 0) == expected
    got = arith.scale_product_array(
        RequantMode.FLOAT32, np.array([x], np.int32), np.array([raw], np.uint32), np.zeros(1, np.uint8)
    )
    assert int(got[0]) == min(expected, 1 << 40)


def test_clamp_low_wins_over_high() -> None:
    params = arith.RequantParams(0, 1, 0, 0, 10, -10)
    assert arith.requant(RequantMode.FLOOR, 0, params) == 10


def test_words_round_trip_and_limits() -> None:
    rng = np.random.default_rng(8)
    for unsigned in (False, True):
        span = (0, 256) if unsigned else (-128, 128)
        for _ in range(300):
            z, low, high = (int(v) for v in rng.integers(*span, 3))
            params = arith.RequantParams(
                int(rng.integers(-(2**31), 2**31)),
                int(rng.integers(0, 2**32)),
                int(rng.integers(0, 64)),
                z,
                low,
                high,
            )
            words = params.words()
            assert all(-(2**31) <= w < 2**31 for w in words)
            assert arith.RequantParams.from_words(*words, unsigned=unsigned) == params
    word2 = arith.RequantParams(0, 0, 5, 1, -2, 3).words()[2]
    assert word2 & 0xFFFFFFFF == 0x03FE0105
    with pytest.raises(EncodingError, match=r"shift = 64.*0..63"):
        arith.RequantParams(0, 0, 64, 0, 0, 0).words()
    table = arith.parameter_words([params, params])
    assert table.shape == (3, 2)
    assert table[:, 0].tolist() == list(params.words())


@pytest.mark.parametrize("bits", [8, 4, 2, 1])
def test_out_lane_keeps_the_low_bits(bits: int) -> None:
    assert arith.out_lane(-1, bits) == (1 << bits) - 1
    assert arith.out_lane(-128, bits) == (128 if bits == 8 else 0)
