# SPDX-License-Identifier: Apache-2.0
"""Dependence tokens: units that run ahead of each other, full queues, every flag, FINISH that waits."""

from __future__ import annotations

import numpy as np

from conformance.programs.builder import Builder, Maker, program
from openvta.spec import AluOpcode, MemId, Opcode
from openvta.spec.isa import Queue, Unit

NOTHING: dict[Unit, tuple[Opcode, dict[str, int]]] = {
    Unit.LOAD: (Opcode.LOAD, {"memory_id": int(MemId.INP)}),
    Unit.COMPUTE: (Opcode.LOAD, {"memory_id": int(MemId.UOP)}),
    Unit.STORE: (Opcode.STORE, {"memory_id": int(MemId.OUT)}),
}
"""An instruction of each unit that only moves tokens."""

ENDS: dict[Queue, tuple[Unit, str, Unit, str]] = {
    Queue.LOAD_TO_COMPUTE: (Unit.LOAD, "push_next", Unit.COMPUTE, "pop_prev"),
    Queue.COMPUTE_TO_LOAD: (Unit.COMPUTE, "push_prev", Unit.LOAD, "pop_next"),
    Queue.COMPUTE_TO_STORE: (Unit.COMPUTE, "push_next", Unit.STORE, "pop_prev"),
    Queue.STORE_TO_COMPUTE: (Unit.STORE, "push_prev", Unit.COMPUTE, "pop_next"),
}


def nothing(b: Builder, unit: Unit, **flags: int) -> None:
    """An instruction of the unit that only moves tokens."""
    opcode, fields = NOTHING[unit]
    b.op(opcode, **fields, **flags)


@program()
def finish_alone(b: Builder) -> None:
    b.serial = False


@program()
def finish_ignores_high_bits(b: Builder) -> None:
    b.op(Opcode.FINISH)
    b.word_bits(((1 << 121) - 1) << 7)


@program()
def finish_waits_for_both(b: Builder) -> None:
    """FINISH with both pops comes behind a load and a store that have nothing else to keep it back."""
    b.serial = False
    values = b.random(MemId.ACC, 3)
    b.load(MemId.ACC, 0, values)
    b.alu(AluOpcode.ADD, [(0, 0)], 0, iter_in=3, dst_factor_in=1, src_factor_in=1, push_next=1)
    b.load(MemId.INP, 0, b.random(MemId.INP, 3), push_next=1)
    base = b.reserve(3)
    b.op(
        Opcode.STORE, memory_id=MemId.OUT, dram_base=base, y_size=1, x_size=3, x_stride=3, pop_prev=1, push_prev=1
    )  # fmt: skip
    b.expect(base, values)
    b.op(Opcode.FINISH, pop_prev=1, pop_next=1)


@program()
def finish_waits_for_store(b: Builder) -> None:
    """Nothing but FINISH itself orders the end behind the last store."""
    b.serial = False
    values = b.random(MemId.ACC, 8)
    b.load(MemId.ACC, 0, values)
    b.alu(AluOpcode.ADD, [(0, 0)], 0, iter_in=8, dst_factor_in=1, src_factor_in=1, push_next=1)
    base = b.reserve(8)
    b.op(Opcode.STORE, memory_id=MemId.OUT, dram_base=base, y_size=1, x_size=8, x_stride=8, pop_prev=1)
    b.expect(base, values)


@program()
def tokens_double_buffer(b: Builder) -> None:
    """Load, compute and store overlap on two buffers each, six tiles long."""
    b.serial = False
    c, tiles, size = b.c, 6, 4
    wgt = b.random(MemId.WGT, 1)
    inp = b.random(MemId.INP, tiles * size)
    base = b.place(MemId.INP, inp)
    words = b.uops([(0, 0, 0)])
    b.load(MemId.WGT, 0, wgt)
    for tile in range(tiles):
        half = tile % 2 * size
        b.op(
            Opcode.LOAD, memory_id=MemId.INP, sram_base=half, dram_base=base + tile * size, y_size=1, x_size=size,
            x_stride=size, push_next=1, pop_next=int(tile >= 2),
        )  # fmt: skip
        steps = {"iter_out": 1, "iter_in": size, "dst_factor_in": 1, "src_factor_in": 1}
        first = b.uops([(half, half, 0)])
        b.op(Opcode.GEMM, **first, **steps, reset=1, pop_prev=1, pop_next=int(tile >= 2))
        b.op(Opcode.GEMM, **first, **steps, push_prev=int(tile + 2 < tiles), push_next=1)
        out = b.reserve(size)
        b.op(
            Opcode.STORE, memory_id=MemId.OUT, sram_base=half, dram_base=out, y_size=1, x_size=size, x_stride=size,
            pop_prev=1, push_prev=int(tile + 2 < tiles),
        )  # fmt: skip
        b.expect(out, inp[tile * size : (tile + 1) * size] @ wgt[0].T)
    assert words["uop_begin"] < c.uop_depth


@program()
def tokens_every_flag_at_once(b: Builder) -> None:
    """One compute instruction pops from both sides and pushes to both sides."""
    b.serial = False
    values = b.random(MemId.ACC, 2)
    b.load(MemId.ACC, 0, values)
    words = b.uops([(0, 0, 0), (1, 1, 0)])
    nothing(b, Unit.COMPUTE, push_next=1)
    nothing(b, Unit.STORE, pop_prev=1, push_prev=1)
    b.load(MemId.INP, 0, b.random(MemId.INP, 2), push_next=1)
    b.op(
        Opcode.ALU, **words, iter_out=1, iter_in=1, alu_opcode=2, use_imm=1, imm=1,
        pop_prev=1, pop_next=1, push_prev=1, push_next=1,
    )  # fmt: skip
    b.load(MemId.INP, 0, b.random(MemId.INP, 2), pop_next=1)
    base = b.reserve(2)
    b.op(Opcode.STORE, memory_id=MemId.OUT, dram_base=base, y_size=1, x_size=2, x_stride=2, pop_prev=1)
    b.expect(base, values + 1)


