# SPDX-License-Identifier: Apache-2.0
"""The smallest program that still shows a mismatch: groups are left out, halves first, tokens planned anew."""

from __future__ import annotations

from openvta.sim.cosim.errors import SimulationFailed
from openvta.sim.cosim.session import IDEAL, MemoryModel
from openvta.sim.verify.generator import RandomProgram, plan
from openvta.sim.verify.plan import Draft
from openvta.sim.verify.rig import Mismatch, Rig
from openvta.spec import Program

MAX_RUNS = 200
Groups = tuple[tuple[Draft, ...], ...]


def _try(rig: Rig, program: Program, found: RandomProgram, model: MemoryModel) -> Mismatch | None:
    """Run from a fresh start: reset, every scratchpad filled, the areas as the program had them."""
    rig.rtl.hard_reset()
    rig.set_memory(IDEAL)
    rig.fill(found.areas)
    rig.write_areas(found.areas)
    rig.set_memory(model)
    return rig.compare(program)


def shrunk(rig: Rig, found: RandomProgram, model: MemoryModel, first: Mismatch) -> tuple[Program, str]:
    """(a small program with a mismatch, what differs). At most 200 runs; the program as it was if it fails only in place."""
    best, text = found.program, first.text
    try:
        again = _try(rig, best, found, model)
        if again is None:
            return best, f"{text} (only after the programs before it)"
        text = again.text
        quiet = _try(rig, best, found, IDEAL)
        if quiet is not None:
            model, text = IDEAL, quiet.text
        return _smaller(rig, found, model, text)
    except SimulationFailed as error:
        return best, f"{text}; while it was made smaller: {error}"


def _smaller(rig: Rig, found: RandomProgram, model: MemoryModel, text: str) -> tuple[Program, str]:
    groups: Groups = found.groups
    best = found.program
    runs = 0
    size = max(1, len(groups) // 2)
    while runs < MAX_RUNS:
        at, progressed = 0, False
        while at < len(groups) and runs < MAX_RUNS:
            fewer = groups[:at] + groups[at + size :]
            program, done = plan(rig.config, fewer, found.seed)
            mismatch = _try(rig, program, found, model) if done == len(fewer) and fewer else None
            runs += 1
            if mismatch is not None and not mismatch.text.startswith("fsim"):
                groups, best, text, progressed = fewer, program, mismatch.text, True
            else:
                at += size
        if not progressed and size == 1:
            break
        size = max(1, size // 2)
    return best, text
