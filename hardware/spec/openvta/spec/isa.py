# SPDX-License-Identifier: Apache-2.0
"""The instruction set: numbers, bit layouts as functions of a configuration, and routing.

Base profile: VTA ISA 0.0.2, bit for bit at the default configuration. Extensions use only what it
left unused. An instruction is 128 bits: word 0 is bits 63:0 and comes first in memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from openvta.spec.config import SRAM_INDEX_BITS, HardwareConfig
from openvta.spec.layout import Field, Layout

ISA_VERSION = 0x0100
"""Version in the ISA_VERSION register: major in bits 15:8, minor in bits 7:0."""

INSN_BYTES = 16
LOOP_BITS = 14
SHIFT_MAX = 31
PARAMETER_WORDS = 3
"""Consecutive acc elements that hold REQUANT's parameters: bias, multiplier, and :data:`PARAMETER_WORD`."""
PARAMETER_WORD = Layout(
    "PARAMETER",
    32,
    (
        Field("shift", 0, 6, doc="right shift"),
        Field("zero_point", 8, 8, doc="added to the result (signed, or unsigned with unsigned_out)"),
        Field("low", 16, 8, doc="lower clamp"),
        Field("high", 24, 8, doc="upper clamp"),
    ),
    ignored=((6, 2),),
)
"""The third parameter word of a lane."""


class Opcode(IntEnum):
    """Instruction opcodes (bits 2:0). 5 is kept for bit-serial GEMM, 7 is reserved; both are errors here."""

    LOAD = 0
    STORE = 1
    GEMM = 2
    FINISH = 3
    ALU = 4
    REQUANT = 6


class MemId(IntEnum):
    """Memory ids of LOAD and STORE. 5 and 6 (extension acc8) load 8-bit values into acc."""

    UOP = 0
    WGT = 1
    INP = 2
    ACC = 3
    OUT = 4
    ACC_INT8 = 5
    ACC_UINT8 = 6


class AluOpcode(IntEnum):
    """ALU opcodes. MAC, RSHR and MOV are the extension alu_plus."""

    MIN = 0
    MAX = 1
    ADD = 2
    SHR = 3
    MUL = 4
    MAC = 5
    RSHR = 6
    MOV = 7


class RequantMode(IntEnum):
    """Rounding of the requantizer; 6 and 7 are errors."""

    HALF_UP = 0
    HALF_EVEN = 1
    TFLITE_DOUBLE = 2
    TFLITE_RUY = 3
    FLOAT32 = 4
    FLOOR = 5


class Unit(IntEnum):
    """Hardware units, in the order of the token chain after fetch."""

    FETCH = 0
    LOAD = 1
    COMPUTE = 2
    STORE = 3


class Queue(IntEnum):
    """Dependence token queues, named from the unit that pushes to the unit that pops."""

    LOAD_TO_COMPUTE = 0
    COMPUTE_TO_LOAD = 1
    COMPUTE_TO_STORE = 2
    STORE_TO_COMPUTE = 3


class Cause(IntEnum):
    """Causes in the ERROR register. Where one instruction has several faults, the lowest cause is reported."""

    NONE = 0
    ILLEGAL_OPCODE = 1
    RESERVED_BITS = 2
    ILLEGAL_TOKEN = 3
    FINISH_ORDER = 4
    ILLEGAL_MEMORY = 5
    ILLEGAL_FIELD = 6
    INDEX_RANGE = 7
    TOKEN_OVERFLOW = 8
    BUS_READ = 9
    BUS_WRITE = 10
    WATCHDOG = 11


CAUSE_DOC: dict[Cause, str] = {
    Cause.NONE: "no error",
    Cause.ILLEGAL_OPCODE: "unknown instruction or ALU opcode, or one of an extension that is not built",
    Cause.RESERVED_BITS: "a reserved bit is not zero",
    Cause.ILLEGAL_TOKEN: "a token flag the unit has no queue for, or a push on FINISH",
    Cause.FINISH_ORDER: "FINISH before the last instruction, or a last instruction that is not FINISH",
    Cause.ILLEGAL_MEMORY: "memory id the instruction cannot use",
    Cause.ILLEGAL_FIELD: "fields that contradict each other or hold a reserved value",
    Cause.INDEX_RANGE: "a scratchpad index at or beyond the depth",
    Cause.TOKEN_OVERFLOW: "a push into a full dependence queue",
    Cause.BUS_READ: "SLVERR or DECERR on a read",
    Cause.BUS_WRITE: "SLVERR or DECERR on a write",
    Cause.WATCHDOG: "no retirement and no bus handshake for the watchdog bound",
}

