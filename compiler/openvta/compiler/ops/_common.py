# SPDX-License-Identifier: Apache-2.0
"""Helpers the operators share: geometry of windows, checks, exact sums of products."""

from __future__ import annotations

from typing import Any

import numpy as np

from openvta.compiler.errors import GraphError
from openvta.compiler.graph import FLOAT32, INT8, UINT8, NDArray, Tensor

CHUNK_BYTES = 1 << 25
"""Bytes of unfolded windows the numpy reference makes at a time."""


def window_output(size: int, kernel: int, stride: int, before: int, after: int) -> int:
    """Number of positions of a window of ``kernel`` over ``size`` values with padding; below 1 if it does not fit."""
    return (size + before + after - kernel) // stride + 1


def check_window(
    node: str,
    source: Tensor,
    target: Tensor,
    kernel: tuple[int, int],
    strides: tuple[int, int],
    pads: tuple[int, int, int, int],
) -> None:
    """Raise GraphError unless kernel, strides and pads are legal and give ``target``'s height and width."""
    for label, values, least, count in (
        ("kernel", kernel, 1, 2),
        ("strides", strides, 1, 2),
        ("pads", pads, 0, 4),
    ):
        if len(values) != count or any(v < least for v in values):
            raise GraphError(node, label, values, f"needs {count} integers >= {least}")
    rank(node, "input", source, 4)
    rank(node, "output", target, 4)
    top, left, bottom, right = pads
    height = window_output(source.shape[2], kernel[0], strides[0], top, bottom)
    width = window_output(source.shape[3], kernel[1], strides[1], left, right)
    if (height, width) != target.shape[2:]:
        raise GraphError(node, "output shape", target.shape, f"height and width must be {height} x {width}")


def rank(node: str, label: str, tensor: Tensor, wanted: int) -> None:
    """Raise GraphError unless a tensor has ``wanted`` dimensions."""
    if len(tensor.shape) != wanted:
        raise GraphError(node, f"{label} shape", tensor.shape, f"must have {wanted} dimensions")


def eight_bit(node: str, label: str, tensor: Tensor) -> None:
    """Raise GraphError unless a tensor is int8 or uint8."""
    if tensor.dtype not in (INT8, UINT8):
        raise GraphError(node, f"{label} dtype", tensor.dtype, "must be int8 or uint8")


def floating(node: str, label: str, tensor: Tensor) -> None:
    """Raise GraphError unless a tensor is float32."""
    if tensor.dtype != FLOAT32:
        raise GraphError(node, f"{label} dtype", tensor.dtype, "must be float32")


def same_batch(node: str, source: Tensor, target: Tensor) -> None:
    """Raise GraphError unless both tensors have the same N."""
    if source.shape[0] != target.shape[0]:
        raise GraphError(node, "output shape", target.shape, f"N must be {source.shape[0]}")


def same_quantization(node: str, source: Tensor, target: Tensor) -> None:
    """Raise GraphError unless both tensors have the same type, scale and zero point."""
    mine = (source.dtype, source.scale, source.zero_point)
    other = (target.dtype, target.scale, target.zero_point)
    if mine != other:
        raise GraphError(node, "output quantization", other, f"must be the input's {mine}")


def padded(values: NDArray, pads: tuple[int, int, int, int], fill: int) -> NDArray:
    """Return ``[N, C, H, W]`` with ``(top, left, bottom, right)`` rows and columns of ``fill`` around it."""
    top, left, bottom, right = pads
    if not any(pads):
        return values
    return np.pad(values, ((0, 0), (0, 0), (top, bottom), (left, right)), constant_values=fill)


def windows(values: NDArray, kernel: tuple[int, int], strides: tuple[int, int]) -> NDArray:
    """Return the view ``[N, C, OH, OW, KH, KW]`` of all windows of ``[N, C, H, W]``."""
    view = np.lib.stride_tricks.sliding_window_view(values, kernel, axis=(2, 3))
    return view[:, :, :: strides[0], :: strides[1]]


def exact_float(bound: int) -> type[np.floating[Any]]:
    """Return the float type in which integer sums of magnitude up to ``bound`` are exact in any order."""
    return np.float32 if bound < 1 << 24 else np.float64


def matmul_type(weights: NDArray, largest: int) -> type[np.floating[Any]]:
    """Return the float type in which ``values [..., K] @ weights [K, M]`` is exact, values up to +-``largest``.

    Sums of 2^53 or more would not be exact in float64, but they need a K of more than 2^37 at 8 bits.
    """
    return exact_float(largest * int(np.abs(weights.astype(np.int64)).sum(axis=0).max(initial=0)))
