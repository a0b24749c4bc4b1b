# SPDX-License-Identifier: Apache-2.0
"""Device memory shared by the simulators: byte-addressed, 64-bit addresses, sparse regions.

Several images of the same stream can run side by side: a region then holds one copy of its bytes per image as
soon as they may differ, and a single one before.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from openvta.sim.errors import BusFault, MemoryLimitError

Bytes = npt.NDArray[np.uint8]

ADDRESS_MASK = (1 << 64) - 1
FIRST_ADDRESS = 0x1000
"""Lowest address :meth:`DeviceMemory.allocate` gives; address 0 is never valid unless mapped on purpose."""
PAGE_BYTES = 4096
MAX_REGION_BYTES = 1 << 36


@dataclass(frozen=True)
class Refusal:
    """``nbytes`` from ``address`` that answer the accelerator's reads (or its writes) with an error."""

    address: int
    nbytes: int
    write: bool


@dataclass(eq=False)
class Region:
    """Consecutive bytes from ``base``. ``data`` is uint8 ``[copies, size]``; ``written`` bool ``[size]``."""

    base: int
    data: Bytes
    written: npt.NDArray[np.bool_]

    @property
    def size(self) -> int:
        """Bytes in the region."""
        return int(self.data.shape[1])

    @property
    def end(self) -> int:
        """Address after the last byte."""
        return self.base + self.size


