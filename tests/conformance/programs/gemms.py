# SPDX-License-Identifier: Apache-2.0
"""GEMM: products, accumulation at every distance, loops and factors, reset, wrap, saturation."""

from __future__ import annotations

import numpy as np

from conformance.programs.builder import INT32_MAX, INT32_MIN, Builder, Ints, Maker, program
from openvta.spec import MemId, Opcode
from openvta.spec.arith import saturate_array, wrap32_array


def product(inp: Ints, wgt: Ints) -> Ints:
    """One GEMM step: ``[batch, block]`` times ``[block out, block in]``."""
    return inp @ wgt.T


def operands(b: Builder, inputs: int, weights: int) -> tuple[Ints, Ints]:
    """Random inp and wgt elements, loaded from element 0 on."""
    inp, wgt = b.random(MemId.INP, inputs), b.random(MemId.WGT, weights)
    b.load(MemId.INP, 0, inp)
    b.load(MemId.WGT, 0, wgt)
    return inp, wgt


def start(b: Builder, count: int) -> Ints:
    """Random acc elements from element 0 on."""
    acc = b.random(MemId.ACC, count) >> 8
    b.load(MemId.ACC, 0, acc)
    return acc


@program()
def gemm_single(b: Builder) -> None:
    inp, wgt = operands(b, 2, 2)
    acc = start(b, 2)
    b.gemm([(1, 1, 1)])
    acc[1] += product(inp[1], wgt[1])
    b.store(1, acc[1:])
    b.dump(0, acc)


@program()
def gemm_lowest_times_lowest(b: Builder) -> None:
    c = b.c
    inp = np.full((1, c.batch, c.block), c.inp_type.minimum)
    wgt = np.full((1, c.block, c.block), c.wgt_type.minimum)
    b.load(MemId.INP, 0, inp)
    b.load(MemId.WGT, 0, wgt)
    b.load(MemId.ACC, 0, np.zeros((1, c.batch, c.block), np.int64))
    b.gemm([(0, 0, 0)])
    b.dump(0, np.full((1, c.batch, c.block), c.block * c.inp_type.minimum * c.wgt_type.minimum))


@program()
def gemm_reset_keeps_out(b: Builder) -> None:
    acc = start(b, 3)
    b.copy(0, 0, 3)
    b.gemm([(0, 0, 0), (2, 0, 0)], reset=1)
    b.store(0, acc)
    acc[0] = acc[2] = 0
    b.dump(0, acc)


@program()
def gemm_wraps(b: Builder) -> None:
    c = b.c
    inp, wgt = operands(b, 2, 1)
    acc = np.full((2, c.batch, c.block), INT32_MAX, np.int64)
    acc[1] = INT32_MIN
    b.load(MemId.ACC, 0, acc)
    b.gemm([(0, 0, 0), (1, 1, 0)])
    sums = np.stack([acc[n] + product(inp[n], wgt[0]) for n in range(2)])
    b.dump(0, wrap32_array(sums))


def _distance(distance: int) -> Maker:
    def maker(b: Builder) -> None:
        """A dst comes back after ``distance`` other micro-ops, eight times."""
        inp, wgt = operands(b, 8, 4)
        count = distance + 1
        acc = start(b, count)
        uops = []
        for step in range(8):
            for dst in range(count):
                uops.append((dst, (step + dst) % 8, step % 4))
                acc[dst] += product(inp[(step + dst) % 8], wgt[step % 4])
        b.gemm(uops)
        b.store(0, acc)
        b.dump(0, acc)

    return maker


for _number in range(6):
    program(name=f"gemm_same_dst_distance_{_number}")(_distance(_number))


@program()
def gemm_loops(b: Builder) -> None:
    """Micro-ops 3..7, outer 2, inner 3, a factor of its own for every index."""
    inp, wgt = operands(b, 16, 12)
    acc = start(b, 24)
    words = b.uop_words([(0, 0, 0)] * 3 + [(1, 2, 0), (0, 1, 1), (2, 0, 2), (1, 1, 3)])
    b.load(MemId.UOP, 0, words)
    b.op(
        Opcode.GEMM, uop_begin=3, uop_end=7, iter_out=2, iter_in=3, dst_factor_out=9, dst_factor_in=3,
        src_factor_out=5, src_factor_in=2, wgt_factor_out=1, wgt_factor_in=3,
    )  # fmt: skip
    for outer in range(2):
        for inner in range(3):
            for dst, src, wgt_index in ((1, 2, 0), (0, 1, 1), (2, 0, 2), (1, 1, 3)):
                d, s, w = dst + 9 * outer + 3 * inner, src + 5 * outer + 2 * inner, wgt_index + outer + 3 * inner
                acc[d] += product(inp[s], wgt[w])
    b.dump(0, acc)


