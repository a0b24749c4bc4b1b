# SPDX-License-Identifier: Apache-2.0
"""One instruction bound to a core, ready to run many times."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from openvta.sim.fsim.access import NOTHING, Accesses
from openvta.sim.fsim.scratchpads import Scratchpads
from openvta.sim.memory import DeviceMemory
from openvta.spec import Cause, HardwareConfig, Insn

BASES = ("uop", "inp", "wgt", "acc", "out")


@dataclass
class Core:
    """What instructions work on: scratchpads, device memory and base addresses (by name, see :data:`BASES`).

    ``acc_writes`` counts elements written to acc: a run of equal dst of a GEMM is one write.
    """

    config: HardwareConfig
    pads: Scratchpads
    memory: DeviceMemory
    bases: dict[str, int] = field(default_factory=lambda: dict.fromkeys(BASES, 0))
    acc_writes: int = 0


class OpFault(Exception):
    """An instruction that stops with an error while it runs."""

    def __init__(self, cause: Cause, detail: str, *, channel: int = 0, address: int = 0) -> None:
        super().__init__(detail)
        self.cause = cause
        self.detail = detail
        self.channel = channel
        self.address = address


@dataclass(frozen=True)
class Work:
    """What an instruction adds to the counters (names of the counter registers)."""

    counts: tuple[tuple[str, int], ...] = ()


class Op:
    """An instruction that only moves tokens; the base of those that do more."""

    name: ClassVar[str] = "no-op"

    def __init__(self, core: Core, insn: Insn) -> None:
        self.core = core
        self.insn = insn

    def execute(self) -> None:
        """Do the instruction's work.

        Raises:
            OpFault: an index out of range or a bus error; nothing was written then.
            LockstepError: images differ in micro-ops or weights.
        """

    def accesses(self) -> Accesses:
        """What :meth:`execute` would touch now (micro-ops are looked at, nothing changes).

        Raises:
            OpFault: an index out of range.
        """
        return NOTHING

    def work(self) -> Work:
        """Counter increments of one execution."""
        return Work()
