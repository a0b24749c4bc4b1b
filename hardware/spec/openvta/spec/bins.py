# SPDX-License-Identifier: Apache-2.0
"""Functional coverage: what random programs must have met on the RTL, declared before any is run.

A bin is a name; a campaign fills it when an instruction that fits retires with the right result. Names of instructions are
crossed with how the run was disturbed where timing matters.
"""

from __future__ import annotations

from openvta.spec.config import HardwareConfig
from openvta.spec.isa import AluOpcode, RequantMode

DISTANCES = tuple(range(7))
"""Operations between a write of an acc element and its read: 0 means the next one reads it."""
STALLS = ("none", "bus", "inside")
"""Undisturbed; random latency and stalls on every bus channel; these and closed ready/valid pairs inside."""
PADS = ("none", "x0", "x1", "y0", "y1", "many")
ROWS = ("same", "gap", "overlap", "zero")
FLAGS = ("plain", "clear", "write_acc")
COMPUTE = ("uop", "acc", "gemm", "alu", "requant", "noop")


def _loads(config: HardwareConfig) -> dict[str, tuple[str, ...]]:
    """Memories LOAD can fill, and the pad values it knows for each."""
    fills = ("zero", "min", "value") if config.has("padv") else ("zero",)
    memories = ("inp", "wgt", "acc", *(("acc_int8", "acc_uint8") if config.has("acc8") else ()))
    return {"uop": ("zero",), **dict.fromkeys(memories, fills)}


def _disturbed(config: HardwareConfig) -> list[str]:
    """Bins that are to be filled under every kind of stall."""
    names = []
    for memory, fills in _loads(config).items():
        names += [f"load.{memory}.{pad}.{fill}" for pad in PADS for fill in (fills if pad != "none" else ("zero",))]
    names += [f"store.{rows}.{place}" for rows in ROWS[:3] for place in ("aligned", "inside")]
    kinds = ("plain", *(("sat",) if config.has("sat") else ()))
    names += [f"gemm.{kind}.{distance}" for kind in kinds for distance in (*DISTANCES, "none")] + ["gemm.reset.none"]
    for mode in RequantMode if config.has("requant") else ():
        names += [f"requant.{mode.name.lower()}.{flag}.{sign}" for flag in FLAGS for sign in ("signed", "unsigned")]
    return names


def _alu(config: HardwareConfig) -> list[str]:
    names = []
    for op in AluOpcode:
        if op > AluOpcode.MUL and not config.has("alu_plus"):
            continue
        for operand in ("imm", "tensor"):
            reads = not (op is AluOpcode.MOV and operand == "imm")
            names += [f"alu.{op.name.lower()}.{operand}.{at}" for at in ((*DISTANCES, "none") if reads else ("none",))]
        if config.has("sat"):
            names.append(f"sat.{op.name.lower()}")
    return names


def bins(config: HardwareConfig) -> tuple[str, ...]:
    """Every bin of a configuration, each once."""
    names = [f"{name}@{stall}" for name in _disturbed(config) for stall in STALLS]
    names += _alu(config)
    for memory in _loads(config):
        names += [f"rows.{memory}.{rows}" for rows in ROWS] + [f"end.{memory}"]
    names += [f"feedback.{memory}" for memory in _loads(config) if memory not in ("uop", "wgt")]
    kinds = [kind for kind in COMPUTE if kind != "requant" or config.has("requant")]
    names += [f"pair.{before}.{after}" for before in kinds for after in kinds]
    names += [f"noop.{kind}" for kind in ("load", "loaduop", "store", "gemm", "alu")]
    if config.has("requant"):
        names += ["noop.requant", "params.still", "params.moving"]
    return tuple(names)
