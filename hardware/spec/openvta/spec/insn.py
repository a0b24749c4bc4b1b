# SPDX-License-Identifier: Apache-2.0
"""Instructions as values: encode, decode, and the static legality rules every backend implements.

An instruction whose ``x_size`` or ``y_size`` is zero, whose loop counts are zero or whose micro-op
range is empty does nothing, but its tokens count.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from openvta.spec.config import HardwareConfig
from openvta.spec.errors import EncodingError, SpecError
from openvta.spec.isa import (
    TOKEN_FLAGS,
    AluOpcode,
    Cause,
    Isa,
    MemId,
    Opcode,
    RequantMode,
    Unit,
    isa,
    pops_and_pushes,
    unit_of,
)

BASE_ALU = (AluOpcode.MIN, AluOpcode.MAX, AluOpcode.ADD, AluOpcode.SHR, AluOpcode.MUL)


@lru_cache(maxsize=64)
def isa_of(config: HardwareConfig) -> Isa:
    """Cached :func:`openvta.spec.isa.isa`."""
    return isa(config)


@dataclass(frozen=True)
class Insn:
    """One decoded instruction: opcode and every field's value (absent fields are zero)."""

    opcode: Opcode
    fields: Mapping[str, int] = field(default_factory=dict)

    def __getitem__(self, name: str) -> int:
        return self.fields.get(name, 0)

    @property
    def unit(self) -> Unit:
        """The unit that executes it."""
        return unit_of(self.opcode, self["memory_id"])

    @property
    def pad_value(self) -> int:
        """The 8 raw bits of a LOAD's pad value (0..255)."""
        return self["pad_value_high"] << 6 | self["pad_value_low"]

    @property
    def is_noop(self) -> bool:
        """Whether it only moves tokens."""
        if self.opcode in (Opcode.LOAD, Opcode.STORE):
            return self["x_size"] == 0 or self["y_size"] == 0
        if self.opcode in (Opcode.GEMM, Opcode.ALU):
            return self["iter_out"] == 0 or self["iter_in"] == 0 or self["uop_begin"] == self["uop_end"]
        if self.opcode is Opcode.REQUANT:
            return self["iter_out"] == 0 or self["iter_in"] == 0
        return False


def make(opcode: Opcode, **values: int) -> Insn:
    """An instruction from field values; ``pad_value=v`` (int8 or uint8) fills the two pad value fields."""
    fields = {name: int(value) for name, value in values.items()}
    if "pad_value" in fields:
        value = fields.pop("pad_value")
        if not -128 <= value <= 255:
            raise EncodingError(opcode.name, "pad_value", value, "must be -128..255 (8 bits)")
        raw = value & 0xFF
        fields["pad_value_high"], fields["pad_value_low"] = raw >> 6, raw & 0x3F
    fields.pop("opcode", None)
    return Insn(opcode, {name: value for name, value in fields.items() if value})


def encode(config: HardwareConfig, insn: Insn) -> int:
    """The 128-bit word of an instruction.

    Raises:
        EncodingError: a field this configuration lacks, or a value out of range.
    """
    layout = isa_of(config).layout_of(insn.opcode)
    if layout is None:
        raise EncodingError(insn.opcode.name, "opcode", int(insn.opcode), f"not built in configuration '{config.name}'")
    return layout.encode({"opcode": int(insn.opcode), **insn.fields})


def decode(config: HardwareConfig, word: int) -> Insn:
    """The instruction in a 128-bit word.

    Raises:
        SpecError: the opcode is not an instruction of this configuration.
    """
    layout = isa_of(config).layout_of(word & 7)
    if layout is None:
        raise SpecError(f"opcode {word & 7} is not an instruction of configuration '{config.name}'")
    values = layout.decode(word)
    del values["opcode"]
    return Insn(Opcode(word & 7), {name: value for name, value in values.items() if value})


@dataclass(frozen=True)
class Fault:
    """Why an instruction is illegal."""

    cause: Cause
    detail: str