@program()
def gemm_many_iterations(b: Builder) -> None:
    """The largest inner count on one micro-op with factors 0."""
    c = b.c
    one = np.ones((1, c.batch, c.block), np.int64) * (1 if c.inp_type.maximum else -1)
    weight = np.eye(c.block, dtype=np.int64) * (1 if c.wgt_type.maximum else -1)
    b.load(MemId.INP, 0, one)
    b.load(MemId.WGT, 0, weight)
    b.zero(0, 1)
    b.gemm([(0, 0, 0)], iter_in=(1 << 14) - 1)
    b.dump(0, np.full((1, c.batch, c.block), 16383) * one.flat[0] * weight[0, 0])


@program()
def gemm_last_indices(b: Builder) -> None:
    c = b.c
    inp, wgt = b.random(MemId.INP, 1), b.random(MemId.WGT, 1)
    b.load(MemId.INP, c.inp_depth - 1, inp)
    b.load(MemId.WGT, c.wgt_depth - 1, wgt)
    b.zero(c.acc_depth - 1, 1)
    b.gemm([(c.acc_depth - 1, c.inp_depth - 1, c.wgt_depth - 1)])
    b.copy(0, c.acc_depth - 1, 1)
    b.store(0, product(inp[0], wgt[0])[None])


@program()
def gemm_nothing(b: Builder) -> None:
    """Zero counts and an empty range do nothing; a range of one does one thing."""
    inp, wgt = operands(b, 2, 1)
    acc = start(b, 2)
    loaded = b.uops([(0, 0, 0), (1, 1, 0)])
    begin = loaded["uop_begin"]
    b.op(Opcode.GEMM, uop_begin=begin, uop_end=begin + 2, iter_out=0, iter_in=3)
    b.op(Opcode.GEMM, uop_begin=begin, uop_end=begin + 2, iter_out=3, iter_in=0)
    b.op(Opcode.GEMM, uop_begin=begin + 1, uop_end=begin + 1, iter_out=1, iter_in=1)
    b.op(Opcode.GEMM, uop_begin=begin, uop_end=begin + 2, iter_out=0, iter_in=1, reset=1)
    b.op(Opcode.GEMM, uop_begin=begin + 1, uop_end=begin + 2, iter_out=1, iter_in=1)
    acc[1] += product(inp[1], wgt[0])
    b.dump(0, acc)


@program()
def gemm_back_to_back(b: Builder) -> None:
    """Instructions that meet in the same dst, without a pause between them."""
    inp, wgt = operands(b, 4, 4)
    acc = start(b, 2)
    words = b.uops([(0, 0, 0), (0, 1, 1), (1, 2, 2), (0, 3, 3)])
    begin = words["uop_begin"]
    for first, last in ((0, 2), (1, 4), (0, 1), (3, 4)):
        b.op(Opcode.GEMM, uop_begin=begin + first, uop_end=begin + last, iter_out=1, iter_in=1)
        for dst, n in ((0, 0), (0, 1), (1, 2), (0, 3))[first:last]:
            acc[dst] += product(inp[n], wgt[n])
    b.dump(0, acc)


@program()
def gemm_then_alu_then_gemm(b: Builder) -> None:
    """GEMM and ALU instructions in turn on the same elements."""
    inp, wgt = operands(b, 3, 2)
    acc = start(b, 3) >> 4
    b.load(MemId.ACC, 0, acc)
    gemm = b.uops([(0, 0, 0), (1, 1, 1), (2, 2, 0), (0, 1, 1)])
    alu = b.uops([(0, 0, 0), (1, 0, 0), (2, 1, 0)])
    for _ in range(3):
        b.op(Opcode.GEMM, **gemm, iter_out=1, iter_in=1)
        b.op(Opcode.ALU, **alu, iter_out=1, iter_in=1, alu_opcode=2)
        for dst, src, w in ((0, 0, 0), (1, 1, 1), (2, 2, 0), (0, 1, 1)):
            acc[dst] += product(inp[src], wgt[w])
        for dst, src in ((0, 0), (1, 0), (2, 1)):
            acc[dst] = wrap32_array(acc[dst] + acc[src])
    b.dump(0, acc)


@program("sat")
def gemm_saturates_out(b: Builder) -> None:
    """With sat out holds the nearest value; acc holds the sum."""
    c = b.c
    inp, wgt = operands(b, 3, 1)
    acc = np.zeros((3, c.batch, c.block), np.int64)
    b.load(MemId.ACC, 0, acc)
    b.gemm([(n, n, 0) for n in range(3)], sat=1)
    sums = np.stack([product(inp[n], wgt[0]) for n in range(3)])
    b.store(0, saturate_array(sums, c.out_bits))
    b.dump(0, sums)
    b.gemm([(n, n, 0) for n in range(3)])
    b.store(0, 2 * sums)


@program()
def gemm_new_uops_at_once(b: Builder) -> None:
    """Micro-ops are replaced by a LOAD between two GEMM instructions that use the same place."""
    inp, wgt = operands(b, 4, 4)
    acc = start(b, 4)
    for n in range(4):
        b.load(MemId.UOP, 0, b.uop_words([(n, n, 3 - n)]))
        b.op(Opcode.GEMM, uop_end=1, iter_out=1, iter_in=1)
        acc[n] += product(inp[n], wgt[3 - n])
    b.dump(0, acc)
