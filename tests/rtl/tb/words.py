# SPDX-License-Identifier: Apache-2.0
"""Instruction words of every kind, legal and not, for any configuration."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import product

from openvta.spec.config import HardwareConfig
from openvta.spec.insn import isa_of, static_fault
from openvta.spec.isa import MemId, Opcode, RequantMode
from openvta.spec.layout import Layout

INTERESTING = {
    "uop_begin",
    "uop_end",
    "memory_id",
    "mode",
    "clear",
    "write_acc",
    "x_size",
    "y_size",
    "alu_opcode",
    "use_imm",
}


def layouts(config: HardwareConfig) -> dict[int, Layout]:
    """The layout of every opcode of the configuration."""
    found = {opcode: isa_of(config).layout_of(opcode) for opcode in range(8)}
    return {opcode: layout for opcode, layout in found.items() if layout is not None}


def any_fields(config: HardwareConfig, rng: random.Random) -> int:
    """A word of a known opcode with every field random; often within limits, often not."""
    opcode, layout = rng.choice(list(layouts(config).items()))
    word = opcode
    for field in layout.fields:
        if field.name == "opcode":
            continue
        value = rng.getrandbits(field.width) if rng.random() < 0.5 else rng.choice((0, 1, (1 << field.width) - 1))
        if field.name.startswith(("pop", "push")) and rng.random() < 0.6:
            value = 0
        if field.name in ("uop_begin", "uop_end") and rng.random() < 0.7:
            value = max(0, min(config.uop_depth + rng.choice((-1, 0, 1)), (1 << field.width) - 1))
        if field.name.endswith(("pad_0", "pad_1")) and opcode == Opcode.STORE and rng.random() < 0.8:
            value = 0
        if field.name == "imm" and rng.random() < 0.5:
            value = rng.choice((0, 1 << 15, 31, 1 << rng.randrange(16)))
        word |= value << field.lo
    return word


def legal(config: HardwareConfig, rng: random.Random, *, last: bool = False) -> int:
    """A word with no static fault."""
    while True:
        word = int(Opcode.FINISH) if last else any_fields(config, rng)
        if last:
            word |= rng.getrandbits(2) << 3 | rng.getrandbits(121) << 7
        if static_fault(config, word, last=last) is None:
            return word


def directed(config: HardwareConfig) -> Iterator[int]:
    """Words around every rule: every bit alone, every token set, every pair of interesting values."""
    for opcode, layout in layouts(config).items():
        for bit in range(3, 128):
            yield opcode | 1 << bit
        plain = {field.name: field for field in layout.fields if field.name in INTERESTING}
        for flags in range(16):
            for memory in MemId if "memory_id" in plain else (0,):
                yield opcode | flags << 3 | (int(memory) << plain["memory_id"].lo if "memory_id" in plain else 0)
        base = opcode
        if "x_size" in plain:
            base |= 1 << plain["x_size"].lo | 1 << plain["y_size"].lo
        for first, second in product(plain.values(), repeat=2):
            for a, b in product(_values(config, first.width, first.name), _values(config, second.width, second.name)):
                word = base & ~first.mask & ~second.mask
                yield word | a << first.lo | ((b << second.lo) & second.mask if second is not first else 0)
        if "memory_id" in plain:
            for memory in range(8):
                for bit in range(128):
                    yield base & ~plain["memory_id"].mask | memory << plain["memory_id"].lo | 1 << bit
        if "alu_opcode" in plain:
            imm = layout.field("imm")
            for alu, use_imm, bit in product(range(8), range(2), range(imm.width)):
                yield opcode | alu << plain["alu_opcode"].lo | use_imm << plain["use_imm"].lo | 1 << (imm.lo + bit)


def _values(config: HardwareConfig, width: int, name: str) -> tuple[int, ...]:
    top = (1 << width) - 1
    if name in ("uop_begin", "uop_end"):
        return tuple(
            sorted(
                {0, 1, min(top, config.uop_depth - 1), min(top, config.uop_depth), min(top, config.uop_depth + 1), top}
            )
        )
    if name == "mode":
        return tuple(range(max(RequantMode) + 3))
    return tuple(sorted({0, 1, top}))
