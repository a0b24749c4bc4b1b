# SPDX-License-Identifier: Apache-2.0
"""Scales and zero points of a model, checked."""

from __future__ import annotations

from typing import Any

import numpy as np

from openvta.compiler.errors import ModelError, printable
from openvta.compiler.graph import INT8, RANGES, UINT8, NDArray
from openvta.compiler.importers._values import Const, QConst, Quantization, Unsupported, Value

ACTIVATION_TYPES = (INT8, UINT8)
"""Types a quantized activation may have on the accelerator."""


def constant(name: str, field: str, value: Value | None) -> NDArray | None:
    """Return a constant operand, None if it is absent; Unsupported if it is computed at run time."""
    if value is None:
        return None
    if not isinstance(value, Const):
        raise Unsupported(f"{field} is not a constant")
    return value.array


def check_scales(name: str, field: str, scales: NDArray, *, zero_allowed: bool) -> NDArray:
    """Return scales as 1-D float64; ModelError for NaN, infinite, negative or zero ones, Unsupported for float16."""
    if scales.dtype == np.float16 or scales.dtype.itemsize == 2:
        raise Unsupported(f"{field} has type {scales.dtype}, not float32")
    if scales.dtype != np.float32:
        raise ModelError(name, field, scales.dtype, "must be float32")
    if scales.ndim > 1 or scales.size == 0:
        if scales.size != 1:
            raise Unsupported(f"{field} of shape {list(scales.shape)} (block quantization)")
        scales = scales.reshape(1)
    flat: NDArray = scales.astype(np.float64).reshape(-1)
    for value in flat:
        if not np.isfinite(value) or value < 0 or (value == 0 and not zero_allowed):
            raise ModelError(name, field, value, "must be finite and greater than 0")
    return flat


def activation(name: str, scale: NDArray | None, zero: NDArray | None, default: str) -> Quantization:
    """Return the quantization of an activation from its scale and zero point operands.

    Raises:
        ModelError: a scale that is not finite and positive, or a zero point out of its range.
        Unsupported: more than one scale, or a type that is not int8 or uint8.
    """
    if scale is None:
        raise Unsupported("the scale is not a constant")
    flat = check_scales(name, "scale", scale, zero_allowed=False)
    if flat.size != 1:
        raise Unsupported(f"an activation with {flat.size} scales")
    if zero is None:
        return Quantization(check_type(default), float(flat[0]), 0)
    kind = check_type(zero.dtype.name)
    if zero.size != 1:
        raise Unsupported(f"an activation with {zero.size} zero points")
    return Quantization(kind, float(flat[0]), int(zero.reshape(-1)[0]))


def check_type(kind: str) -> str:
    """Return an activation type, or raise Unsupported."""
    if kind not in ACTIVATION_TYPES:
        raise Unsupported(f"activations of type {kind}, not int8 or uint8")
    return kind


def quantized_constant(name: str, array: NDArray, scale: NDArray | None, zero: NDArray | None, axis: int) -> QConst:
    """Return a dequantized constant.

    Raises:
        ModelError: bad scales, an axis outside the array, zero points of another type, or a count of scales that does
            not fit the axis.
    """
    if not np.issubdtype(array.dtype, np.integer):
        raise ModelError(name, "input", array.dtype, "must be an integer tensor")
    if scale is None:
        raise Unsupported("the scale is not a constant")
    flat = check_scales(name, "scale", scale, zero_allowed=True)
    points = np.zeros(1, np.int64)
    if zero is not None:
        if not np.issubdtype(zero.dtype, np.integer):
            raise ModelError(name, "zero point", zero.dtype, "must be an integer")
        points = zero.astype(np.int64).reshape(-1)
        if zero.dtype != array.dtype:
            low, high = type_range(array.dtype)
            for value in points:
                if not low <= value <= high:
                    raise ModelError(name, "zero point", int(value), f"must be in {low}..{high} ({array.dtype})")
            raise ModelError(name, "zero point type", zero.dtype, f"must be {array.dtype}")
    count = max(flat.size, points.size)
    if count > 1:
        if not -array.ndim <= axis < array.ndim:
            raise ModelError(name, "axis", axis, f"must be in {-array.ndim}..{array.ndim - 1}")
        axis %= array.ndim
        for field, found in (("scale", flat.size), ("zero point", points.size)):
            if found not in (1, array.shape[axis]):
                raise ModelError(name, field, f"{found} entries", f"axis {axis} has {array.shape[axis]} indices")
    else:
        axis = 0
    zero_scale = flat == 0
    if zero_scale.any() and not _zero_where(array, zero_scale, points, axis):
        raise ModelError(name, "scale", 0.0, "is 0 for values that are not; must be finite and greater than 0")
    return QConst(array, flat, points, axis)


def _zero_where(array: NDArray, mask: NDArray, points: NDArray, axis: int) -> bool:
    """Whether every value with a scale of 0 equals its zero point."""
    if mask.size == 1:
        return points.size == 1 and bool((array == points[0]).all())
    lines = np.moveaxis(array, axis, 0).reshape(array.shape[axis], -1).astype(np.int64)
    centred = lines - np.broadcast_to(points, (lines.shape[0],))[:, None]
    return not bool(centred[mask].any())


def type_range(dtype: np.dtype[Any]) -> tuple[int, int]:
    """Smallest and largest value of an integer type."""
    info = np.iinfo(dtype)
    return int(info.min), int(info.max)


def dequantized(value: QConst) -> NDArray:
    """Return the float32 values of a dequantized constant."""
    form = [1] * value.array.ndim
    if value.per_channel:
        form[value.axis] = -1
    result: NDArray = value.corrected().astype(np.float32) * value.scale.astype(np.float32).reshape(form)
    return result


def quantize_constant(
    name: str, array: NDArray, scale: NDArray | None, zero: NDArray | None, axis: int, default: str
) -> NDArray:
    """Return what QuantizeLinear makes of a constant: int8 or uint8, per tensor or per channel."""
    if scale is None:
        raise Unsupported("the scale is not a constant")
    flat = check_scales(name, "scale", scale, zero_allowed=False).astype(np.float32)
    kind = default if zero is None else zero.dtype.name
    if kind not in RANGES:
        raise Unsupported(f"constants quantized to {printable(kind)}")
    if not np.isfinite(array).all():
        raise ModelError(name, "input", "NaN or infinity", "constants must be finite")
    points = np.zeros(1, np.float64) if zero is None else zero.astype(np.float64).reshape(-1)
    form = [1] * array.ndim
    if max(flat.size, points.size) > 1:
        if not -array.ndim <= axis < array.ndim:
            raise ModelError(name, "axis", axis, f"must be in {-array.ndim}..{array.ndim - 1}")
        if {flat.size, points.size} - {1, array.shape[axis]}:
            raise ModelError(name, "scale", f"{flat.size} entries", f"axis has {array.shape[axis]} indices")
        form[axis] = -1
    low, high = RANGES[kind]
    steps = np.rint(array.astype(np.float32) / (flat.reshape(form) if flat.size > 1 else flat[0]))
    moved = steps.astype(np.float64) + (points.reshape(form) if points.size > 1 else points[0])
    result: NDArray = np.clip(moved, low, high).astype(kind)
    return result
