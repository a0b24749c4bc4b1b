# SPDX-License-Identifier: Apache-2.0
"""Device memory: regions, bounds, images, strided rows."""

from __future__ import annotations

import numpy as np
import pytest

from openvta.sim.errors import BusFault, MemoryLimitError
from openvta.sim.memory import ADDRESS_MASK, DeviceMemory


def test_read_returns_what_was_written_and_zero_elsewhere() -> None:
    memory = DeviceMemory()
    memory.map(0x1000, 16)
    memory.write(0x1004, b"\x01\x02\x03")
    assert memory.read(0x1000, 16).tolist() == [0, 0, 0, 0, 1, 2, 3, *[0] * 9]
    memory.write(0x1008, np.array([0x01020304], "<u4"))
    assert memory.read(0x1008, 4).tolist() == [4, 3, 2, 1]


@pytest.mark.parametrize(
    ("address", "nbytes", "first"), [(0xFFF, 2, 0xFFF), (0x100F, 2, 0x1010), (0, 1, 0), (0x1010, 1, 0x1010)]
)
def test_access_outside_regions_is_a_bus_fault_with_the_first_bad_byte(address: int, nbytes: int, first: int) -> None:
    memory = DeviceMemory()
    memory.map(0x1000, 16)
    with pytest.raises(BusFault, match="no region holds byte") as caught:
        memory.read(address, nbytes)
    assert (caught.value.address, caught.value.write) == (first, False)
    before = memory.read(0x1000, 16)
    with pytest.raises(BusFault) as caught:
        memory.write(address, bytes(nbytes))
    assert (caught.value.address, caught.value.write) == (first, True)
    assert np.array_equal(memory.read(0x1000, 16), before)


def test_access_across_touching_regions() -> None:
    memory = DeviceMemory()
    memory.map(0x1000, 8)
    memory.map(0x1008, 8)
    memory.write(0x1006, b"\x01\x02\x03\x04")
    assert memory.read(0x1006, 4).tolist() == [1, 2, 3, 4]
    assert memory.rows(0x1004, 2, 4, 4, write=False) is None
    assert memory.read_rows(0x1004, 2, 4, 4).tolist() == [[[0, 0, 1, 2], [3, 4, 0, 0]]]


def test_the_whole_64_bit_space_can_be_addressed() -> None:
    memory = DeviceMemory()
    memory.map(ADDRESS_MASK - 15, 16)
    memory.write(ADDRESS_MASK, b"\x09")
    assert memory.read(ADDRESS_MASK, 1)[0] == 9
    with pytest.raises(MemoryLimitError, match="64-bit"):
        memory.map(ADDRESS_MASK - 3, 8)


def test_allocation_is_aligned_disjoint_and_reused_after_free() -> None:
    memory = DeviceMemory()
    first, second = memory.allocate(100), memory.allocate(5000, 256)
    assert first % 4096 == 0 and second % 256 == 0 and second >= first + 100
    memory.free(first)
    assert memory.allocate(100) == first
    with pytest.raises(MemoryLimitError, match="power of two"):
        memory.allocate(1, 3)
    with pytest.raises(MemoryLimitError, match="0 bytes"):
        memory.allocate(0)
    with pytest.raises(MemoryLimitError, match="overlaps"):
        memory.map(first, 1)
    with pytest.raises(MemoryLimitError, match="no region starts"):
        memory.free(first + 1)


def test_images_share_bytes_until_they_differ() -> None:
    memory = DeviceMemory(images=3)
    memory.map(0x1000, 8)
    memory.write(0x1000, b"\x07" * 8)
    view = memory.rows(0x1000, 1, 8, 8, write=False)
    assert view is not None and view.shape == (1, 1, 8)
    layout = memory.layout
    memory.write_images(0x1002, np.array([[1], [2], [3]], np.uint8))
    assert memory.layout != layout
    assert [int(memory.read(0x1002, 1, image)[0]) for image in range(3)] == [1, 2, 3]
    assert memory.read_images(0x1001, 2).tolist() == [[7, 1], [7, 2], [7, 3]]
    memory.write(0x1002, b"\x05")
    assert memory.read_images(0x1002, 1).tolist() == [[5], [5], [5]]
    with pytest.raises(MemoryLimitError, match="must be"):
        memory.write_images(0x1000, np.zeros((2, 1), np.uint8))


def test_rows_are_a_view_and_overlap_as_they_lie() -> None:
    memory = DeviceMemory()
    memory.map(0x1000, 32)
    memory.write(0x1000, np.arange(32, dtype=np.uint8))
    rows = memory.rows(0x1002, 3, 4, 2, write=False)
    assert rows is not None
    assert rows[0].tolist() == [[2, 3, 4, 5], [4, 5, 6, 7], [6, 7, 8, 9]]
    memory.write(0x1004, b"\xff")
    assert rows[0, 0, 2] == 255
    with pytest.raises(BusFault):
        memory.rows(0x1000, 3, 8, 16, write=False)


def test_written_bytes_are_known() -> None:
    memory = DeviceMemory()
    memory.map(0x1000, 32)
    assert memory.first_unwritten(0x1000, 4) == 0x1000
    memory.write(0x1000, b"\x00" * 8)
    assert memory.first_unwritten(0x1000, 8) is None
    memory.mark_rows(0x100A, 2, 2, 8)
    assert memory.first_unwritten(0x100A, 2) is None
    assert memory.first_unwritten(0x1008, 12) == 0x1008
    assert memory.first_unwritten(0x1012, 2) is None
