# SPDX-License-Identifier: Apache-2.0
"""The functional simulator's arithmetic against the specification's scalar rules, on corners and on drawn values."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openvta.sim.fsim.arithmetic import alu_function, decode_parameters, keep_low, narrow, requantize, spread
from openvta.spec import AluOpcode, RequantMode
from openvta.spec.arith import RequantParams, alu, requant, saturate, truncate

INT32 = st.integers(-(2**31), 2**31 - 1)
CORNERS = sorted(
    {0, 1, 2, 3, 5, 127, 128, 255, 256, 2**24 - 1, 2**24, 2**24 + 1, 2**30, 2**31 - 1}
    | {-1, -2, -3, -5, -127, -128, -129, -(2**24) - 1, -(2**30), -(2**31) + 1, -(2**31)}
)
AMOUNTS = [*range(-34, 35), 63, 64, 100, -100]
IMMEDIATES = sorted({*range(-33, 34), 127, 128, -128, 32767, -32768, 255, -255, 12345})


def array(values: list[int]) -> np.ndarray:
    return np.array(values, np.int64).astype(np.int32)


@pytest.mark.parametrize("op", AluOpcode)
def test_tensor_alu_on_corners(op: AluOpcode) -> None:
    pairs = list(itertools.product(CORNERS, [*CORNERS, *AMOUNTS]))
    dst, src = array([d for d, _ in pairs]), array([s for _, s in pairs])
    for imm in (0, -0x8000) if op is AluOpcode.RSHR else (0, 77):
        got = alu_function(op, imm, use_imm=False)(dst, src)
        assert got.tolist() == [alu(op, d, s, imm, use_imm=False) for d, s in pairs]


@pytest.mark.parametrize("op", AluOpcode)
def test_immediate_alu_on_corners(op: AluOpcode) -> None:
    immediates = [*range(32), *(n - 0x8000 for n in range(32))] if op is AluOpcode.RSHR else IMMEDIATES
    pairs = list(itertools.product(CORNERS, CORNERS))
    dst, src = array([d for d, _ in pairs]), array([s for _, s in pairs])
    for imm in immediates:
        got = alu_function(op, imm, use_imm=True)(dst, src)
        assert got.tolist() == [alu(op, d, s, imm, use_imm=True) for d, s in pairs], imm


@pytest.mark.parametrize("op", AluOpcode)
def test_alu_never_returns_its_operands(op: AluOpcode) -> None:
    for use_imm in (False, True):
        dst, src = np.zeros(4, np.int32), np.ones(4, np.int32)
        result = alu_function(op, 0, use_imm=use_imm)(dst, src)
        assert not np.shares_memory(result, src), use_imm
        assert not np.shares_memory(result, dst), use_imm


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(list(AluOpcode)), INT32, INT32, st.integers(-(2**15), 2**15 - 1), st.booleans())
def test_alu_on_drawn_values(op: AluOpcode, dst: int, src: int, imm: int, use_imm: bool) -> None:
    got = alu_function(op, imm, use_imm=use_imm)(array([dst]), array([src]))
    assert int(got[0]) == alu(op, dst, src, imm, use_imm=use_imm)


@pytest.mark.parametrize("bits", [1, 2, 4, 8])
def test_narrowing(bits: int) -> None:
    values = [*CORNERS, *range(-300, 300)]
    assert narrow(array(values), bits, saturate=False).tolist() == [truncate(v, bits) for v in values]
    assert narrow(array(values), bits, saturate=True).tolist() == [saturate(v, bits) for v in values]
    assert keep_low(array(values), bits).tolist() == [truncate(v, bits) for v in values]


def one_requant(mode: RequantMode, acc: int, params: RequantParams, unsigned: bool) -> int:
    bias, multiplier, packed = (array([word]) for word in params.words())
    decoded = decode_parameters(mode, bias, multiplier, packed, unsigned=unsigned)
    return int(requantize(array([acc]), decoded)[0])


FLOATS = [0, 1, 0x00400000, 0x3F800000, 0x3E000000, 0x3DCCCCCD, 0x3A83126F, 0x3F7FFFFF, 0x00800000, 0x4B000000]
FLOATS += [0x7F7FFFFF, 0x7F800000, 0x7FC12345, 0x5F000000, 0x70000000, 0xBF800000, 0x33800000]
INTEGERS = [0, 1, 2, 3, 1 << 20, (1 << 20) - 1, (1 << 21) + 1, 1 << 30, (1 << 31) - 1, 0xFFFFFFFF, 1518500250]


@pytest.mark.parametrize("mode", RequantMode)
@pytest.mark.parametrize("unsigned", [False, True])
def test_requant_on_corners(mode: RequantMode, unsigned: bool) -> None:
    multipliers = FLOATS if mode is RequantMode.FLOAT32 else INTEGERS
    shifts = [0, 1, 8, 20, 30, 31, 32, 40, 62, 63]
    limits = [(0, 0, 255), (200, 10, 250), (7, 9, 3)] if unsigned else [(0, -128, 127), (-5, -100, 90), (3, 5, -5)]
    accs = [*CORNERS, 1 << 19, 3 << 18, -(3 << 18), 5 << 30]
    for multiplier, shift, (zero, low, high), bias in itertools.product(
        multipliers, shifts, limits, (0, -77, 2**31 - 1)
    ):
        params = RequantParams(bias, multiplier, shift, zero, low, high)
        words = [array([word]) for word in params.words()]
        decoded = decode_parameters(mode, *words, unsigned=unsigned)
        got = requantize(array(accs), decoded)
        wanted = [requant(mode, int(acc), params) for acc in array(accs)]
        assert got.astype(np.int64).tolist() == wanted, (multiplier, shift, zero, low, high, bias)


@settings(max_examples=400, deadline=None)
@given(
    st.sampled_from(list(RequantMode)),
    INT32,
    INT32,
    st.integers(0, 2**32 - 1),
    st.integers(0, 63),
    st.tuples(*[st.integers(0, 255)] * 3),
    st.booleans(),
)
def test_requant_on_drawn_values(
    mode: RequantMode, acc: int, bias: int, multiplier: int, shift: int, small: tuple[int, int, int], unsigned: bool
) -> None:
    zero, low, high = small if unsigned else (value - 128 for value in small)
    params = RequantParams(bias, multiplier, shift, zero, low, high)
    assert one_requant(mode, acc, params, unsigned) == requant(mode, acc, params)


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from([RequantMode.HALF_UP, RequantMode.HALF_EVEN, RequantMode.FLOOR]),
    st.integers(0, 11),
    st.integers(0, 2**20 - 1),
    st.integers(1, 40),
    st.integers(-300, 300),
    st.booleans(),
)
def test_requant_near_ties(mode: RequantMode, power: int, odd: int, shift: int, wanted: int, above: bool) -> None:
    multiplier = min((odd | 1) << power, 2**31 - 1)
    acc = ((2 * wanted + 1) << max(shift - 1, 0)) // multiplier + above
    acc = max(-(2**31), min(acc, 2**31 - 1))
    params = RequantParams(0, multiplier, shift, 0, -128, 127)
    assert one_requant(mode, acc, params, False) == requant(mode, acc, params)


@settings(max_examples=300, deadline=None)
@given(INT32, st.floats(2.0**-30, 1.0, width=32, allow_nan=False))
def test_float_requant_with_usual_multipliers(acc: int, factor: float) -> None:
    raw = int(np.float32(factor).view(np.uint32))
    params = RequantParams(0, raw, 0, 11, -128, 127)
    assert one_requant(RequantMode.FLOAT32, acc, params, False) == requant(RequantMode.FLOAT32, acc, params)


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from(list(RequantMode)),
    st.lists(st.tuples(INT32, *[st.integers(-128, 127)] * 3), min_size=4, max_size=4),
    st.booleans(),
    st.integers(0, 2**32 - 1),
)
def test_spread_parameters_give_the_same(
    mode: RequantMode, sets: list[tuple[int, int, int, int]], same: bool, seed: int
) -> None:
    """Two parameter elements of two lanes, each for five points."""
    used = sets[:1] * 4 if same else sets
    multiplier = 0x3A83126F if mode is RequantMode.FLOAT32 else 12345
    params = [RequantParams(bias, multiplier, 20, zero, low, high) for bias, zero, low, high in used]
    words = [array([p.words()[k] for p in params]).reshape(1, 2, 1, 2) for k in range(3)]
    decoded = decode_parameters(mode, words[0], words[1], words[2], unsigned=False)
    accs = np.random.default_rng(seed).integers(-(2**31), 2**31, (3, 2, 5, 2)).astype(np.int32)
    accs[0] //= 1 << 16
    got = requantize(accs, spread(decoded, (1, 2, 5, 2))).astype(np.int64)
    assert np.array_equal(got, requantize(accs, decoded).astype(np.int64))
    assert int(got[0, 1, 4, 1]) == requant(mode, int(accs[0, 1, 4, 1]), params[3])
