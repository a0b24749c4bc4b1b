# SPDX-License-Identifier: Apache-2.0
"""A stream decoded: what each instruction is, which tokens it moves, and where decode refuses it."""

from __future__ import annotations

from dataclasses import dataclass

from openvta.spec import HardwareConfig, Insn, Opcode, Queue, Unit, decode, static_fault
from openvta.spec.insn import Fault
from openvta.spec.isa import INSN_BYTES, pops_and_pushes


@dataclass(frozen=True)
class Decoded:
    """One instruction: its unit and the queues it pops and pushes."""

    index: int
    word: int
    insn: Insn
    unit: Unit
    pops: tuple[Queue, ...]
    pushes: tuple[Queue, ...]

    @property
    def is_finish(self) -> bool:
        """Whether it is FINISH."""
        return self.insn.opcode is Opcode.FINISH


@dataclass(frozen=True)
class Stream:
    """Instructions before the first one decode refuses, and that fault (or None)."""

    config: HardwareConfig
    items: tuple[Decoded, ...]
    fault: Fault | None

    def of(self, unit: Unit) -> list[Decoded]:
        """A unit's instructions, in order."""
        return [item for item in self.items if item.unit is unit]


def decode_stream(config: HardwareConfig, data: bytes) -> Stream:
    """Decode whole words of ``data`` up to the first illegal one."""
    count = len(data) // INSN_BYTES
    items: list[Decoded] = []
    for index in range(count):
        word = int.from_bytes(data[index * INSN_BYTES : (index + 1) * INSN_BYTES], "little")
        fault = static_fault(config, word, last=index == count - 1)
        if fault is not None:
            return Stream(config, tuple(items), fault)
        insn = decode(config, word)
        queues = pops_and_pushes(insn.unit)
        moved = {flag: queue for flag, queue in queues.items() if insn[flag]}
        items.append(
            Decoded(
                index,
                word,
                insn,
                insn.unit,
                tuple(queue for flag, queue in moved.items() if flag.startswith("pop")),
                tuple(queue for flag, queue in moved.items() if flag.startswith("push")),
            )
        )
    return Stream(config, tuple(items), None)
