# SPDX-License-Identifier: Apache-2.0
"""From scales to hardware rules: the requantization of every kind of node."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from openvta.compiler.errors import ModelError
from openvta.compiler.graph import COEFFICIENT_BITS, RANGES, UINT8, Array, NDArray, Requant, Tensor
from openvta.compiler.importers._values import Const, QConst, Quantization, Unsupported
from openvta.spec.arith import (
    MAX_SHIFT,
    MULTIPLIER_BITS,
    Scaling,
    add_coefficients,
    choose_float32,
    choose_powers,
    choose_rational,
)
from openvta.spec.errors import SpecError
from openvta.spec.isa import RequantMode

SAME_SCALE = 1e-5
"""Relative difference up to which a bias scale counts as input scale * weight scale (float32 products differ so)."""


def build(rules: list[Scaling], ratios: list[float], q: Quantization) -> Requant:
    """Return the requantization made of one rule for each channel (or one for all), over the type's full range."""
    low, high = RANGES[q.dtype]
    return Requant(
        mode=rules[0].mode,
        ratio=Array(ratios, np.float64),
        multiplier=Array([r.multiplier for r in rules], np.uint32),
        shift=Array([r.shift for r in rules], np.uint8),
        zero_point=q.zero_point,
        low=low,
        high=high,
        unsigned=q.dtype == UINT8,
        exact=all(r.exact for r in rules),
    )


def layer_requant(input_scale: float, weight_scales: NDArray, q: Quantization) -> Requant:
    """Return the rule of a convolution or dense layer, one parameter set for each output channel.

    Half-even shifts where every channel's ratio is a power of two (or zero), else float32 multipliers computed as
    onnxruntime does: input scale * weight scale / output scale, each step in float32.

    Raises:
        Unsupported: a ratio beyond what the hardware can multiply with.
    """
    exact = [Fraction(input_scale) * Fraction(float(w)) / Fraction(q.scale) for w in weight_scales]
    ratios = [float(r) for r in exact]
    if all(_power_or_zero(r) for r in exact):
        small = Fraction(1, 1 << MAX_SHIFT)
        kept = [r if r >= small else 0.0 for r in ratios]
        if max(kept) < 2.0 ** (MULTIPLIER_BITS - 1):
            return build(choose_powers(kept), ratios, q)
    with np.errstate(over="ignore", under="ignore"):
        product = np.float32(input_scale) * weight_scales.astype(np.float32)
        singles = product / np.float32(q.scale)
    try:
        return build(choose_float32([float(s) for s in singles]), ratios, q)
    except SpecError as error:
        raise Unsupported(f"input scale * weight scale / output scale out of range ({error})") from None


def _power_or_zero(value: Fraction) -> bool:
    top, bottom = value.numerator, value.denominator
    return value == 0 or (top & (top - 1) == 0 and bottom & (bottom - 1) == 0)


def single_requant(ratio: Fraction, reach: int, q: Quantization) -> Requant:
    """Return the rule for accumulators up to +-``reach`` times one exactly known ratio.

    Raises:
        Unsupported: the ratio is too large for the hardware.
    """
    try:
        rule = choose_rational(ratio, reach)
    except SpecError as error:
        raise Unsupported(str(error)) from None
    return build([rule], [float(ratio)], q)


def add_requant(a: Tensor, b: Tensor, q: Quantization) -> tuple[tuple[int, int], Requant]:
    """Return the coefficients and the rule of an addition.

    Raises:
        Unsupported: input scales so much larger than the output's that the sum does not fit 32 bits.
    """
    ratios = (a.scale / q.scale, b.scale / q.scale)
    reach = (largest(a), largest(b))
    found = add_coefficients(ratios, reach, COEFFICIENT_BITS)
    if found is None:
        raise Unsupported(f"input scales {a.scale} and {b.scale} are too large for an output scale of {q.scale}")
    pair, shift, exact = found
    rule = Scaling(RequantMode.HALF_EVEN, 1, shift, exact)
    return pair, build([rule], [2.0**-shift], q)


def largest(tensor: Tensor) -> int:
    """Largest magnitude of a tensor's integers without their zero point."""
    low, high = tensor.value_range
    return max(high - tensor.zero_point, tensor.zero_point - low)


def layer_weights(name: str, weight: QConst) -> tuple[Array, Array]:
    """Return weights with the zero point subtracted (int8, or int16 if they do not fit) and scales ``[O]``.

    ``weight.array`` has its output channels first.

    Raises:
        Unsupported: weights wider than 8 bits.
    """
    if weight.array.dtype.itemsize > 1:
        raise Unsupported(f"weights of type {weight.array.dtype}, not int8 or uint8")
    if weight.per_channel and weight.axis != 0:
        raise Unsupported(f"weights with scales along axis {weight.axis}, not along the output channels")
    wide = weight.corrected()
    fits = int(wide.min(initial=0)) >= -128 and int(wide.max(initial=0)) <= 127
    scales = np.broadcast_to(weight.scale, (weight.array.shape[0],))
    return Array(wide, np.int8 if fits else np.int16), Array(scales, np.float64)


def layer_bias(name: str, bias: Const | QConst | None, input_scale: float, scales: NDArray) -> tuple[Array, float]:
    """Return the bias as int32 ``[O]`` in units of input scale * weight scale, and the largest rounding in those units.

    Raises:
        ModelError: a bias of the wrong shape, not finite, or beyond int32 in its units.
        Unsupported: a bias for a channel whose weight scale is zero.
    """
    count = scales.size
    if bias is None:
        return Array(np.zeros(count), np.int32), 0.0
    units = input_scale * scales
    integers = bias.corrected().reshape(-1) if isinstance(bias, QConst) else None
    if isinstance(bias, QConst) and integers is not None:
        own = np.broadcast_to(bias.scale, integers.shape)
        if integers.size == count and _close(own, units):
            return _int32(name, integers.astype(np.float64), units), 0.0
        real = integers * own
    else:
        real = bias.array.astype(np.float64).reshape(-1)
    if real.size == 1:
        real = np.broadcast_to(real, (count,))
    if real.size != count:
        raise ModelError(name, "bias", f"{real.size} values", f"must have {count}, one for each output channel")
    if not np.isfinite(real).all():
        raise ModelError(name, "bias", "NaN or infinity", "must be finite")
    if (real[units == 0] != 0).any():
        raise Unsupported("a bias in a channel whose weight scale is 0")
    steps = np.divide(real, units, out=np.zeros(count), where=units != 0)
    rounded = np.rint(steps)
    return _int32(name, rounded, units), float(np.abs(steps - rounded).max(initial=0.0))


def _close(own: NDArray, units: NDArray) -> bool:
    return bool((np.abs(own - units) <= SAME_SCALE * units).all())


def _int32(name: str, values: NDArray, units: NDArray) -> Array:
    for value, unit in zip(values, units, strict=True):
        if not -(2**31) <= value < 2**31:
            limit = "must fit 32 bits in units of input scale * weight scale: use a larger weight scale"
            raise ModelError(name, "bias", f"{value:.6g} * {unit:.6g}", limit)
    return Array(values, np.int32)


def check_bound(weight: NDArray, bias: NDArray, reach: int) -> None:
    """Raise Unsupported if some accumulator could leave int32; ``reach`` bounds the inputs without zero point."""
    sums = np.abs(weight.reshape(weight.shape[0], -1).astype(np.int64)).sum(axis=1) * reach
    bound = int((sums + np.abs(bias.astype(np.int64))).max(initial=0))
    if bound >= 1 << 31:
        raise Unsupported(f"an accumulator may reach {bound}, limit 2^31 - 1")
