# SPDX-License-Identifier: Apache-2.0
"""Weights as block x block tiles: dense, grouped (depthwise is the extreme) and one tile for all positions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from openvta.compiler.errors import ModelError

Int8 = npt.NDArray[np.int8]


def blocks(channels: int, block: int) -> int:
    """Return how many blocks of ``block`` lanes hold ``channels``."""
    return -(-channels // block)


@dataclass(frozen=True, eq=False)
class TileBank:
    """The weight tiles of a layer, by output block, input block and kernel position.

    ``tiles`` int8 ``[CO, span, KH, KW, block out, block in]``; output block ``co`` reads the input blocks
    ``first[co] .. first[co] + count[co] - 1``, stored at ``tiles[co, ci - first[co]]``. With ``uniform`` there is a
    single tile for every position and output block ``co`` reads input block ``co``.
    """

    tiles: Int8
    first: tuple[int, ...]
    count: tuple[int, ...]
    uniform: bool = False

    def span(self, low: int, high: int) -> tuple[int, int]:
        """Return the half-open range of input blocks that output blocks ``low .. high - 1`` read."""
        if self.uniform:
            return low, high
        start = min(self.first[low:high])
        stop = max(f + c for f, c in zip(self.first[low:high], self.count[low:high], strict=True))
        return start, stop

    def reads(self, co: int, low: int, high: int) -> tuple[int, int]:
        """Return the part of input blocks ``low .. high - 1`` that output block ``co`` reads (may be empty)."""
        if self.uniform:
            return max(low, co), min(high, co + 1)
        return max(low, self.first[co]), min(high, self.first[co] + self.count[co])


def _check_range(node: str, weight: npt.NDArray[Any], bits: int) -> None:
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    if weight.size and (int(weight.min()) < low or int(weight.max()) > high):
        bad = int(weight.min()) if int(weight.min()) < low else int(weight.max())
        raise ModelError(node, "weight", bad, f"must be in {low}..{high}: the configuration has {bits}-bit weights")


def dense_bank(node: str, weight: npt.NDArray[Any], block: int, bits: int) -> TileBank:
    """Return the tiles of ``weight [O, C, KH, KW]``, channels padded with zero to whole blocks.

    Raises:
        ModelError: a weight outside the range of ``bits`` bits.
    """
    return grouped_bank(node, weight, 1, block, bits)


def grouped_bank(node: str, weight: npt.NDArray[Any], groups: int, block: int, bits: int) -> TileBank:
    """Return the tiles of ``weight [O, C / groups, KH, KW]``; output block by input block, zero outside the groups.

    Raises:
        ModelError: a weight outside the range of ``bits`` bits.
    """
    _check_range(node, weight, bits)
    outs, per_in, kh, kw = weight.shape
    per_out = outs // groups
    rows = blocks(outs, block)
    first, count = [], []
    for co in range(rows):
        last = min(outs, (co + 1) * block) - 1
        low = (co * block // per_out) * per_in // block
        high = ((last // per_out + 1) * per_in - 1) // block
        first.append(low)
        count.append(high - low + 1)
    span = max(count)
    if groups == 1:
        padded = np.zeros((rows * block, span * block, kh, kw), np.int8)
        padded[:outs, :per_in] = weight
        tiles = padded.reshape(rows, block, span, block, kh, kw).transpose(0, 2, 4, 5, 1, 3)
        return TileBank(np.ascontiguousarray(tiles), tuple(first), tuple(count))
    tiles = np.zeros((rows, span, kh, kw, block, block), np.int8)
    output = np.arange(outs)
    start = output // per_out * per_in
    for offset in range(per_in):
        channel = start + offset
        row = output // block
        place = channel // block - np.asarray(first)[row]
        tiles[row, place, :, :, output % block, channel % block] = weight[:, offset]
    return TileBank(tiles, tuple(first), tuple(count))


def diagonal_tile(node: str, factor: int, block: int, bits: int) -> Int8:
    """Return the tile that multiplies every lane by ``factor``.

    Raises:
        ModelError: a factor outside the range of ``bits`` bits.
    """
    tile = np.eye(block, dtype=np.int64) * factor
    _check_range(node, tile, bits)
    return tile.astype(np.int8)


def uniform_bank(node: str, factor: int, block: int, bits: int) -> TileBank:
    """Return a bank of one diagonal tile: every lane times ``factor``, at every kernel position.

    Raises:
        ModelError: a factor outside the range of ``bits`` bits.
    """
    tile = diagonal_tile(node, factor, block, bits)
    return TileBank(tile[None, None, None, None], (), (), uniform=True)


def digits(values: tuple[int, ...], bits: int) -> tuple[tuple[int, ...], ...]:
    """Write integers as balanced digits of ``bits`` bits: ``value = sum(digit[k] << (bits * k))``, lowest first.

    All values get the same number of digits (at least one); every digit is in -2^(bits-1) .. 2^(bits-1) - 1.
    """
    rest = list(values)
    found: list[tuple[int, ...]] = []
    half = 1 << (bits - 1)
    while not found or any(rest):
        row = [((r + half) & ((1 << bits) - 1)) - half for r in rest]
        found.append(tuple(row))
        rest = [(r - d) >> bits for r, d in zip(rest, row, strict=True)]
    return tuple(found)
