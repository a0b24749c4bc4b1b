# SPDX-License-Identifier: Apache-2.0
"""LOAD: every memory, pad, stride and boundary. What arrived is shown by GEMM with unit operands and by ALU copies."""

from __future__ import annotations

from itertools import product

import numpy as np
import numpy.typing as npt

from conformance.programs.builder import INT32_MIN, Builder, Ints, program
from openvta.spec import MemId, Opcode

PADS = (1, 2, 1, 3)


def unit_weight(b: Builder) -> int:
    """A weight lane that keeps values: 1, or -1 where lanes have one bit."""
    return 1 if b.c.wgt_type.maximum >= 1 else -1


def show_inp(b: Builder, first: int, values: npt.ArrayLike, acc: int = 0) -> None:
    """inp elements from ``first`` must be ``values`` ``[n, batch, block]``."""
    array = np.asarray(values, np.int64).reshape(-1, b.c.batch, b.c.block)
    b.load(MemId.WGT, b.c.wgt_depth - 1, np.eye(b.c.block, dtype=np.int64) * unit_weight(b))
    b.zero(acc, len(array))
    b.gemm([(acc, first, b.c.wgt_depth - 1)], iter_in=len(array), dst_factor_in=1, src_factor_in=1)
    b.store(acc, array * unit_weight(b))


def show_wgt(b: Builder, first: int, values: npt.ArrayLike) -> None:
    """wgt elements from ``first`` must be ``values`` ``[n, block, block]``: one lane of inp at a time is 1 (or -1)."""
    c = b.c
    array = np.asarray(values, np.int64).reshape(-1, c.block, c.block)
    one = 1 if c.inp_type.maximum >= 1 else -1
    hot = np.repeat(np.eye(c.block, dtype=np.int64)[:, None, :], c.batch, axis=1) * one
    source = c.inp_depth - c.block
    b.load(MemId.INP, source, hot)
    for number, element in enumerate(array):
        b.zero(0, c.block)
        b.gemm([(0, source, first + number)], iter_in=c.block, dst_factor_in=1, src_factor_in=1)
        b.store(0, np.repeat(element.T[:, None, :], c.batch, axis=1) * one)


def padded(values: Ints, rows: int, fill: int, pads: tuple[int, int, int, int]) -> Ints:
    """Elements ``[rows * columns, ...]`` with rows above, below, and columns left and right, as LOAD orders them."""
    grid = values.reshape(rows, -1, *values.shape[1:])
    top, bottom, left, right = pads
    wide = np.pad(grid, ((top, bottom), (left, right), (0, 0), (0, 0)), constant_values=fill)
    return wide.reshape(-1, *values.shape[1:])


def pad_fields(pads: tuple[int, int, int, int]) -> dict[str, int]:
    """The pads as instruction fields."""
    return dict(zip(("y_pad_0", "y_pad_1", "x_pad_0", "x_pad_1"), pads, strict=True))


@program()
def load_inp(b: Builder) -> None:
    values = b.random(MemId.INP, 7)
    b.load(MemId.INP, 5, values)
    show_inp(b, 5, values)


@program()
def load_wgt(b: Builder) -> None:
    values = b.random(MemId.WGT, 3)
    b.load(MemId.WGT, 2, values)
    show_wgt(b, 2, values)


@program()
def load_acc(b: Builder) -> None:
    values = b.random(MemId.ACC, 5)
    b.load(MemId.ACC, 3, values)
    b.dump(3, values)


@program()
def load_acc_leaves_out(b: Builder) -> None:
    first, second = b.random(MemId.ACC, 2), b.random(MemId.ACC, 2)
    b.load(MemId.ACC, 0, first)
    b.copy(0, 0, 2)
    b.load(MemId.ACC, 0, second)
    b.store(0, first)
    b.dump(0, second)


