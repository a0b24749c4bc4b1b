# SPDX-License-Identifier: Apache-2.0
"""The instruction set: the original's bits spelled out by hand, numbers, routing, and what decode refuses."""

from __future__ import annotations

import pytest

from openvta.spec import Cause, EncodingError, MemId, Opcode, SpecError, decode, encode, load_config, make, static_fault
from openvta.spec.insn import Insn, isa_of
from openvta.spec.isa import AluOpcode, Queue, RequantMode, Unit, pops_and_pushes, unit_of

DEFAULT = load_config("default")
PLAIN = DEFAULT.replace(name="plain", extensions=[])

# The original's words at its default configuration: field, highest bit, lowest bit.
HEAD = {"opcode": (2, 0), "pop_prev": (3, 3), "pop_next": (4, 4), "push_prev": (5, 5), "push_next": (6, 6)}
TRANSFER = HEAD | {
    "memory_id": (9, 7),
    "dram_base": (57, 26),
    "y_size": (79, 64),
    "x_size": (95, 80),
    "x_stride": (111, 96),
    "y_pad_0": (115, 112),
    "y_pad_1": (119, 116),
    "x_pad_0": (123, 120),
    "x_pad_1": (127, 124),
}
LOOPS = HEAD | {"uop_begin": (20, 8), "uop_end": (34, 21), "iter_out": (48, 35), "iter_in": (62, 49)}
GEMM = LOOPS | {
    "reset": (7, 7),
    "dst_factor_out": (74, 64),
    "dst_factor_in": (85, 75),
    "src_factor_out": (96, 86),
    "src_factor_in": (107, 97),
    "wgt_factor_out": (117, 108),
    "wgt_factor_in": (127, 118),
}
ALU = LOOPS | {
    "dst_factor_out": (74, 64),
    "dst_factor_in": (85, 75),
    "src_factor_out": (96, 86),
    "src_factor_in": (107, 97),
    "alu_opcode": (110, 108),
    "use_imm": (111, 111),
    "imm": (127, 112),
}
UOP = {"dst": (10, 0), "src": (21, 11), "wgt": (31, 22)}


@pytest.mark.parametrize("config", [DEFAULT, PLAIN], ids=lambda config: config.name)
@pytest.mark.parametrize(
    ("layout", "bits"), [("load", TRANSFER), ("store", TRANSFER), ("gemm", GEMM), ("alu", ALU), ("uop", UOP)]
)
def test_original_bit_positions(config: object, layout: str, bits: dict[str, tuple[int, int]]) -> None:
    found = getattr(isa_of(config), layout)  # type: ignore[arg-type]
    for name, (high, low) in bits.items():
        field = found.field(name)
        assert (field.hi, field.lo) == (high, low), name
    assert found.field("imm").signed if layout == "alu" else True


def test_scratchpad_address_starts_where_the_original_has_it() -> None:
    """The original gives sram_base 16 bits (25:10); no buffer here needs more than 13, the rest are pad value bits."""
    load, store = isa_of(DEFAULT).load, isa_of(DEFAULT).store
    assert load.field("sram_base").lo == store.field("sram_base").lo == 10
    assert store.reserved_mask & 0x7 << 23 == 0x7 << 23
    assert {
        name: (load.field(name).hi, load.field(name).lo) for name in ("pad_min", "pad_value_high", "pad_value_low")
    } == {
        "pad_min": (23, 23),
        "pad_value_high": (25, 24),
        "pad_value_low": (63, 58),
    }


@pytest.mark.parametrize(
    ("insn", "word"),
    [
        # load.inp push_next sram_base=5 dram_base=0x1234 y_size=2 x_size=3 x_stride=7 pads 1 2 3 4
        (
            make(Opcode.LOAD, memory_id=2, push_next=1, sram_base=5, dram_base=0x1234, y_size=2, x_size=3, x_stride=7,
                 y_pad_0=1, y_pad_1=2, x_pad_0=3, x_pad_1=4),
            0 | 1 << 6 | 2 << 7 | 5 << 10 | 0x1234 << 26 | 2 << 64 | 3 << 80 | 7 << 96
            | 1 << 112 | 2 << 116 | 3 << 120 | 4 << 124,
        ),
        (
            make(Opcode.GEMM, pop_prev=1, reset=1, uop_begin=3, uop_end=8192, iter_out=14, iter_in=16383,
                 dst_factor_out=2047, src_factor_in=1, wgt_factor_in=1023),
            2 | 1 << 3 | 1 << 7 | 3 << 8 | 8192 << 21 | 14 << 35 | 16383 << 49 | 2047 << 64 | 1 << 97 | 1023 << 118,
        ),
        (
            make(Opcode.ALU, push_prev=1, uop_end=1, iter_out=1, iter_in=1, alu_opcode=AluOpcode.SHR, use_imm=1,
                 imm=-2),
            4 | 1 << 5 | 1 << 21 | 1 << 35 | 1 << 49 | 3 << 108 | 1 << 111 | 0xFFFE << 112,
        ),
        (make(Opcode.STORE, memory_id=4, pop_prev=1, x_size=1, y_size=1), 1 | 1 << 3 | 4 << 7 | 1 << 64 | 1 << 80),
        (make(Opcode.FINISH, pop_next=1), 3 | 1 << 4),
    ],
)  # fmt: skip
def test_words_by_hand(insn: Insn, word: int) -> None:
    assert encode(DEFAULT, insn) == word
    assert decode(DEFAULT, word) == insn
    assert encode(PLAIN, insn) == word, "a base instruction does not depend on extensions"


