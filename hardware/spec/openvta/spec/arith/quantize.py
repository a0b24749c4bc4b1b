# SPDX-License-Identifier: Apache-2.0
"""Quantization of float32 values and back, by the rule of ONNX QuantizeLinear and DequantizeLinear."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from openvta.spec.errors import SpecError


def quantize_array(values: npt.ArrayLike, scale: float, zero_point: int, low: int, high: int) -> npt.NDArray[np.int32]:
    """Return saturate(round_half_even(values / scale) + zero_point) to ``low..high`` as int32.

    The division is in float32. Infinities saturate.

    Raises:
        SpecError: a value is not a number.
    """
    floats = np.asarray(values, dtype=np.float32)
    if np.isnan(floats).any():
        raise SpecError(f"quantize: {int(np.isnan(floats).sum())} of {floats.size} values are NaN: give numbers")
    with np.errstate(over="ignore"):
        steps = np.rint(floats / np.float32(scale)).astype(np.float64)
    result: npt.NDArray[np.int32] = np.clip(steps + zero_point, low, high).astype(np.int32)
    return result


def dequantize_array(values: npt.NDArray[np.integer[Any]], scale: float, zero_point: int) -> npt.NDArray[np.float32]:
    """Return (values - zero_point) * scale, in float32."""
    result: npt.NDArray[np.float32] = (values.astype(np.int32) - np.int32(zero_point)).astype(np.float32)
    return result * np.float32(scale)
