# SPDX-License-Identifier: Apache-2.0
"""How long a program may take before the driver gives up: far above any real run, but an end."""

from __future__ import annotations

from functools import lru_cache

from openvta.spec.config import HardwareConfig
from openvta.spec.errors import SpecError
from openvta.spec.insn import Insn, decode
from openvta.spec.isa import MemId, Opcode
from openvta.spec.program import Program
from openvta.spec.registers import WATCHDOG_RESET

SLACK = 16
"""How many times the plain work a run may take."""
LATENCY = 512
"""Cycles granted to every row of a transfer, for a slow memory."""


@lru_cache(maxsize=64)
def cycle_bound(program: Program) -> int:
    """Cycles after which a run of ``program`` is given up: its work times 16, plus four times the watchdog."""
    work = 0
    for word in program:
        try:
            work += 64 + _work(program.config, decode(program.config, word))
        except SpecError:
            work += 64  # not an instruction: the device stops there
    return SLACK * work + 4 * WATCHDOG_RESET


def _work(config: HardwareConfig, insn: Insn) -> int:
    if insn.is_noop:
        return 0
    if insn.opcode in (Opcode.LOAD, Opcode.STORE):
        names = {MemId.UOP: "uop", MemId.WGT: "wgt", MemId.INP: "inp", MemId.OUT: "out"}
        memory = insn["memory_id"]
        name = names.get(MemId(memory), "acc") if memory in {int(item) for item in MemId} else "acc"
        beats = -(-int(getattr(config, f"{name}_bytes")) // config.axi_data_bytes)
        rows = insn["y_size"] + insn["y_pad_0"] + insn["y_pad_1"]
        width = insn["x_size"] + insn["x_pad_0"] + insn["x_pad_1"]
        return rows * (width * beats + LATENCY)
    loops = insn["iter_out"] * insn["iter_in"]
    if insn.opcode is Opcode.REQUANT:
        return loops * (config.requant_cycles + 8)
    return loops * max(0, insn["uop_end"] - insn["uop_begin"]) * 8
