# SPDX-License-Identifier: Apache-2.0
"""STORE: strides, boundaries, any element start; what is not written keeps its filler."""

from __future__ import annotations

from conformance.programs.builder import Builder, Ints, program
from openvta.spec import MemId, Opcode


def fill_out(b: Builder, first: int, count: int) -> Ints:
    """out elements with random content, which is returned."""
    values = b.random(MemId.ACC, count)
    b.load(MemId.ACC, first, values)
    b.copy(first, first, count)
    return values


def store(b: Builder, sram: int, dram: int, rows: int, columns: int, stride: int) -> None:
    """A bare STORE."""
    b.op(
        Opcode.STORE, memory_id=MemId.OUT, sram_base=sram, dram_base=dram, y_size=rows, x_size=columns, x_stride=stride
    )  # fmt: skip


@program()
def store_strides(b: Builder) -> None:
    values = fill_out(b, 2, 12)
    for columns, stride in ((3, 5), (1, 3), (4, 4)):
        base = b.reserve(3 * stride)
        store(b, 2, base, 3, columns, stride)
        for row in range(3):
            b.expect(base + row * stride, values[row * columns : (row + 1) * columns])


@program()
def store_overlapping_rows(b: Builder) -> None:
    """Where rows overlap, the later row stays."""
    values = fill_out(b, 0, 9)
    for stride in (2, 1, 0):
        base = b.reserve(9)
        store(b, 0, base, 3, 3, stride)
        for row in range(3):
            b.expect(base + row * stride, values[row * 3 : row * 3 + 3])


@program()
def store_any_start_and_count(b: Builder) -> None:
    values = fill_out(b, 0, 24)
    for start in range(6):
        for count in (1, 2, 3, 17):
            b.store(start, values[start : start + count])


@program()
def store_long_rows(b: Builder) -> None:
    count = min(300, b.c.acc_depth // 2)
    b.store(b.c.acc_depth - count, fill_out(b, b.c.acc_depth - count, count))


@program()
def store_across_4k(b: Builder) -> None:
    values = fill_out(b, 0, 3)
    per_page = 4096 // b.c.out_bytes
    b.reserve(per_page - 3)
    b.store(0, values)


@program()
def store_low_bits(b: Builder) -> None:
    """Without saturation the low bits leave."""
    values = b.random(MemId.ACC, 4)
    values[0, 0, :2] = (127, 128)
    b.load(MemId.ACC, 0, values)
    b.copy(0, 0, 4)
    b.store(0, values)


@program()
def store_nothing(b: Builder) -> None:
    fill_out(b, 0, 4)
    base = b.reserve(8)
    store(b, 0, base, 0, 4, 4)
    store(b, 0, base, 2, 0, 4)


@program()
def store_same_out_twice(b: Builder) -> None:
    values = fill_out(b, 1, 2)
    b.store(1, values)
    b.store(1, values)