@program("acc8")
def load_acc_int8(b: Builder) -> None:
    values = b.random(MemId.ACC_INT8, 6)
    values[0, 0, 0], values[0, 0, 1] = -128, 127
    b.load(MemId.ACC_INT8, 1, values)
    b.dump(1, values)


@program("acc8")
def load_acc_uint8(b: Builder) -> None:
    values = b.random(MemId.ACC_UINT8, 6)
    values[0, 0, 0], values[0, 0, 1] = 255, 128
    b.load(MemId.ACC_UINT8, 1, values)
    b.dump(1, values)


@program()
def load_inp_pads(b: Builder) -> None:
    """All 16 combinations of zero and non-zero pads; nothing beside the padded block changes."""
    c = b.c
    around = b.random(MemId.INP, c.inp_depth if c.inp_depth < 64 else 64)
    for chosen in product((False, True), repeat=4):
        pads = tuple(pad if use else 0 for pad, use in zip(PADS, chosen, strict=True))
        four = (pads[0], pads[1], pads[2], pads[3])
        values = b.random(MemId.INP, 2 * 3)
        block = padded(values, 2, 0, four)
        b.load(MemId.INP, 0, around)
        b.load(MemId.INP, 1, values, y_size=2, x_size=3, x_stride=3, **pad_fields(four))
        expected = around[: len(block) + 2].copy()
        expected[1 : 1 + len(block)] = block
        show_inp(b, 0, expected)


@program()
def load_inp_pads_wide_stride(b: Builder) -> None:
    values = b.random(MemId.INP, 3 * 5)
    kept = values.reshape(3, 5, b.c.batch, b.c.block)[:, :2].reshape(-1, b.c.batch, b.c.block)
    b.load(MemId.INP, 0, values, y_size=3, x_size=2, x_stride=5, **pad_fields(PADS))
    show_inp(b, 0, padded(kept, 3, 0, PADS))


@program()
def load_acc_pads(b: Builder) -> None:
    values = b.random(MemId.ACC, 2 * 2)
    b.load(MemId.ACC, 2, values, y_size=2, x_size=2, x_stride=2, **pad_fields((1, 1, 1, 0)))
    b.dump(2, padded(values, 2, 0, (1, 1, 1, 0)))


@program()
def load_wgt_pads(b: Builder) -> None:
    values = b.random(MemId.WGT, 2)
    b.load(MemId.WGT, 1, values, y_size=2, x_size=1, x_stride=1, **pad_fields((1, 0, 0, 1)))
    show_wgt(b, 1, padded(values, 2, 0, (1, 0, 0, 1)))


@program()
def load_uop_pads(b: Builder) -> None:
    """Padding of micro-ops is the micro-op 0: dst 0, src 0."""
    words = b.uop_words([(4, 4, 0), (5, 5, 0), (6, 6, 0), (7, 7, 0)])
    start = b.random(MemId.ACC, 8) // 2
    b.load(MemId.ACC, 0, start)
    b.load(MemId.UOP, 3, words, y_size=2, x_size=2, x_stride=2, **pad_fields((1, 0, 2, 1)))
    b.op(Opcode.ALU, uop_begin=3, uop_end=3 + 3 * 5, iter_out=1, iter_in=1, alu_opcode=2, use_imm=1, imm=1)
    zeros = 3 * 5 - 4
    expected = start.copy()
    expected[0] += zeros
    expected[4:] += 1
    b.dump(0, expected)


@program("acc8")
def load_acc8_pads(b: Builder) -> None:
    for memory in (MemId.ACC_INT8, MemId.ACC_UINT8):
        values = b.random(memory, 2 * 3)
        b.load(memory, 0, values, y_size=2, x_size=3, x_stride=3, **pad_fields((0, 1, 2, 1)))
        b.dump(0, padded(values, 2, 0, (0, 1, 2, 1)))