def test_numbers_of_the_original() -> None:
    assert {op.name: int(op) for op in Opcode} == {
        "LOAD": 0,
        "STORE": 1,
        "GEMM": 2,
        "FINISH": 3,
        "ALU": 4,
        "REQUANT": 6,
    }
    assert {m.name: int(m) for m in MemId if m <= 5} == {
        "UOP": 0,
        "WGT": 1,
        "INP": 2,
        "ACC": 3,
        "OUT": 4,
        "ACC_INT8": 5,
    }
    assert {a.name: int(a) for a in AluOpcode if a <= 4} == {"MIN": 0, "MAX": 1, "ADD": 2, "SHR": 3, "MUL": 4}


@pytest.mark.parametrize(
    ("opcode", "memory", "unit"),
    [
        (Opcode.LOAD, MemId.INP, Unit.LOAD),
        (Opcode.LOAD, MemId.WGT, Unit.LOAD),
        (Opcode.LOAD, MemId.UOP, Unit.COMPUTE),
        (Opcode.LOAD, MemId.ACC, Unit.COMPUTE),
        (Opcode.LOAD, MemId.ACC_UINT8, Unit.COMPUTE),
        (Opcode.STORE, MemId.OUT, Unit.STORE),
        (Opcode.STORE, MemId.UOP, Unit.STORE),
        (Opcode.GEMM, 0, Unit.COMPUTE),
        (Opcode.ALU, 0, Unit.COMPUTE),
        (Opcode.REQUANT, 0, Unit.COMPUTE),
        (Opcode.FINISH, 0, Unit.COMPUTE),
    ],
)
def test_routing(opcode: Opcode, memory: int, unit: Unit) -> None:
    assert unit_of(opcode, memory) is unit


def test_every_queue_has_one_pusher_and_one_popper() -> None:
    for queue in Queue:
        ends = [(unit, flag) for unit in Unit for flag, target in pops_and_pushes(unit).items() if target is queue]
        assert sorted(flag.split("_")[0] for _, flag in ends) == ["pop", "push"]
        assert len({unit for unit, _ in ends}) == 2