TOKEN_FLAGS = ("pop_prev", "pop_next", "push_prev", "push_next")

LOAD_UNIT_MEMORIES = (MemId.INP, MemId.WGT)


def pops_and_pushes(unit: Unit) -> dict[str, Queue]:
    """The queue each token flag of a unit's instructions means; a flag that is missing is illegal there."""
    if unit is Unit.LOAD:
        return {"pop_next": Queue.COMPUTE_TO_LOAD, "push_next": Queue.LOAD_TO_COMPUTE}
    if unit is Unit.COMPUTE:
        return {
            "pop_prev": Queue.LOAD_TO_COMPUTE,
            "pop_next": Queue.STORE_TO_COMPUTE,
            "push_prev": Queue.COMPUTE_TO_LOAD,
            "push_next": Queue.COMPUTE_TO_STORE,
        }
    if unit is Unit.STORE:
        return {"pop_prev": Queue.COMPUTE_TO_STORE, "push_prev": Queue.STORE_TO_COMPUTE}
    return {}


def unit_of(opcode: int, memory_id: int) -> Unit:
    """The unit that executes an instruction of a legal opcode."""
    if opcode == Opcode.STORE:
        return Unit.STORE
    if opcode == Opcode.LOAD and memory_id in (MemId.INP, MemId.WGT):
        return Unit.LOAD
    return Unit.COMPUTE


@dataclass(frozen=True)
class Isa:
    """Every layout of one configuration."""

    config: HardwareConfig
    load: Layout
    store: Layout
    gemm: Layout
    alu: Layout
    requant: Layout
    finish: Layout
    uop: Layout

    def layout_of(self, opcode: int) -> Layout | None:
        """The layout of an opcode, or None where it is not an instruction of this configuration."""
        table = {
            Opcode.LOAD: self.load,
            Opcode.STORE: self.store,
            Opcode.GEMM: self.gemm,
            Opcode.FINISH: self.finish,
            Opcode.ALU: self.alu,
        }
        if self.config.has("requant"):
            table[Opcode.REQUANT] = self.requant
        return table.get(Opcode(opcode)) if opcode in {int(key) for key in table} else None

    def layouts(self) -> tuple[Layout, ...]:
        """All instruction layouts of this configuration, by opcode (requant only where it is built)."""
        base = (self.load, self.store, self.gemm, self.finish, self.alu)
        return (*base, self.requant) if self.config.has("requant") else base


def _head() -> list[Field]:
    return [
        Field("opcode", 0, 3, doc="instruction"),
        Field("pop_prev", 3, 1, doc="wait for a token of the previous unit"),
        Field("pop_next", 4, 1, doc="wait for a token of the next unit"),
        Field("push_prev", 5, 1, doc="give a token to the previous unit when done"),
        Field("push_next", 6, 1, doc="give a token to the next unit when done"),
    ]


def _pack(start: int, *items: tuple[str, int, str]) -> list[Field]:
    fields = []
    for name, width, doc in items:
        fields.append(Field(name, start, width, doc=doc))
        start += width
    return fields


def _transfer(name: str, padv: bool) -> Layout:
    fields = [
        *_head(),
        Field("memory_id", 7, 3, doc="scratchpad"),
        Field("sram_base", 10, SRAM_INDEX_BITS, doc="first scratchpad element"),
        Field("dram_base", 26, 32, doc="first element in device memory, counted from the memory type's base"),
        *_pack(
            64,
            ("y_size", 16, "rows"),
            ("x_size", 16, "elements a row"),
            ("x_stride", 16, "elements from row to row in device memory"),
            ("y_pad_0", 4, "padding rows above"),
            ("y_pad_1", 4, "padding rows below"),
            ("x_pad_0", 4, "padding elements left"),
            ("x_pad_1", 4, "padding elements right"),
        ),
    ]
    if padv:
        fields += [
            Field("pad_min", 23, 1, doc="pad with the lane type's minimum"),
            Field("pad_value_high", 24, 2, doc="pad value, bits 7:6"),
            Field("pad_value_low", 58, 6, doc="pad value, bits 5:0"),
        ]
    return Layout(name, 128, tuple(sorted(fields, key=lambda field: field.lo)))