def _fills(b: Builder, memory: MemId) -> list[tuple[dict[str, int], int]]:
    """Pad fields and the fill of a lane."""
    kind, _, region = b.lanes(memory)
    least = INT32_MIN if region == "acc" else kind.minimum
    found: list[tuple[dict[str, int], int]] = [({"pad_min": 1}, least)]
    for raw in (1, 127, 128, 200, 255):
        value = raw if memory is MemId.ACC_UINT8 else raw - (raw >> 7 << 8)
        if region != "acc" and kind.bits < 8:
            value &= (1 << kind.bits) - 1
            value -= (value >> (kind.bits - 1)) << kind.bits
        found.append(({"pad_value": raw}, value))
    return found


@program("padv")
def load_inp_pad_values(b: Builder) -> None:
    for fields, fill in _fills(b, MemId.INP):
        values = b.random(MemId.INP, 2)
        b.load(MemId.INP, 0, values, **pad_fields((1, 0, 1, 1)), **fields)
        show_inp(b, 0, padded(values, 1, fill, (1, 0, 1, 1)))


@program("padv")
def load_wgt_pad_values(b: Builder) -> None:
    for fields, fill in _fills(b, MemId.WGT)[:3]:
        values = b.random(MemId.WGT, 1)
        b.load(MemId.WGT, 0, values, **pad_fields((0, 0, 1, 1)), **fields)
        show_wgt(b, 0, padded(values, 1, fill, (0, 0, 1, 1)))


@program("padv")
def load_acc_pad_values(b: Builder) -> None:
    for fields, fill in _fills(b, MemId.ACC):
        values = b.random(MemId.ACC, 2)
        b.load(MemId.ACC, 0, values, **pad_fields((0, 1, 1, 0)), **fields)
        b.dump(0, padded(values, 1, fill, (0, 1, 1, 0)))


@program("padv", "acc8")
def load_acc8_pad_values(b: Builder) -> None:
    for memory in (MemId.ACC_INT8, MemId.ACC_UINT8):
        for fields, fill in _fills(b, memory):
            values = b.random(memory, 2)
            b.load(memory, 0, values, **pad_fields((1, 0, 0, 1)), **fields)
            b.dump(0, padded(values, 1, fill, (1, 0, 0, 1)))


@program()
def load_strides(b: Builder) -> None:
    """Rows apart, rows that overlap, and the same row again and again."""
    c = b.c
    values = b.random(MemId.INP, 12)
    base = b.place(MemId.INP, values)
    for stride in (4, 3, 2, 1, 0):
        rows = np.concatenate([values[y * stride : y * stride + 3] for y in range(3)])
        b.op(Opcode.LOAD, memory_id=MemId.INP, sram_base=2, dram_base=base, y_size=3, x_size=3, x_stride=stride)
        show_inp(b, 2, rows)
    column = b.random(MemId.ACC, 8)
    b.load(MemId.ACC, 0, column, y_size=4, x_size=1, x_stride=2)
    b.dump(0, column[::2].reshape(-1, c.batch, c.block))


