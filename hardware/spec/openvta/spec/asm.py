# SPDX-License-Identifier: Apache-2.0
"""The text form of programs: one instruction a line, and back again to the same bits.

A line is a mnemonic (``load.inp``, ``store.out``, ``gemm``, ``alu.add``, ``requant.half_even``, ``finish``), bare words
for one-bit fields that are set (``push_next``, ``reset``, ``use_imm``) and ``field=value`` for the others that are not
zero, decimal or hexadecimal. ``;`` and ``#`` start a comment. A word that is no instruction of the configuration, or
that has bits set which no field names, is written ``.word 0x...``. ``.config NAME HASH`` says what the text was made
for, ``.segment N`` starts the next program of a bundle.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum

from openvta.spec.config import HardwareConfig
from openvta.spec.errors import EncodingError, FormatError, SpecError
from openvta.spec.insn import Insn, decode, encode, isa_of, make
from openvta.spec.isa import AluOpcode, MemId, Opcode, RequantMode
from openvta.spec.layout import Layout
from openvta.spec.program import Program
from openvta.spec.resolve import hash_text

MAX_TEXT_BYTES = 1 << 28
WORD_LIMIT = 1 << 128

_SELECTORS: dict[Opcode, tuple[str, type[IntEnum]]] = {
    Opcode.LOAD: ("memory_id", MemId),
    Opcode.STORE: ("memory_id", MemId),
    Opcode.ALU: ("alu_opcode", AluOpcode),
    Opcode.REQUANT: ("mode", RequantMode),
}
"""Fields that are part of the mnemonic, with the names of their values."""


class AsmError(FormatError):
    """A line of a program's text that is not an instruction; ``line`` counts from 1."""

    def __init__(self, line: int, field: str, value: object, limit: str) -> None:
        super().__init__(f"line {line}: {field} = {value}: {limit}")
        self.line = line
        self.field = field
        self.value = value
        self.limit = limit


# To text -----------------------------------------------------------------------------------------


def disassemble_insn(config: HardwareConfig, insn: Insn) -> str | None:
    """The text of an instruction, or None where a mnemonic field holds a value without a name."""
    layout = isa_of(config).layout_of(insn.opcode)
    if layout is None:
        return None
    parts = [insn.opcode.name.lower()]
    named = ""
    if insn.opcode in _SELECTORS:
        named, kind = _SELECTORS[insn.opcode]
        if insn[named] not in {int(member) for member in kind}:
            return None
        parts[0] += "." + kind(insn[named]).name.lower()
    for field in layout.fields:
        value = insn[field.name]
        if field.name in ("opcode", named) or not value or field.name.startswith("pad_value"):
            continue
        parts.append(field.name if field.width == 1 else f"{field.name}={value}")
    if insn.pad_value:
        parts.append(f"pad_value={insn.pad_value}")
    return " ".join(parts)


def disassemble_word(config: HardwareConfig, word: int) -> str:
    """One line for any 128-bit word: an instruction, or ``.word`` with a comment that says what it resembles.

    Args:
        config: the configuration whose layouts apply.
        word: 0 .. 2^128 - 1.

    Raises:
        SpecError: the word is outside that range.
    """
    if not 0 <= word < WORD_LIMIT:
        raise SpecError(f"instruction word = {word:#x}: must be 0..2^128 - 1")
    try:
        insn = decode(config, word)
    except SpecError:
        return f".word {word:#034x} ; opcode {word & 7} is not an instruction"
    text = disassemble_insn(config, insn)
    if text is not None and encode(config, insn) == word:
        return text
    if text is None:
        field = _SELECTORS[insn.opcode][0]
        return f".word {word:#034x} ; {insn.opcode.name.lower()} with {field}={insn[field]}"
    return f".word {word:#034x} ; {text}, and bits no field names"


def format_program(program: Program) -> str:
    """The text of a program, one line an instruction, without a header."""
    return "".join(disassemble_word(program.config, word) + "\n" for word in program)


def format_programs(config: HardwareConfig, programs: Iterable[Program], *, title: str = "") -> str:
    """The text of several programs (a bundle's segments), with the configuration they are for."""
    lines = [f"; {title}\n"] if title else []
    lines.append(f".config {config.name} {hash_text(config)}\n")
    for number, program in enumerate(programs):
        lines += [f".segment {number}\n", format_program(program)]
    return "".join(lines)


# From text ---------------------------------------------------------------------------------------


def parse_config_line(text: str) -> tuple[str, str] | None:
    """(name, hash) of a text's ``.config`` line, or None where it has none."""
    for number, line in enumerate(text.splitlines(), 1):
        tokens = _tokens(line)
        if tokens and tokens[0] == ".config":
            return _config_line(number, tokens)
        if tokens:
            return None
    return None