CASES: list[tuple[Insn | int, Cause]] = [
    (5, Cause.ILLEGAL_OPCODE),
    (7, Cause.ILLEGAL_OPCODE),
    (encode(DEFAULT, make(Opcode.LOAD, memory_id=2)) | 1 << 25 << 0, Cause.NONE),
    (encode(DEFAULT, make(Opcode.STORE, memory_id=4)) | 1 << 23, Cause.RESERVED_BITS),
    (encode(DEFAULT, make(Opcode.STORE, memory_id=4)) | 1 << 63, Cause.RESERVED_BITS),
    (encode(DEFAULT, make(Opcode.REQUANT)) | 1 << 127, Cause.RESERVED_BITS),
    (encode(DEFAULT, make(Opcode.ALU)) | 1 << 7, Cause.NONE),
    (make(Opcode.ALU, alu_opcode=2, imm=77), Cause.NONE),
    (make(Opcode.ALU, alu_opcode=AluOpcode.MAC, imm=1), Cause.RESERVED_BITS),
    (make(Opcode.ALU, alu_opcode=AluOpcode.MAC, imm=1, use_imm=1), Cause.NONE),
    (make(Opcode.ALU, alu_opcode=AluOpcode.MOV, imm=-1), Cause.RESERVED_BITS),
    (make(Opcode.ALU, alu_opcode=AluOpcode.RSHR, imm=32, use_imm=1), Cause.RESERVED_BITS),
    (make(Opcode.ALU, alu_opcode=AluOpcode.RSHR, imm=31 - 0x8000, use_imm=1), Cause.NONE),
    (make(Opcode.ALU, alu_opcode=AluOpcode.RSHR, imm=1), Cause.RESERVED_BITS),
    (make(Opcode.ALU, alu_opcode=AluOpcode.RSHR, imm=-0x8000), Cause.NONE),
    (make(Opcode.LOAD, memory_id=2, pop_prev=1), Cause.ILLEGAL_TOKEN),
    (make(Opcode.LOAD, memory_id=2, push_prev=1), Cause.ILLEGAL_TOKEN),
    (make(Opcode.LOAD, memory_id=3, pop_prev=1, push_prev=1, pop_next=1, push_next=1), Cause.NONE),
    (make(Opcode.STORE, memory_id=4, pop_next=1), Cause.ILLEGAL_TOKEN),
    (make(Opcode.STORE, memory_id=4, push_next=1), Cause.ILLEGAL_TOKEN),
    (make(Opcode.LOAD, memory_id=4, x_size=1, y_size=1), Cause.ILLEGAL_MEMORY),
    (make(Opcode.LOAD, memory_id=7, x_size=1, y_size=1), Cause.ILLEGAL_MEMORY),
    *[(make(Opcode.STORE, memory_id=m, x_size=1, y_size=1), Cause.ILLEGAL_MEMORY) for m in (0, 1, 2, 3, 5, 6, 7)],
    (make(Opcode.STORE, memory_id=4, x_size=1, y_size=1, x_pad_0=1), Cause.ILLEGAL_FIELD),
    (make(Opcode.LOAD, memory_id=0, x_size=1, y_size=1, pad_min=1), Cause.ILLEGAL_FIELD),
    (make(Opcode.LOAD, memory_id=0, x_size=1, y_size=1, pad_value=1), Cause.ILLEGAL_FIELD),
    (make(Opcode.LOAD, memory_id=2, x_size=1, y_size=1, pad_min=1, pad_value=1), Cause.ILLEGAL_FIELD),
    (make(Opcode.STORE, memory_id=0), Cause.NONE),
    (make(Opcode.STORE, memory_id=0, x_size=1), Cause.NONE),
    (make(Opcode.LOAD, memory_id=4, y_size=1, x_pad_0=1), Cause.NONE),
    (make(Opcode.GEMM, uop_begin=2, uop_end=1), Cause.ILLEGAL_FIELD),
    (make(Opcode.GEMM, uop_begin=2, uop_end=2), Cause.NONE),
    (make(Opcode.GEMM, uop_end=8192), Cause.NONE),
    (make(Opcode.GEMM, uop_end=8193), Cause.INDEX_RANGE),
    (make(Opcode.REQUANT, mode=6), Cause.ILLEGAL_FIELD),
    (make(Opcode.REQUANT, mode=7), Cause.ILLEGAL_FIELD),
    (make(Opcode.REQUANT, clear=1, write_acc=1), Cause.ILLEGAL_FIELD),
    *[(make(Opcode.REQUANT, mode=mode), Cause.NONE) for mode in RequantMode],
]  # fmt: skip


@pytest.mark.parametrize(("insn", "cause"), CASES)
def test_static_faults(insn: Insn | int, cause: Cause) -> None:
    word = insn if isinstance(insn, int) else encode(DEFAULT, insn)
    fault = static_fault(DEFAULT, word, last=False)
    assert (Cause.NONE if fault is None else fault.cause) is cause


def test_finish_order() -> None:
    finish = encode(DEFAULT, make(Opcode.FINISH))
    assert static_fault(DEFAULT, finish, last=True) is None
    early = static_fault(DEFAULT, finish, last=False)
    missing = static_fault(DEFAULT, encode(DEFAULT, make(Opcode.GEMM)), last=True)
    assert early is not None and early.cause is Cause.FINISH_ORDER
    assert missing is not None and missing.cause is Cause.FINISH_ORDER
    pushes = static_fault(DEFAULT, encode(DEFAULT, make(Opcode.FINISH, push_next=1)), last=True)
    assert pushes is not None and pushes.cause is Cause.ILLEGAL_TOKEN


def test_extensions_are_refused_where_they_are_not_built() -> None:
    for word in (6, encode(DEFAULT, make(Opcode.ALU, alu_opcode=AluOpcode.MOV))):
        fault = static_fault(PLAIN, word, last=False)
        assert fault is not None and fault.cause is Cause.ILLEGAL_OPCODE
    for insn in (
        make(Opcode.GEMM, sat=1),
        make(Opcode.LOAD, memory_id=2, pad_min=1),
        make(Opcode.LOAD, memory_id=2, pad_value=1),
    ):
        fault = static_fault(PLAIN, encode(DEFAULT, insn), last=False)
        assert fault is not None and fault.cause is Cause.RESERVED_BITS
        with pytest.raises(EncodingError, match="no such field"):
            encode(PLAIN, insn)
    fault = static_fault(PLAIN, encode(PLAIN, make(Opcode.LOAD, memory_id=5, x_size=1, y_size=1)), last=False)
    assert fault is not None and fault.cause is Cause.ILLEGAL_MEMORY
    with pytest.raises(EncodingError, match="not built in configuration 'plain'"):
        encode(PLAIN, make(Opcode.REQUANT))
    with pytest.raises(SpecError, match="opcode 6 is not an instruction"):
        decode(PLAIN, 6)


def test_pad_value_is_eight_raw_bits() -> None:
    assert make(Opcode.LOAD, pad_value=-1).pad_value == make(Opcode.LOAD, pad_value=255).pad_value == 255
    with pytest.raises(EncodingError, match=r"LOAD\.pad_value = 256: must be -128\.\.255"):
        make(Opcode.LOAD, pad_value=256)
