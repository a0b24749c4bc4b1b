# SPDX-License-Identifier: Apache-2.0
"""Device memory while a program is made: the data arena, micro-ops and weight tiles, equal contents stored once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from openvta.compiler.errors import CompileError
from openvta.spec.config import HardwareConfig

Uint8 = npt.NDArray[np.uint8]
ADDRESS_LIMIT = 1 << 32


@dataclass(frozen=True)
class Plane:
    """A tensor in device memory: elements ``[blocks][height][width]`` from data element ``base``.

    An element holds ``batch x block`` int8 lanes: one row for each image, one lane for each channel of a block.
    """

    base: int
    channels: int
    blocks: int
    height: int
    width: int

    @property
    def size(self) -> int:
        """Elements of the tensor."""
        return self.blocks * self.height * self.width


class Arena:
    """A growing byte region with an optional table of what is already in it."""

    def __init__(self, name: str, element_bytes: int) -> None:
        self.name = name
        self.element_bytes = element_bytes
        self.size = 0
        self.contents: list[tuple[int, bytes]] = []
        self._known: dict[bytes, int] = {}

    def reserve(self, count: int, element_bytes: int | None = None) -> int:
        """Reserve ``count`` elements and return the first one's number, counted in elements of that size.

        Raises:
            CompileError: the region grows beyond 32-bit element addresses.
        """
        unit = element_bytes or self.element_bytes
        start = -(-self.size // unit)
        self.size = (start + count) * unit
        if self.size > ADDRESS_LIMIT:
            raise CompileError(
                f"device memory: {self.name} region = {self.size} bytes: at most {ADDRESS_LIMIT}; use a smaller model"
            )
        return start

    def store(self, data: bytes, element_bytes: int | None = None) -> int:
        """Place ``data`` (whole elements) and return its first element; equal data is stored once."""
        unit = element_bytes or self.element_bytes
        known = self._known.get(data)
        if known is not None and known % unit == 0:
            return known // unit
        start = self.reserve(len(data) // unit, unit)
        self._known[data] = start * unit
        self.contents.append((start * unit, data))
        return start

    def bytes(self) -> Uint8:
        """Return the region's initial content (zero where nothing was placed)."""
        image = np.zeros(self.size, np.uint8)
        for offset, data in self.contents:
            image[offset : offset + len(data)] = np.frombuffer(data, np.uint8)
        return image


class Image:
    """The regions of one bundle: ``data`` (tensors, constants), ``wgt`` and ``uop``."""

    def __init__(self, config: HardwareConfig) -> None:
        self.config = config
        self.data = Arena("data", config.inp_bytes)
        self.wgt = Arena("wgt", config.wgt_bytes)
        self.uop = Arena("uop", config.uop_bytes)

    def plane(self, channels: int, height: int, width: int) -> Plane:
        """Reserve a tensor of ``channels x height x width`` for a batch of images."""
        blocks = -(-channels // self.config.block)
        base = self.data.reserve(blocks * height * width)
        return Plane(base, channels, blocks, height, width)

    def constant_element(self, value: int) -> int:
        """Return the number of a data element whose lanes all hold the int8 ``value``."""
        return self.data.store(np.full(self.config.inp_bytes, value, np.int8).tobytes())