def parse_insn(config: HardwareConfig, line: str, number: int = 1) -> int:
    """The 128-bit word of one line.

    Raises:
        AsmError: naming the field, the value and the limit.
    """
    tokens = _tokens(line)
    if not tokens:
        raise AsmError(number, "instruction", "(nothing)", "must be a mnemonic or .word")
    if tokens[0] == ".word":
        if len(tokens) != 2:
            raise AsmError(number, ".word", " ".join(tokens[1:]) or "(nothing)", "must be followed by one number")
        return _number(number, ".word", tokens[1], 0, WORD_LIMIT - 1)
    opcode, selected = _mnemonic(config, number, tokens[0])
    layout = isa_of(config).layout_of(opcode)
    if layout is None:
        raise AsmError(number, "mnemonic", tokens[0], f"not built in configuration '{config.name}'")
    values = dict(selected)
    for token in tokens[1:]:
        name, value = _operand(layout, number, token)
        if name in values:
            raise AsmError(number, name, value, "is already set by this line")
        values[name] = value
    try:
        return encode(config, make(opcode, **values))
    except EncodingError as error:
        raise AsmError(number, error.field, error.value, error.limit) from error


def parse_programs(config: HardwareConfig, text: str) -> tuple[Program, ...]:
    """Every program of a text: one, or one for each ``.segment``.

    Raises:
        AsmError: a line that is not an instruction, a segment out of order, or a text for another configuration.
        FormatError: a text longer than 256 MiB.
    """
    if len(text) > MAX_TEXT_BYTES:
        raise FormatError(f"program text of {len(text)} characters: at most {MAX_TEXT_BYTES}")
    programs: list[list[int]] = []
    for number, line in enumerate(text.splitlines(), 1):
        tokens = _tokens(line)
        if not tokens:
            continue
        if tokens[0] == ".config":
            name, digest = _config_line(number, tokens)
            if digest != hash_text(config):
                raise AsmError(
                    number,
                    ".config",
                    f"{name} {digest}",
                    f"assembling for '{config.name}' {hash_text(config)}: choose the same",
                )
        elif tokens[0] == ".segment":
            if len(tokens) != 2:
                raise AsmError(
                    number, ".segment", " ".join(tokens[1:]) or "(nothing)", "must be followed by one number"
                )
            _number(number, ".segment", tokens[1], len(programs), len(programs))
            programs.append([])
        else:
            if not programs:
                programs.append([])
            programs[-1].append(parse_insn(config, line, number))
    return tuple(Program(config, tuple(words)) for words in programs)


def parse_program(config: HardwareConfig, text: str) -> Program:
    """The only program of a text (an empty text is an empty program).

    Raises:
        AsmError, FormatError: as :func:`parse_programs`; also where there are several.
    """
    programs = parse_programs(config, text)
    if len(programs) > 1:
        raise FormatError(f"program text with {len(programs)} segments: must be one")
    return programs[0] if programs else Program(config, ())


def _tokens(line: str) -> list[str]:
    for mark in ";#":
        line = line.partition(mark)[0]
    return line.split()


def _config_line(number: int, tokens: list[str]) -> tuple[str, str]:
    if len(tokens) != 3:
        raise AsmError(number, ".config", " ".join(tokens[1:]) or "(nothing)", "must be followed by a name and a hash")
    return tokens[1], tokens[2]


def _mnemonic(config: HardwareConfig, number: int, token: str) -> tuple[Opcode, dict[str, int]]:
    head, dot, tail = token.lower().partition(".")
    names = {member.name.lower(): member for member in Opcode}
    if head not in names:
        raise AsmError(number, "mnemonic", token, f"must be one of {', '.join(names)}")
    opcode = names[head]
    if opcode not in _SELECTORS:
        if dot:
            raise AsmError(number, "mnemonic", token, f"'{head}' takes nothing after a dot")
        return opcode, {}
    field, kind = _SELECTORS[opcode]
    members = {member.name.lower(): int(member) for member in kind}
    if tail not in members:
        raise AsmError(number, "mnemonic", token, f"must be '{head}.' and one of {', '.join(members)}")
    return opcode, {field: members[tail]}


def _operand(layout: Layout, number: int, token: str) -> tuple[str, int]:
    name, equals, text = token.partition("=")
    fields = {field.name: field for field in layout.fields}
    if name == "pad_value" and "pad_value_low" in fields:
        if not equals:
            raise AsmError(number, name, "(nothing)", "must be pad_value=NUMBER")
        return name, _number(number, name, text, -128, 255)
    field = fields.get(name)
    if field is None or name == "opcode" or name.startswith("pad_value"):
        known = [key for key in fields if key != "opcode" and not key.startswith("pad_value")]
        raise AsmError(number, name, text or "set", f"no such field; {layout.name} has {', '.join(known)}")
    if not equals:
        if field.width != 1:
            raise AsmError(number, name, "(nothing)", f"must be {name}=NUMBER ({field.minimum}..{field.maximum})")
        return name, 1
    return name, _number(number, name, text, field.minimum, field.maximum)


def _number(number: int, field: str, text: str, low: int, high: int) -> int:
    limit = f"must be {low}" if low == high else f"must be a number, {low}..{high if high < 1 << 64 else hex(high)}"
    if len(text) > 64:
        raise AsmError(number, field, text[:20] + "...", limit)
    try:
        value = int(text, 0)
    except ValueError:
        raise AsmError(number, field, text or "(nothing)", limit) from None
    if not low <= value <= high:
        raise AsmError(number, field, text, limit)
    return value
