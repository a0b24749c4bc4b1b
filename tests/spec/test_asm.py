# SPDX-License-Identifier: Apache-2.0
"""The text form of programs keeps every bit, and refuses what it cannot mean."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openvta.spec import Opcode, Program, hash_text, load_config, make, named_configs, static_fault
from openvta.spec.asm import (
    AsmError,
    disassemble_word,
    format_program,
    format_programs,
    parse_config_line,
    parse_insn,
    parse_program,
    parse_programs,
)
from openvta.spec.errors import FormatError, SpecError
from openvta.spec.insn import isa_of
from openvta.spec.isa import AluOpcode, MemId, RequantMode

DEFAULT = load_config("default")


@pytest.mark.parametrize("name", named_configs())
@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_every_word_survives_text(name: str, data: st.DataObject) -> None:
    config = load_config(name)
    word = data.draw(st.integers(0, 2**128 - 1))
    if data.draw(st.booleans()):  # mostly legal: clear what must be zero
        layout = isa_of(config).layout_of(word & 7)
        if layout is not None:
            word &= ~(layout.reserved_mask | layout.ignored_mask)
    assert parse_insn(config, disassemble_word(config, word)) == word


@pytest.mark.parametrize("name", named_configs())
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_every_legal_instruction_has_a_mnemonic(name: str, data: st.DataObject) -> None:
    config = load_config(name)
    layout = data.draw(st.sampled_from(isa_of(config).layouts()))
    values = {
        field.name: data.draw(st.integers(field.minimum, field.maximum), label=field.name)
        for field in layout.fields
        if field.name != "opcode"
    }
    if "memory_id" in values:
        values["memory_id"] = data.draw(st.sampled_from([int(item) for item in MemId]))
    if "mode" in values:
        values["mode"] = data.draw(st.sampled_from([int(item) for item in RequantMode]))
    program = Program.assemble(config, [make(Opcode[layout.name], **values)])
    text = format_program(program)
    assert not text.startswith(".word")
    assert parse_program(config, text) == program


def test_text_of_known_instructions() -> None:
    program = Program.assemble(
        DEFAULT,
        [
            make(
                Opcode.LOAD,
                memory_id=MemId.INP,
                sram_base=3,
                dram_base=0x1234,
                y_size=1,
                x_size=2,
                x_stride=2,
                push_next=1,
            ),
            make(Opcode.LOAD, memory_id=MemId.ACC_UINT8, x_size=1, y_size=1, x_pad_1=15, pad_value=-1),
            make(Opcode.GEMM, pop_prev=1, reset=1, uop_end=8192, iter_out=1, iter_in=2),
            make(Opcode.ALU, alu_opcode=AluOpcode.SHR, use_imm=1, imm=-3, uop_end=1, iter_out=1, iter_in=1),
            make(Opcode.REQUANT, mode=RequantMode.TFLITE_RUY, data_base=5, iter_out=1, iter_in=1, clear=1),
            make(Opcode.STORE, memory_id=MemId.OUT, x_size=1, y_size=1),
            make(Opcode.FINISH),
        ],
    )
    assert format_program(program).splitlines() == [
        "load.inp push_next sram_base=3 dram_base=4660 y_size=1 x_size=2 x_stride=2",
        "load.acc_uint8 y_size=1 x_size=1 x_pad_1=15 pad_value=255",
        "gemm pop_prev reset uop_end=8192 iter_out=1 iter_in=2",
        "alu.shr uop_end=1 iter_out=1 iter_in=1 use_imm imm=-3",
        "requant.tflite_ruy clear data_base=5 iter_out=1 iter_in=1",
        "store.out y_size=1 x_size=1",
        "finish",
    ]


def test_several_programs_and_comments() -> None:
    one = Program.assemble(DEFAULT, [make(Opcode.FINISH)])
    two = Program.assemble(DEFAULT, [make(Opcode.GEMM, uop_end=3), make(Opcode.FINISH)])
    text = format_programs(DEFAULT, [one, two], title="two programs")
    assert parse_programs(DEFAULT, text) == (one, two)
    assert parse_config_line(text) == ("default", hash_text(DEFAULT))
    assert parse_program(DEFAULT, "\n; nothing\n# here\nGEMM uop_end=0x3 ; three\n finish  # end\n") == two
    assert parse_program(DEFAULT, "") == Program(DEFAULT, ())
    with pytest.raises(FormatError, match="2 segments"):
        parse_program(DEFAULT, text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("finish\ngem uop_end=1", r"line 2: mnemonic = gem: must be one of load, store"),
        ("load x_size=1", r"line 1: mnemonic = load: must be 'load\.' and one of uop, wgt"),
        ("load.dram x_size=1", r"line 1: mnemonic = load\.dram"),
        ("gemm.fast", r"line 1: mnemonic = gemm\.fast: 'gemm' takes nothing"),
        ("gemm uop_end=8193 iter_in=16384", r"line 1: iter_in = 16384: must be a number, 0\.\.16383"),
        ("gemm uop_end=many", r"line 1: uop_end = many: must be a number, 0\.\.16383"),
        ("gemm uop_end", r"line 1: uop_end = \(nothing\): must be uop_end=NUMBER"),
        ("gemm x_size=1", r"line 1: x_size = 1: no such field; GEMM has"),
        ("gemm opcode=1", r"line 1: opcode = 1: no such field"),
        ("gemm reset reset", r"line 1: reset = 1: is already set"),
        ("alu.add imm=32768", r"line 1: imm = 32768: must be a number, -32768\.\.32767"),
        ("load.inp pad_value=256", r"line 1: pad_value = 256: must be a number, -128\.\.255"),
        ("load.inp memory_id=1", r"line 1: memory_id = 1: is already set"),
        ("store.out pad_value=1", r"line 1: pad_value = 1: no such field"),
        (".word", r"line 1: \.word = \(nothing\)"),
        (".word 0x1ffffffffffffffffffffffffffffffff", r"line 1: \.word = 0x1f+: must be a number"),
        (".word " + "9" * 5000, r"line 1: \.word = 9+\.\.\.: must be a number"),
        (".segment 1", r"line 1: \.segment = 1: must be 0"),
        (".config default 0123", r"line 1: \.config = default 0123: assembling for 'default'"),
    ],
)
def test_faults_name_line_field_and_limit(text: str, message: str) -> None:
    with pytest.raises(AsmError, match=message):
        parse_programs(DEFAULT, text)


def test_extension_that_is_not_built() -> None:
    plain = DEFAULT.replace(name="plain", extensions=[])
    with pytest.raises(AsmError, match=r"mnemonic = requant\.half_up: not built in configuration 'plain'"):
        parse_program(plain, "requant.half_up")
    with pytest.raises(AsmError, match="sat = set: no such field"):
        parse_program(plain, "gemm sat")
    assert disassemble_word(plain, 6).endswith("; opcode 6 is not an instruction")


def test_word_out_of_range() -> None:
    with pytest.raises(SpecError, match="instruction word"):
        disassemble_word(DEFAULT, 1 << 128)


def test_the_guides_example_assembles() -> None:
    guide = (Path(__file__).parents[2] / "docs" / "guide" / "command.md").read_text("utf-8")
    text = guide.split("```text\n")[1].split("```")[0]
    (program,) = parse_programs(DEFAULT, text)
    faults = [static_fault(DEFAULT, word, last=n == len(program) - 1) for n, word in enumerate(program)]
    assert faults == [None] * 6
