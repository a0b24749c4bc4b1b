# SPDX-License-Identifier: Apache-2.0
"""The hash of what an instruction wrote, the same on every backend whatever the order in which cells were written.

A cell is an element of a scratchpad, or a byte of device memory. Its final value is cut into 32-bit words, the last one
filled up with zeros. Every word gives ``mix(mix(key + STEP) ^ (value * STEP))`` with ``key = memory << 60 ^ word << 48 ^
address``, and the hash is the sum over all words. All arithmetic is modulo 2^64. Nothing written: zero.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

HASH_NAME = "cells-mix-64"
DEVICE_MEMORY = 15
"""The memory number that stands for device memory."""
MEMORY_SHIFT = 60
WORD_SHIFT = 48
STEP = 0x9E37_79B9_7F4A_7C15
FACTOR_1 = 0xBF58_476D_1CE4_E5B9
FACTOR_2 = 0x94D0_49BB_1331_11EB
SHIFTS = (30, 27, 31)
_MASK = (1 << 64) - 1


def mix(value: int) -> int:
    """A permutation of 64-bit words in which every bit of the result depends on every bit given."""
    value = ((value ^ value >> SHIFTS[0]) * FACTOR_1) & _MASK
    value = ((value ^ value >> SHIFTS[1]) * FACTOR_2) & _MASK
    return value ^ value >> SHIFTS[2]


def word_hash(memory: int, address: int, word: int, value: int) -> int:
    """What one 32-bit word of a cell adds to the hash."""
    key = (memory << MEMORY_SHIFT ^ word << WORD_SHIFT ^ address) & _MASK
    return mix(mix((key + STEP) & _MASK) ^ (value * STEP & _MASK))


def cells_hash(memory: int, addresses: npt.NDArray[np.uint64], values: npt.NDArray[np.uint8]) -> int:
    """The hash of distinct cells of one memory: ``addresses`` [n], ``values`` [n, bytes of a cell]."""
    count, size = values.shape
    if not count:
        return 0
    words = -(-size // 4)
    padded = np.zeros((count, 4 * words), np.uint8)
    padded[:, :size] = values
    place = np.arange(words, dtype=np.uint64) << np.uint64(WORD_SHIFT)
    key = addresses.astype(np.uint64)[:, None] ^ place ^ np.uint64(memory << MEMORY_SHIFT)
    value = padded.view("<u4").astype(np.uint64)
    mixed = _mix(_mix(key + np.uint64(STEP)) ^ (value * np.uint64(STEP)))
    return int(mixed.sum(dtype=np.uint64))


def _mix(value: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    first, second, third = (np.uint64(shift) for shift in SHIFTS)
    value = (value ^ value >> first) * np.uint64(FACTOR_1)
    value = (value ^ value >> second) * np.uint64(FACTOR_2)
    return value ^ value >> third