def isa(config: HardwareConfig) -> Isa:
    """The layouts of a configuration. Widths: U, I, W, A are the index widths of uop, inp, wgt and acc."""
    u, i, w, a = config.uop_index_bits, config.inp_index_bits, config.wgt_index_bits, config.acc_index_bits
    sat = [Field("sat", 63, 1, doc="saturate on the way to out")] if config.has("sat") else []
    loops = [
        *_pack(
            8,
            ("uop_begin", u, "first micro-op"),
            ("uop_end", u + 1, "micro-op after the last"),
            ("iter_out", LOOP_BITS, "outer loop count"),
            ("iter_in", LOOP_BITS, "inner loop count"),
        )
    ]
    gemm = Layout(
        "GEMM",
        128,
        (
            *_head(),
            Field("reset", 7, 1, doc="write zero to acc[dst] instead"),
            *loops,
            *sat,
            *_pack(
                64,
                ("dst_factor_out", a, "acc step of the outer loop"),
                ("dst_factor_in", a, "acc step of the inner loop"),
                ("src_factor_out", i, "inp step of the outer loop"),
                ("src_factor_in", i, "inp step of the inner loop"),
                ("wgt_factor_out", w, "wgt step of the outer loop"),
                ("wgt_factor_in", w, "wgt step of the inner loop"),
            ),
        ),
    )
    alu_tail = _pack(
        64,
        ("dst_factor_out", a, "acc step of the outer loop"),
        ("dst_factor_in", a, "acc step of the inner loop"),
        ("src_factor_out", a, "source step of the outer loop"),
        ("src_factor_in", a, "source step of the inner loop"),
        ("alu_opcode", 3, "operation"),
        ("use_imm", 1, "operand is the immediate"),
    )
    alu = Layout(
        "ALU",
        128,
        (
            *_head(),
            *loops,
            *sat,
            *alu_tail,
            Field("imm", alu_tail[-1].hi + 1, 16, signed=True, doc="immediate"),
        ),
        ignored=((7, 1),),
    )
    requant = Layout(
        "REQUANT",
        128,
        (
            *_head(),
            Field("clear", 7, 1, doc="write zero to acc[data] as it is read"),
            *_pack(
                8,
                ("data_base", a, "first acc element"),
                ("param_base", a, "first of three consecutive acc elements with the parameters"),
                ("iter_out", LOOP_BITS, "outer loop count"),
                ("iter_in", LOOP_BITS, "inner loop count"),
                ("mode", 3, "rounding mode"),
                ("write_acc", 1, "write the result to acc[data] as well (not with clear)"),
                ("unsigned_out", 1, "zero point, clamps and result are unsigned"),
            ),
            *_pack(
                64,
                ("data_factor_out", a, "data step of the outer loop"),
                ("data_factor_in", a, "data step of the inner loop"),
                ("param_factor_out", a, "parameter step of the outer loop"),
                ("param_factor_in", a, "parameter step of the inner loop"),
            ),
        ),
    )
    finish = Layout("FINISH", 128, tuple(_head()), ignored=((7, 121),))
    uop = Layout(
        "UOP",
        32,
        tuple(
            _pack(
                0,
                ("dst", a, "acc index"),
                ("src", max(a, i), "inp index (GEMM) or acc index (ALU)"),
                ("wgt", 32 - a - max(a, i), "wgt index (GEMM); ignored by ALU"),
            )
        ),
    )
    padv = config.has("padv")
    return Isa(config, _transfer("LOAD", padv), _transfer("STORE", False), gemm, alu, requant, finish, uop)
