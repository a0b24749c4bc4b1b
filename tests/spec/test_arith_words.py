# SPDX-License-Identifier: Apache-2.0
"""Words: scalar truth by hand-worked values, numpy forms against the scalars."""

from __future__ import annotations

import numpy as np
import pytest

from openvta.spec import arith
from openvta.spec.errors import SpecError
from openvta.spec.isa import AluOpcode

EDGES = [0, 1, -1, 2, -2, 127, -128, 32767, -32768, 2**30, -(2**30), 2**31 - 1, -(2**31), 2**31 - 2]


def _random(seed: int, count: int) -> list[int]:
    rng = np.random.default_rng(seed)
    wide = [int(v) for v in rng.integers(-(2**31), 2**31, count)]
    narrow = [int(v) >> int(s) for v, s in zip(wide, rng.integers(0, 31, count), strict=True)]
    return EDGES + narrow


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (2**31, -(2**31)),
        (2**32 + 5, 5),
        (-(2**31) - 1, 2**31 - 1),
        (2**63, 0),
        (-1, -1),
        (3 * 2**31, -(2**31)),
    ],
)
def test_wrap32_by_hand(value: int, expected: int) -> None:
    assert arith.wrap32(value) == expected


@pytest.mark.parametrize(
    ("x", "y", "expected"),
    [
        (-5, 1, -3),
        (5, 1, 2),
        (1, -31, -(2**31)),
        (3, -31, -(2**31)),
        (-(2**31), 31, -1),
        (-(2**31), 99, -1),
        (2**31 - 1, 2**31 - 1, 0),
        (1, -(2**31), -(2**31)),
        (7, 0, 7),
    ],
)
def test_shr_by_hand(x: int, y: int, expected: int) -> None:
    assert arith.shr(x, y) == expected
    assert arith.alu(AluOpcode.SHR, x, y, 0, use_imm=False) == expected


@pytest.mark.parametrize(
    ("x", "y", "up", "even"),
    [
        (1, 1, 1, 0),
        (3, 1, 2, 2),
        (-1, 1, 0, 0),
        (-3, 1, -1, -2),
        (5, 1, 3, 2),
        (2**31 - 1, 1, 2**30, 2**30),
        (-(2**31), 31, -1, -1),
        (2**30, 31, 1, 0),
        (-(2**30), 31, 0, 0),
        (9, -4, 9, 9),
        (9, 40, 0, 0),
    ],
)
def test_rshr_by_hand(x: int, y: int, up: int, even: int) -> None:
    assert arith.rshr(x, y, half_even=False) == up
    assert arith.rshr(x, y, half_even=True) == even


@pytest.mark.parametrize(
    ("op", "dst", "src", "imm", "use_imm", "expected"),
    [
        (AluOpcode.MIN, 3, -4, 9, True, -4),
        (AluOpcode.MIN, 3, -4, 9, False, -4),
        (AluOpcode.MAX, 3, -4, 9, True, 9),
        (AluOpcode.MAX, 3, -4, 9, False, 3),
        (AluOpcode.ADD, 2**31 - 1, 1, 0, False, -(2**31)),
        (AluOpcode.MUL, 2**16, 2**16, 0, False, 0),
        (AluOpcode.MUL, 0, -3, -7, True, 21),
        (AluOpcode.MAC, 100, 7, -3, True, 79),
        (AluOpcode.MAC, 100, 7, 0, False, 800),
        (AluOpcode.MOV, 1, 2, -9, True, -9),
        (AluOpcode.MOV, 1, 2, -9, False, 2),
        (AluOpcode.RSHR, 0, 5, 1, True, 3),
        (AluOpcode.RSHR, 0, 5, -32768 + 1, True, 2),
        (AluOpcode.RSHR, 5, 1, 0, False, 3),
        (AluOpcode.RSHR, 5, 1, -32768, False, 2),
        (AluOpcode.SHR, 0, -8, -2, True, -32),
    ],
)
def test_alu_by_hand(op: AluOpcode, dst: int, src: int, imm: int, use_imm: bool, expected: int) -> None:
    assert arith.alu(op, dst, src, imm, use_imm=use_imm) == expected


def test_numpy_forms_equal_the_scalars() -> None:
    xs, ys = _random(1, 400), _random(2, 400)
    pairs = [(x, y) for x in xs[:60] for y in ys[:60]] + list(zip(xs, ys, strict=True))
    x = np.array([p[0] for p in pairs], dtype=np.int32)
    y = np.array([p[1] for p in pairs], dtype=np.int32)
    z = x[::-1].copy()
    checks = {
        "shr": (arith.shr_array(x, y), [arith.shr(a, b) for a, b in pairs]),
        "mul": (arith.mul_array(x, y), [arith.mul(a, b) for a, b in pairs]),
        "add": (arith.add_array(x, y), [arith.add(a, b) for a, b in pairs]),
        "mac": (
            arith.mac_array(z, x, y),
            [arith.mac(int(c), a, b) for c, (a, b) in zip(z, pairs, strict=True)],
        ),
        "up": (
            arith.rshr_array(x, y, half_even=False),
            [arith.rshr(a, b, half_even=False) for a, b in pairs],
        ),
        "even": (
            arith.rshr_array(x, y, half_even=True),
            [arith.rshr(a, b, half_even=True) for a, b in pairs],
        ),
    }
    for name, (got, expected) in checks.items():
        assert got.dtype == np.int32, name
        assert got.tolist() == expected, name


@pytest.mark.parametrize("bits", [1, 2, 4, 8, 16, 32])
def test_narrowing(bits: int) -> None:
    values = _random(bits, 300)
    array = np.array(values, dtype=np.int32)
    assert arith.truncate_array(array, bits).tolist() == [arith.truncate(v, bits) for v in values]
    assert arith.saturate_array(array, bits).tolist() == [arith.saturate(v, bits) for v in values]
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    for value in values:
        assert low <= arith.truncate(value, bits) <= high
        assert (arith.truncate(value, bits) - value) % (1 << bits) == 0
        assert arith.saturate(value, bits) == sorted((low, value, high))[1]


def test_gemm_wraps_and_equals_numpy() -> None:
    assert arith.gemm(2**31 - 1, [1], [1]) == -(2**31)
    assert arith.gemm(-(2**31), [-128, 127], [-128, 2]) == -(2**31) + 16384 + 254
    rng = np.random.default_rng(3)
    inputs = rng.integers(-128, 128, (5, 16)).astype(np.int8)
    weights = rng.integers(-128, 128, (7, 16)).astype(np.int8)
    acc = rng.integers(-(2**31), 2**31, (5, 7)).astype(np.int32)
    got = arith.gemm_array(acc, inputs, weights)
    for i in range(5):
        for o in range(7):
            expected = arith.gemm(int(acc[i, o]), inputs[i].tolist(), weights[o].tolist())
            assert got[i, o] == expected
    with pytest.raises(SpecError, match="2 inputs and 1 weights"):
        arith.gemm(0, [1, 2], [3])
