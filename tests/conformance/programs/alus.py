# SPDX-License-Identifier: Apache-2.0
"""ALU: every operation with immediate and with two tensors, hazards at every distance, what hardware must ignore."""

from __future__ import annotations

import numpy as np

from conformance.programs.builder import INT32_MAX, INT32_MIN, Builder, Ints, Maker, program
from openvta.spec import AluOpcode, MemId, Opcode
from openvta.spec.arith import alu, saturate_array, wrap32_array

EDGES = (
    0,
    1,
    -1,
    127,
    128,
    -128,
    -129,
    255,
    256,
    0x7FFF,
    -0x8000,
    INT32_MAX,
    INT32_MIN,
    INT32_MIN + 1,
    31,
    32,
    -31,
    -32,
)
PLUS = (AluOpcode.MAC, AluOpcode.RSHR, AluOpcode.MOV)
IMMEDIATES = {
    AluOpcode.SHR: (0, 1, 7, 31, 32, 100, -1, -8, -31, -32, -32768),
    AluOpcode.RSHR: (0, 1, 5, 31, -0x8000, 1 - 0x8000, 7 - 0x8000, 31 - 0x8000),
}


def with_edges(b: Builder, count: int) -> Ints:
    """Random acc elements that begin with the numbers where mistakes show."""
    values = b.random(MemId.ACC, count)
    flat = values.reshape(-1)
    flat[: min(len(EDGES), flat.size)] = EDGES[: flat.size]
    return values


def lanewise(op: AluOpcode, dst: Ints, src: Ints, imm: int, *, use_imm: bool) -> Ints:
    """The reference, lane by lane."""
    flat = zip(dst.reshape(-1).tolist(), src.reshape(-1).tolist(), strict=True)
    return np.array([alu(op, d, s, imm, use_imm=use_imm) for d, s in flat], np.int64).reshape(dst.shape)


def _immediate(op: AluOpcode) -> Maker:
    def maker(b: Builder) -> None:
        """acc[dst] = op(acc[src], imm), dst and src apart."""
        source, target = with_edges(b, 3), b.random(MemId.ACC, 3)
        for imm in IMMEDIATES.get(op, (0, 1, -1, 127, -128, 32767, -32768)):
            b.load(MemId.ACC, 0, source)
            b.load(MemId.ACC, 8, target)
            b.alu(op, [(8, 0)], imm, iter_in=3, dst_factor_in=1, src_factor_in=1)
            b.dump(8, lanewise(op, target, source, imm, use_imm=True))

    return maker


def _tensor(op: AluOpcode) -> Maker:
    def maker(b: Builder) -> None:
        """acc[dst] = op(acc[dst], acc[src])."""
        x, y = with_edges(b, 4), with_edges(b, 4)[::-1].copy()
        if op in (AluOpcode.SHR, AluOpcode.RSHR):
            y[:2] = b.rng.integers(-40, 41, y[:2].shape)
        modes = (0, -0x8000) if op is AluOpcode.RSHR else (0,)
        for imm in modes:
            b.load(MemId.ACC, 0, x)
            b.load(MemId.ACC, 8, y)
            b.alu(op, [(0, 8)], iter_in=4, dst_factor_in=1, src_factor_in=1, unused=imm)
            b.dump(0, lanewise(op, x, y, imm, use_imm=False))

    return maker


for _op in AluOpcode:
    _needs = ("alu_plus",) if _op in PLUS else ()
    program(*_needs, name=f"alu_{_op.name.lower()}_immediate")(_immediate(_op))
    program(*_needs, name=f"alu_{_op.name.lower()}_tensor")(_tensor(_op))


def _hazard(distance: int, *, immediate: bool) -> Maker:
    def maker(b: Builder) -> None:
        """Every operation reads what the one ``distance`` before wrote (0: its own dst)."""
        acc = b.random(MemId.ACC, 16) >> 8
        b.load(MemId.ACC, 0, acc)
        uops = [(dst, dst - distance) for dst in range(distance, 16)]
        b.alu(AluOpcode.ADD, uops, 3 if immediate else None)
        for dst, src in uops:
            acc[dst] = wrap32_array(acc[src] + (3 if immediate else acc[dst]))
        b.dump(0, acc)

    return maker


for _distance in range(6):
    program(name=f"alu_hazard_{_distance}_immediate")(_hazard(_distance, immediate=True))
    program(name=f"alu_hazard_{_distance}_tensor")(_hazard(_distance, immediate=False))