@program()
def load_long_rows(b: Builder) -> None:
    """Rows longer than a burst, with pads between them."""
    c = b.c
    width = min(300, (c.inp_depth - 16) // 3, (c.acc_depth - 4) // 3 - 6)
    values = b.random(MemId.INP, 2 * (width + 10))
    kept = values.reshape(2, width + 10, c.batch, c.block)[:, :width].reshape(-1, c.batch, c.block)
    b.load(MemId.INP, 0, values, y_size=2, x_size=width, x_stride=width + 10, **pad_fields((0, 0, 1, 3)))
    show_inp(b, 0, padded(kept, 2, 0, (0, 0, 1, 3)))


@program()
def load_across_4k(b: Builder) -> None:
    """Rows that start one element before a multiple of 4096 bytes, for every region."""
    for memory, size in ((MemId.INP, b.c.inp_bytes), (MemId.ACC, b.c.acc_bytes), (MemId.WGT, b.c.wgt_bytes)):
        b.fill_to(memory, size)
        values = b.random(memory, 3)
        b.load(memory, 1, values)
        if memory is MemId.INP:
            show_inp(b, 1, values)
        elif memory is MemId.ACC:
            b.dump(1, values)
        else:
            show_wgt(b, 1, values)


@program()
def load_to_the_last_element(b: Builder) -> None:
    c = b.c
    inp = b.random(MemId.INP, 3)
    b.load(MemId.INP, c.inp_depth - 3, inp)
    show_inp(b, c.inp_depth - 3, inp)
    acc = b.random(MemId.ACC, 3)
    b.load(MemId.ACC, c.acc_depth - 3, acc)
    b.copy(0, c.acc_depth - 3, 3)
    b.store(0, acc)
    wgt = b.random(MemId.WGT, 2)
    b.load(MemId.WGT, c.wgt_depth - 2, wgt)
    show_wgt(b, c.wgt_depth - 2, wgt)
    b.load(MemId.ACC, 0, acc)
    b.load(MemId.UOP, c.uop_depth - 3, b.uop_words([(0, 0, 0), (1, 1, 0), (2, 2, 0)]))
    last = {"uop_begin": c.uop_depth - 3, "uop_end": c.uop_depth}
    b.op(Opcode.ALU, **last, iter_out=1, iter_in=1, alu_opcode=3, use_imm=1, imm=1)
    b.store(0, acc >> 1)


@program()
def load_uop_any_start_and_count(b: Builder) -> None:
    """Exact words are written for every start 0..9 and count 1..9; the neighbours keep their micro-ops."""
    total, kept = 20, 10
    zeros = np.zeros((kept + 1, b.c.batch, b.c.block), np.int64)
    neighbours = b.place(MemId.UOP, b.uop_words([(kept, kept, 0)] * total))
    fresh = b.place(MemId.UOP, b.uop_words([(n, n, 0) for n in range(9)]))
    cleared = b.place(MemId.ACC, zeros)
    for start, count in product(range(10), range(1, 10)):
        b.op(Opcode.LOAD, memory_id=MemId.UOP, dram_base=neighbours, y_size=1, x_size=total, x_stride=total)
        row = {"y_size": 1, "x_size": count, "x_stride": count}
        b.op(Opcode.LOAD, memory_id=MemId.UOP, sram_base=start, dram_base=fresh, **row)
        b.op(Opcode.LOAD, memory_id=MemId.ACC, dram_base=cleared, y_size=1, x_size=kept + 1, x_stride=kept + 1)
        b.op(Opcode.ALU, uop_end=total, iter_out=1, iter_in=1, alu_opcode=2, use_imm=1, imm=1)
        expected = zeros.copy()
        expected[:count] = 1
        expected[kept] = total - count
        b.copy(kept + 1, 0, kept + 1)
        b.store(kept + 1, expected)


@program()
def load_any_element_start(b: Builder) -> None:
    """Loads start at any element, whatever the bus width."""
    values = b.random(MemId.INP, 24)
    base = b.place(MemId.INP, values)
    for start in range(8):
        count = 1 + start * 2
        b.op(
            Opcode.LOAD, memory_id=MemId.INP, sram_base=start, dram_base=base + start, y_size=1, x_size=count,
            x_stride=count,
        )  # fmt: skip
        show_inp(b, start, values[start : start + count])


@program()
def load_nothing(b: Builder) -> None:
    """x_size 0 or y_size 0 does nothing, pads included."""
    inp, acc = b.random(MemId.INP, 12), b.random(MemId.ACC, 12)
    b.load(MemId.INP, 0, inp)
    b.load(MemId.ACC, 0, acc)
    for memory in (MemId.INP, MemId.ACC, MemId.WGT, MemId.UOP):
        b.op(Opcode.LOAD, memory_id=memory, x_size=0, y_size=2, x_stride=4, **pad_fields(PADS))
        b.op(Opcode.LOAD, memory_id=memory, x_size=4, y_size=0, x_stride=4, **pad_fields(PADS))
    b.dump(0, acc)
    show_inp(b, 0, inp)