class DeviceMemory:
    """Regions of bytes; whatever lies outside them is a bus fault.

    Args:
        images: how many images run side by side.
    """

    def __init__(self, images: int = 1) -> None:
        if images < 1:
            raise MemoryLimitError(f"images = {images}: must be at least 1")
        self.images = images
        self.layout = 0
        """Changes whenever a region comes, goes or gets copies: cached views are then stale."""
        self.refusals: tuple[Refusal, ...] = ()
        """See :meth:`refuse`."""
        self._regions: list[Region] = []
        self._bases: list[int] = []

    # regions -------------------------------------------------------------------------------------

    def map(self, address: int, nbytes: int) -> None:
        """Make ``nbytes`` at a fixed address valid; contents are zero and count as never written.

        Raises:
            MemoryLimitError: a bad size, an address beyond 64 bits, or overlap with another region.
        """
        if not 0 < nbytes <= MAX_REGION_BYTES:
            raise MemoryLimitError(f"region of {nbytes} bytes: must be 1..{MAX_REGION_BYTES}")
        if address < 0 or address + nbytes - 1 > ADDRESS_MASK:
            raise MemoryLimitError(f"region at {address:#x} of {nbytes} bytes: leaves the 64-bit address space")
        at = bisect_right(self._bases, address)
        before = self._regions[at - 1] if at else None
        after = self._regions[at] if at < len(self._regions) else None
        for other in (before, after):
            if other is not None and address < other.end and other.base < address + nbytes:
                raise MemoryLimitError(
                    f"region {address:#x}..{address + nbytes:#x} overlaps {other.base:#x}..{other.end:#x}"
                )
        region = Region(address, np.zeros((1, nbytes), np.uint8), np.zeros(nbytes, np.bool_))
        self._regions.insert(at, region)
        self._bases.insert(at, address)
        self.layout += 1

    def allocate(self, nbytes: int, alignment: int = PAGE_BYTES) -> int:
        """Make ``nbytes`` valid at a free aligned address and return it (first fit, never below 4096).

        Raises:
            MemoryLimitError: a bad size, or an alignment that is not a power of two.
        """
        if alignment < 1 or alignment & (alignment - 1):
            raise MemoryLimitError(f"alignment = {alignment}: must be a power of two")
        if not 0 < nbytes <= MAX_REGION_BYTES:
            raise MemoryLimitError(f"region of {nbytes} bytes: must be 1..{MAX_REGION_BYTES}")
        address = _aligned(FIRST_ADDRESS, alignment)
        for region in self._regions:
            if address + nbytes <= region.base:
                break
            address = max(address, _aligned(region.end, alignment))
        self.map(address, nbytes)
        return address

    def free(self, address: int) -> None:
        """Drop the region that starts at ``address``.

        Raises:
            MemoryLimitError: none does.
        """
        at = bisect_right(self._bases, address) - 1
        if at < 0 or self._bases[at] != address:
            raise MemoryLimitError(f"no region starts at {address:#x}")
        del self._regions[at], self._bases[at]
        self.layout += 1

    def regions(self) -> tuple[tuple[int, int], ...]:
        """(address, bytes) of every region, by address."""
        return tuple((region.base, region.size) for region in self._regions)

    def refuse(self, *refusals: Refusal) -> None:
        """Answer the accelerator with an error in these ranges, and in no others; the host still reaches them.

        Raises:
            MemoryLimitError: an empty range, or one beyond 64 bits.
        """
        for each in refusals:
            if each.nbytes < 1 or each.address < 0 or each.address + each.nbytes - 1 > ADDRESS_MASK:
                raise MemoryLimitError(
                    f"refusal at {each.address:#x} of {each.nbytes} bytes: must be 1 or more, within 64-bit addresses"
                )
        self.refusals = refusals
        self.layout += 1

    def check(self, address: int, nbytes: int, *, write: bool) -> None:
        """An access of the accelerator.

        Raises:
            BusFault: part of the range is refused.
        """
        found = [
            max(address, each.address)
            for each in self.refusals
            if each.write == write and address < each.address + each.nbytes and each.address < address + nbytes
        ]
        if found:
            raise BusFault(address, nbytes, min(found), write=write)

    # host access ---------------------------------------------------------------------------------

    def read(self, address: int, nbytes: int, image: int = 0) -> Bytes:
        """A copy of bytes ``[nbytes]`` of one image.

        Raises:
            BusFault: part of it is not mapped.
        """
        result = np.empty(nbytes, np.uint8)
        for region, low, high, done in self._pieces(address, nbytes, write=False):
            result[done : done + high - low] = region.data[min(image, len(region.data) - 1), low:high]
        return result

    def write(self, address: int, data: npt.ArrayLike | bytes | bytearray | memoryview) -> None:
        """Write bytes (any array; its memory in C order) for every image.

        Raises:
            BusFault: part of it is not mapped; nothing is written then.
        """
        flat = _as_bytes(data)
        for region, low, high, done in list(self._pieces(address, flat.size, write=True)):
            region.data[:, low:high] = flat[done : done + high - low]
            region.written[low:high] = True

    def write_images(self, address: int, data: Bytes) -> None:
        """Write different bytes for every image: uint8 ``[images, nbytes]``.

        Raises:
            BusFault: part of it is not mapped.
            MemoryLimitError: the first axis is not the number of images.
        """
        if data.ndim != 2 or len(data) != self.images:
            raise MemoryLimitError(f"data of shape {data.shape}: must be [{self.images}, bytes]")
        for region, low, high, done in list(self._pieces(address, int(data.shape[1]), write=True)):
            self._privatise(region)
            region.data[:, low:high] = data[:, done : done + high - low]
            region.written[low:high] = True

    def read_images(self, address: int, nbytes: int) -> Bytes:
        """A copy of the same bytes of every image: uint8 ``[images, nbytes]``.

        Raises:
            BusFault: part of it is not mapped.
        """
        result = np.empty((self.images, nbytes), np.uint8)
        for region, low, high, done in self._pieces(address, nbytes, write=False):
            result[:, done : done + high - low] = region.data[:, low:high]
        return result

    def first_unwritten(self, address: int, nbytes: int) -> int | None:
        """The first mapped byte of the range that nobody ever wrote, or None."""
        for region, low, high, _ in self._mapped(address, nbytes):
            mask = region.written[low:high]
            if not mask.all():
                return region.base + low + int(np.argmin(mask))
        return None

    # strided access of the units -----------------------------------------------------------------

    def rows(self, address: int, rows: int, row_bytes: int, pitch: int, *, write: bool) -> Bytes | None:
        """A view of rows inside one region: uint8 ``[copies, rows, row_bytes]``; None where they span several regions.

        ``copies`` is 1, or the number of images where their bytes may differ (always for writes).

        Raises:
            BusFault: part of it is not mapped, or refused.
        """
        if self.refusals:
            for row in range(rows):
                self.check((address + row * pitch) & ADDRESS_MASK, row_bytes, write=write)
        at = bisect_right(self._bases, address) - 1
        span = (rows - 1) * pitch + row_bytes
        if at >= 0:
            region = self._regions[at]
            offset = address - region.base
            if offset + span <= region.size:
                if write:
                    self._privatise(region)
                source = region.data[:, offset : offset + span]
                return np.lib.stride_tricks.as_strided(
                    source, (len(source), rows, row_bytes), (source.strides[0], pitch, 1), writeable=write
                )
        for row in range(rows):
            for _ in self._pieces((address + row * pitch) & ADDRESS_MASK, row_bytes, write=write):
                pass
        return None

    def mark_rows(self, address: int, rows: int, row_bytes: int, pitch: int) -> None:
        """Count the bytes of rows as written."""
        for row in range(rows):
            for region, low, high, _ in self._pieces((address + row * pitch) & ADDRESS_MASK, row_bytes, write=True):
                region.written[low:high] = True

    def read_rows(self, address: int, rows: int, row_bytes: int, pitch: int) -> Bytes:
        """A copy of rows wherever they lie: uint8 ``[images, rows, row_bytes]``.

        Raises:
            BusFault: part of it is not mapped.
        """
        parts = [self.read_images((address + row * pitch) & ADDRESS_MASK, row_bytes) for row in range(rows)]
        return np.stack(parts, axis=1)

    def write_rows(self, address: int, data: Bytes, pitch: int) -> None:
        """Write rows, first to last: uint8 ``[images, rows, row_bytes]``.

        Raises:
            BusFault: part of it is not mapped.
        """
        for row in range(data.shape[1]):
            self.write_images((address + row * pitch) & ADDRESS_MASK, data[:, row])

    def _privatise(self, region: Region) -> None:
        if len(region.data) != self.images:
            region.data = np.repeat(region.data, self.images, axis=0)
            self.layout += 1

    def _mapped(self, address: int, nbytes: int) -> Iterator[tuple[Region, int, int, int]]:
        """The pieces before the first that is missing."""
        try:
            yield from self._pieces(address, nbytes, write=False)
        except BusFault:
            return

    def _pieces(self, address: int, nbytes: int, *, write: bool) -> Iterator[tuple[Region, int, int, int]]:
        """(region, first, last + 1, bytes before) of a range; raises before the piece that is missing."""
        done = 0
        while done < nbytes:
            here = address + done
            at = bisect_right(self._bases, here) - 1
            region = self._regions[at] if at >= 0 else None
            if region is None or here >= region.end:
                raise BusFault(address, nbytes, here & ADDRESS_MASK, write=write)
            low = here - region.base
            high = min(region.size, low + nbytes - done)
            yield region, low, high, done
            done += high - low


def _aligned(address: int, alignment: int) -> int:
    return (address + alignment - 1) & ~(alignment - 1)


def _as_bytes(data: npt.ArrayLike | bytes | bytearray | memoryview) -> Bytes:
    if isinstance(data, (bytes, bytearray, memoryview)):
        return np.frombuffer(data, np.uint8)
    return np.ascontiguousarray(data).reshape(-1).view(np.uint8)