def static_fault(config: HardwareConfig, word: int, *, last: bool) -> Fault | None:
    """The fault that decode finds in a word, or None: the rule behind every backend's decoder.

    Checks are made in the order of the causes; the first that fails is the answer. Index ranges that
    depend on micro-ops or loops are found while the instruction runs.

    Args:
        config: the configuration.
        word: 128-bit instruction.
        last: whether it is the last instruction of the stream.
    """
    tables = isa_of(config)
    layout = tables.layout_of(word & 7)
    if layout is None:
        return Fault(Cause.ILLEGAL_OPCODE, f"opcode {word & 7} is not an instruction of this configuration")
    insn = decode(config, word)
    op = insn.opcode
    if op is Opcode.ALU and insn["alu_opcode"] not in BASE_ALU and not config.has("alu_plus"):
        return Fault(Cause.ILLEGAL_OPCODE, f"ALU opcode {insn['alu_opcode']} needs the extension alu_plus")
    reserved = word & layout.reserved_mask
    if op is Opcode.ALU:
        reserved |= _alu_reserved(insn, word, layout.field("imm").lo)
    if reserved:
        return Fault(Cause.RESERVED_BITS, f"reserved bit {(reserved & -reserved).bit_length() - 1} is not zero")
    return _semantic_fault(config, insn, last)


def _alu_reserved(insn: Insn, word: int, imm_lo: int) -> int:
    """Bits of the immediate that an alu_plus operation does not use must be zero (base operations ignore them)."""
    op, use_imm = insn["alu_opcode"], insn["use_imm"]
    if op == AluOpcode.RSHR:
        return word & ((0x7FE0 if use_imm else 0x7FFF) << imm_lo)
    if op in (AluOpcode.MAC, AluOpcode.MOV) and not use_imm:
        return word & (0xFFFF << imm_lo)
    return 0


def _semantic_fault(config: HardwareConfig, insn: Insn, last: bool) -> Fault | None:
    op = insn.opcode
    legal = pops_and_pushes(insn.unit)
    for flag in TOKEN_FLAGS:
        if insn[flag] and flag not in legal:
            return Fault(Cause.ILLEGAL_TOKEN, f"{flag}: the {insn.unit.name.lower()} unit has no such queue")
        if insn[flag] and flag.startswith("push") and op is Opcode.FINISH:
            return Fault(Cause.ILLEGAL_TOKEN, f"{flag}: FINISH cannot push")
    if (op is Opcode.FINISH) != last:
        return Fault(Cause.FINISH_ORDER, "FINISH must be the last instruction, and the last must be FINISH")
    if op in (Opcode.LOAD, Opcode.STORE):
        return None if insn.is_noop else _transfer_fault(config, insn)
    if op in (Opcode.GEMM, Opcode.ALU):
        if insn["uop_begin"] > insn["uop_end"]:
            return Fault(Cause.ILLEGAL_FIELD, f"uop_begin {insn['uop_begin']} is beyond uop_end {insn['uop_end']}")
        if insn["uop_end"] > config.uop_depth:
            return Fault(Cause.INDEX_RANGE, f"uop_end {insn['uop_end']} is beyond the uop depth {config.uop_depth}")
    if op is Opcode.REQUANT:
        if insn["mode"] not in {int(mode) for mode in RequantMode}:
            return Fault(Cause.ILLEGAL_FIELD, f"requant mode {insn['mode']} is reserved")
        if insn["clear"] and insn["write_acc"]:
            return Fault(Cause.ILLEGAL_FIELD, "clear and write_acc exclude each other")
    return None


def _transfer_fault(config: HardwareConfig, insn: Insn) -> Fault | None:
    memory = insn["memory_id"]
    if insn.opcode is Opcode.STORE:
        if memory != MemId.OUT:
            return Fault(Cause.ILLEGAL_MEMORY, f"STORE from memory id {memory}: only out (4) can be stored")
        if insn["y_pad_0"] or insn["y_pad_1"] or insn["x_pad_0"] or insn["x_pad_1"]:
            return Fault(Cause.ILLEGAL_FIELD, "STORE cannot pad")
        return None
    legal = {MemId.UOP, MemId.WGT, MemId.INP, MemId.ACC}
    if config.has("acc8"):
        legal |= {MemId.ACC_INT8, MemId.ACC_UINT8}
    if memory not in {int(item) for item in legal}:
        return Fault(Cause.ILLEGAL_MEMORY, f"LOAD into memory id {memory}")
    if memory == MemId.UOP and (insn["pad_min"] or insn.pad_value):
        return Fault(Cause.ILLEGAL_FIELD, "micro-ops can be padded with zero only")
    if insn["pad_min"] and insn.pad_value:
        return Fault(Cause.ILLEGAL_FIELD, "pad_min and a pad value exclude each other")
    return None
