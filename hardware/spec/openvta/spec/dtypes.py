# SPDX-License-Identifier: Apache-2.0
"""Integer data types: range, numpy container, and packing of narrow lanes into bytes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from openvta.spec.errors import SpecError


@dataclass(frozen=True)
class DType:
    """A two's complement or unsigned integer of 1, 2, 4, 8, 16 or 32 bits."""

    bits: int
    signed: bool = True

    def __post_init__(self) -> None:
        if self.bits not in (1, 2, 4, 8, 16, 32):
            raise SpecError(f"integer type of {self.bits} bits: must be 1, 2, 4, 8, 16 or 32")

    @property
    def name(self) -> str:
        """Canonical name, such as INT8 or UINT4."""
        return f"{'' if self.signed else 'U'}INT{self.bits}"

    @property
    def minimum(self) -> int:
        """Smallest value."""
        return -(1 << (self.bits - 1)) if self.signed else 0

    @property
    def maximum(self) -> int:
        """Largest value."""
        return (1 << (self.bits - 1)) - 1 if self.signed else (1 << self.bits) - 1

    @property
    def container(self) -> np.dtype[np.generic]:
        """Smallest numpy type that holds every value."""
        return np.dtype(f"{'i' if self.signed else 'u'}{max(1, self.bits // 8)}")

    @property
    def hls_name(self) -> str:
        """The type's name in HLS C++."""
        return f"ap_{'' if self.signed else 'u'}int<{self.bits}>"

    def pack(self, values: npt.ArrayLike) -> npt.NDArray[np.uint8]:
        """Pack lanes ``[..., n]`` into little-endian bytes ``[..., n * bits / 8]``; lane 0 in the lowest bits.

        Raises:
            SpecError: a value outside the type's range, or lanes that do not fill whole bytes.
        """
        array = np.asarray(values)
        if array.size and (int(array.min()) < self.minimum or int(array.max()) > self.maximum):
            bad = int(array.min()) if int(array.min()) < self.minimum else int(array.max())
            raise SpecError(f"value {bad} does not fit {self.name} ({self.minimum}..{self.maximum})")
        if array.shape[-1] * self.bits % 8:
            raise SpecError(f"{array.shape[-1]} lanes of {self.bits} bits do not fill whole bytes")
        if self.bits >= 8:
            packed = np.ascontiguousarray(array.astype(self.container.newbyteorder("<")))
            return packed.view(np.uint8).reshape(*array.shape[:-1], -1)
        per_byte = 8 // self.bits
        lanes = (array.astype(np.int16) & ((1 << self.bits) - 1)).astype(np.uint8)
        lanes = lanes.reshape(*array.shape[:-1], -1, per_byte)
        shifts = np.arange(per_byte, dtype=np.uint8) * np.uint8(self.bits)
        packed_low: npt.NDArray[np.uint8] = np.bitwise_or.reduce(lanes << shifts, axis=-1).astype(np.uint8)
        return packed_low

    def unpack(self, data: npt.NDArray[np.uint8]) -> npt.NDArray[np.generic]:
        """Inverse of :meth:`pack`: bytes ``[..., m]`` to lanes ``[..., m * 8 / bits]`` in the container type."""
        data = np.ascontiguousarray(data)
        if self.bits >= 8:
            return data.view(self.container.newbyteorder("<")).astype(self.container)
        per_byte = 8 // self.bits
        shifts = np.arange(per_byte, dtype=np.uint8) * np.uint8(self.bits)
        lanes = (data[..., None] >> shifts) & np.uint8((1 << self.bits) - 1)
        lanes = lanes.reshape(*data.shape[:-1], -1)
        if not self.signed:
            return lanes
        sign = np.uint8(1 << (self.bits - 1))
        return ((lanes ^ sign).astype(np.int8) - np.int8(sign)).astype(np.int8)