def _full(queue: Queue) -> Maker:
    def maker(b: Builder) -> None:
        """As many tokens as the queue holds, and then all of them taken."""
        b.serial = False
        pusher, push, popper, pop = ENDS[queue]
        for _ in range(b.c.token_depth):
            nothing(b, pusher, **{push: 1})
        for _ in range(b.c.token_depth):
            nothing(b, popper, **{pop: 1})

    return maker


for _queue in Queue:
    program(name=f"tokens_full_{_queue.name.lower()}")(_full(_queue))


@program()
def tokens_of_nothing(b: Builder) -> None:
    """Instructions that do nothing carry an order from unit to unit."""
    b.serial = False
    first, second = b.random(MemId.ACC, 2), b.random(MemId.ACC, 2)
    b.load(MemId.ACC, 0, first)
    b.alu(AluOpcode.ADD, [(0, 0)], 0, iter_in=2, dst_factor_in=1, src_factor_in=1, push_next=1)
    base = b.reserve(2)
    b.op(Opcode.STORE, memory_id=MemId.OUT, dram_base=base, y_size=1, x_size=2, x_stride=2, pop_prev=1)
    b.expect(base, first)
    nothing(b, Unit.STORE, push_prev=1)
    nothing(b, Unit.COMPUTE, pop_next=1)
    b.load(MemId.ACC, 0, second)
    b.alu(AluOpcode.ADD, [(0, 0)], 0, iter_in=2, dst_factor_in=1, src_factor_in=1, push_next=1)
    nothing(b, Unit.STORE, pop_prev=1)
    base = b.reserve(2)
    b.op(Opcode.STORE, memory_id=MemId.OUT, dram_base=base, y_size=1, x_size=2, x_stride=2)
    b.expect(base, second)


@program()
def tokens_behind_a_full_queue(b: Builder) -> None:
    """The load unit waits for compute with more instructions than its queue holds behind it."""
    b.serial = False
    inp, wgt = b.random(MemId.INP, 2), b.random(MemId.WGT, 1)
    b.load(MemId.WGT, 0, wgt)
    b.load(MemId.INP, 0, inp, push_next=1)
    b.gemm([(0, 0, 0), (1, 1, 0)], reset=1, pop_prev=1)
    words = b.uops([(0, 0, 0), (1, 1, 0)])
    b.op(Opcode.GEMM, **words, iter_out=1, iter_in=50, push_prev=1)
    other = b.random(MemId.INP, 2)
    b.load(MemId.INP, 0, other, pop_next=1)
    for _ in range(2 * b.c.queue_depth):
        nothing(b, Unit.LOAD)
    nothing(b, Unit.LOAD, push_next=1)
    b.op(Opcode.GEMM, **words, iter_out=1, iter_in=1, pop_prev=1, push_next=1)
    base = b.reserve(2)
    b.op(Opcode.STORE, memory_id=MemId.OUT, dram_base=base, y_size=1, x_size=2, x_stride=2, pop_prev=1)
    b.expect(base, np.stack([50 * (inp[n] @ wgt[0].T) + other[n] @ wgt[0].T for n in range(2)]))


@program()
def tokens_store_before_overwrite(b: Builder) -> None:
    """A token from store keeps compute from writing out that is still being stored."""
    b.serial = False
    count = min(32, b.c.acc_depth // 2)
    first = b.random(MemId.ACC, count) >> 2
    b.load(MemId.ACC, 0, first)
    words = b.uops([(0, 0, 0)])
    span = {"iter_out": 1, "iter_in": count, "dst_factor_in": 1, "src_factor_in": 1}
    for turn in range(3):
        b.op(
            Opcode.ALU, **words, **span, alu_opcode=2, use_imm=1, imm=turn, pop_next=int(turn > 0), push_next=1
        )  # fmt: skip
        base = b.reserve(count)
        b.op(
            Opcode.STORE, memory_id=MemId.OUT, dram_base=base, y_size=1, x_size=count, x_stride=count, pop_prev=1,
            push_prev=int(turn < 2),
        )  # fmt: skip
        first = first + turn
        b.expect(base, first)


@program()
def tokens_read_back_what_was_stored(b: Builder) -> None:
    """What store has written is loaded again, ordered through compute."""
    b.serial = False
    values = b.random(MemId.ACC, 4)
    b.load(MemId.ACC, 0, values)
    b.alu(AluOpcode.ADD, [(0, 0)], 0, iter_in=4, dst_factor_in=1, src_factor_in=1, push_next=1)
    base = b.reserve(4)
    b.op(Opcode.STORE, memory_id=MemId.OUT, dram_base=base, y_size=1, x_size=4, x_stride=4, pop_prev=1, push_prev=1)
    b.expect(base, values)
    nothing(b, Unit.COMPUTE, pop_next=1)
    b.alu(AluOpcode.ADD, [(0, 0)], 1, iter_in=4, dst_factor_in=1, src_factor_in=1, push_next=1)
    again = b.reserve(4)
    b.op(Opcode.STORE, memory_id=MemId.OUT, dram_base=again, y_size=1, x_size=4, x_stride=4, pop_prev=1)
    b.expect(again, values + 1)
