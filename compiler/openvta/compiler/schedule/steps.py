# SPDX-License-Identifier: Apache-2.0
"""A schedule as data: instructions in program order with the shared memory each one reads and writes.

Micro-ops and accumulators belong to the compute unit alone, which works in order; only what units share is listed:
inp and wgt (load writes, compute reads), out (compute writes, store reads) and the tensors in device memory.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property

from openvta.spec.insn import Insn
from openvta.spec.isa import MemId, Opcode, Unit


class Memory(IntEnum):
    """Memory that two units touch."""

    INP = 0
    WGT = 1
    OUT = 2
    DATA = 3


@dataclass(frozen=True)
class Span:
    """Elements ``low .. high - 1`` of a memory; ``data`` counts elements of an activation from the data base."""

    memory: Memory
    low: int
    high: int

    def __str__(self) -> str:
        return f"{self.memory.name.lower()}[{self.low}:{self.high}]"


@dataclass(frozen=True, eq=False)
class Step:
    """One instruction without its tokens.

    ``layer`` is the number of the layer it works for; ``moved`` the bytes it moves between scratchpads and device
    memory (padding not counted); ``uops`` the micro-ops it executes.
    """

    insn: Insn
    layer: int
    reads: tuple[Span, ...] = ()
    writes: tuple[Span, ...] = ()
    moved: int = 0
    uops: int = 0

    @cached_property
    def unit(self) -> Unit:
        """The unit that executes it."""
        return self.insn.unit


@dataclass(frozen=True, eq=False)
class Planned:
    """A step with its tokens: ``flags`` holds names out of ``openvta.spec.isa.TOKEN_FLAGS``, sorted."""

    step: Step
    flags: tuple[str, ...]

    @property
    def insn(self) -> Insn:
        """The complete instruction."""
        return Insn(self.step.insn.opcode, {**dict.fromkeys(self.flags, 1), **self.step.insn.fields})


_MEMORY_NAMES = {int(m): m.name.lower() for m in MemId}


def describe(insn: Insn) -> str:
    """Return an instruction in one line: opcode, memory, and the fields that are not zero."""
    name = insn.opcode.name.lower()
    if insn.opcode in (Opcode.LOAD, Opcode.STORE):
        name += f" {_MEMORY_NAMES.get(insn['memory_id'], '?')}"
    rest = " ".join(f"{k}={v}" for k, v in sorted(insn.fields.items()) if k != "memory_id")
    return f"{name} {rest}".rstrip()


def format_schedule(planned: Iterable[Planned], layers: tuple[str, ...] = ()) -> str:
    """Return the schedule as text, one line an instruction: number, unit, tokens, instruction, reads and writes."""
    lines = []
    layer = -1
    for number, item in enumerate(planned):
        step = item.step
        if step.layer != layer:
            layer = step.layer
            title = layers[layer] if 0 <= layer < len(layers) else "program"
            lines.append(f"# layer {layer}: {title}")
        ports = f" <- {' '.join(map(str, step.reads))}" if step.reads else ""
        ports += f" -> {' '.join(map(str, step.writes))}" if step.writes else ""
        flags = f" [{' '.join(item.flags)}]" if item.flags else ""
        lines.append(f"{number:6d} {step.unit.name.lower():7s}{flags} {describe(step.insn)}{ports}")
    return "\n".join(lines) + "\n"