@program()
def alu_same_dst_again_and_again(b: Builder) -> None:
    acc = b.random(MemId.ACC, 2) >> 12
    b.load(MemId.ACC, 0, acc)
    b.alu(AluOpcode.ADD, [(0, 1)], iter_out=5, iter_in=7)
    acc[0] += 35 * acc[1]
    b.alu(AluOpcode.ADD, [(1, 1)], 5, iter_out=100)
    acc[1] += 500
    b.dump(0, acc)


@program()
def alu_loops(b: Builder) -> None:
    acc = b.random(MemId.ACC, 40) >> 8
    b.load(MemId.ACC, 0, acc)
    b.alu(
        AluOpcode.MAX, [(0, 20), (1, 22)], iter_out=2, iter_in=3,
        dst_factor_out=9, dst_factor_in=3, src_factor_out=7, src_factor_in=2,
    )  # fmt: skip
    for outer in range(2):
        for inner in range(3):
            for dst, src in ((0, 20), (1, 22)):
                d, s = dst + 9 * outer + 3 * inner, src + 7 * outer + 2 * inner
                acc[d] = np.maximum(acc[d], acc[s])
    b.dump(0, acc[:20])


@program()
def alu_last_indices(b: Builder) -> None:
    c = b.c
    acc = b.random(MemId.ACC, 2) >> 1
    b.load(MemId.ACC, c.acc_depth - 2, acc)
    b.alu(AluOpcode.ADD, [(c.acc_depth - 2, c.acc_depth - 1)])
    b.store(c.acc_depth - 2, wrap32_array(acc[0] + acc[1])[None])


@program()
def alu_nothing(b: Builder) -> None:
    acc = b.random(MemId.ACC, 2)
    b.load(MemId.ACC, 0, acc)
    words = b.uops([(0, 0, 0), (1, 1, 0)])
    begin = words["uop_begin"]
    for fields in ({"iter_out": 0, "iter_in": 1}, {"iter_out": 1, "iter_in": 0}):
        b.op(Opcode.ALU, uop_begin=begin, uop_end=begin + 2, alu_opcode=2, use_imm=1, imm=1, **fields)
    b.op(Opcode.ALU, uop_begin=begin, uop_end=begin, iter_out=1, iter_in=1, alu_opcode=2, use_imm=1, imm=1)
    b.dump(0, acc)


@program()
def alu_ignored_bits(b: Builder) -> None:
    """Bit 7, and the immediate of a base operation without use_imm, are not looked at."""
    acc = b.random(MemId.ACC, 2) >> 1
    b.load(MemId.ACC, 0, acc)
    b.alu(AluOpcode.ADD, [(0, 1)], unused=-1234)
    b.word_bits(1 << 7)
    acc[0] = wrap32_array(acc[0] + acc[1])
    b.dump(0, acc)


@program("sat")
def alu_saturates_out(b: Builder) -> None:
    values = with_edges(b, 3)
    b.load(MemId.ACC, 0, values)
    b.alu(AluOpcode.ADD, [(0, 0)], 0, iter_in=3, dst_factor_in=1, src_factor_in=1, sat=1)
    b.store(0, saturate_array(values, b.c.out_bits))
    b.dump(0, values)


@program()
def alu_wgt_field_is_ignored(b: Builder) -> None:
    acc = b.random(MemId.ACC, 2) >> 1
    b.load(MemId.ACC, 0, acc)
    words = b.uops([(0, 1, b.c.wgt_depth - 1)])
    b.op(Opcode.ALU, **words, iter_out=1, iter_in=1, alu_opcode=2)
    acc[0] = wrap32_array(acc[0] + acc[1])
    b.dump(0, acc)


@program()
def alu_then_load_over_it(b: Builder) -> None:
    """A LOAD of acc right behind an operation on the same elements, and an operation right behind a LOAD."""
    first, second = b.random(MemId.ACC, 6) >> 1, b.random(MemId.ACC, 6) >> 1
    words = b.uops([(0, 0, 0)])
    span = {"iter_out": 1, "iter_in": 6, "dst_factor_in": 1, "src_factor_in": 1}
    b.load(MemId.ACC, 0, first)
    b.op(Opcode.ALU, **words, **span, alu_opcode=2, use_imm=1, imm=9)
    b.load(MemId.ACC, 3, second[3:])
    b.op(Opcode.ALU, **words, **span, alu_opcode=2, use_imm=1, imm=-4)
    expected = np.concatenate([first[:3] + 9, second[3:]]) - 4
    b.dump(0, wrap32_array(expected))
