# SPDX-License-Identifier: Apache-2.0
"""A run as plain data for reports: layers with their stalls, counters, and one slice an instruction and unit."""

from __future__ import annotations

from typing import Any

from openvta.cli.timing import RunTiming, retire_times
from openvta.driver.result import LaunchResult, gemm_uops
from openvta.spec.bundle import Bundle
from openvta.spec.insn import Insn
from openvta.spec.isa import MemId, Opcode, Unit

TRACKS = {Unit.LOAD: "load", Unit.COMPUTE: "compute", Unit.STORE: "store"}
_MEMORY = {int(memory): memory.name.lower() for memory in MemId}


def run_record(bundle: Bundle, launch: LaunchResult, timing: RunTiming) -> dict[str, Any]:
    """Everything a report needs of one launch, ready for JSON."""
    config = bundle.config
    infos = {layer.name: layer for layer in bundle.layers}
    layers = [
        {
            "name": layer.name,
            "operator": infos[layer.name].op,
            "start": layer.start,
            "end": layer.end,
            "macs": layer.macs * config.batch,
            "uops": layer.uops,
            "padding": layer.padding(config),
            "bytes": infos[layer.name].dram_bytes,
            "stalls": dict(layer.stalls),
        }
        for layer in timing.layers
    ]
    return {
        "cycles": timing.cycles,
        "macs_per_cycle": config.macs_per_cycle,
        "bus_bytes": config.axi_data_bytes,
        "layers": layers,
        "counters": dict(launch.counters),
        "slices": slices(bundle, launch),
    }


def slices(bundle: Bundle, launch: LaunchResult) -> list[list[Any]]:
    """[track, name, start, cycles] of every instruction: on its unit's track from where the one before it there ended.

    GEMM instructions lie on a track of their own, where they end with their last micro-op.
    """
    retired, begin = retire_times(launch)
    ends = iter(launch.gemm_ends)
    free = dict.fromkeys(("gemm", *TRACKS.values()), 0)
    found: list[list[Any]] = []
    for index, insn in enumerate(bundle.segments[launch.segment].program.insns()):
        if insn.is_noop or insn.opcode is Opcode.FINISH:
            continue
        uops = gemm_uops(insn) if insn.opcode is Opcode.GEMM else 0
        if uops:
            end = next(ends) - begin
            track, start = "gemm", max(end - uops, free["gemm"])
        else:
            track, end = TRACKS[insn.unit], retired[index]
            start = min(free[track], end)
        free[track] = max(free[track], end)
        if end > start:
            found.append([track, _name(insn), start, end - start])
    return found


def _name(insn: Insn) -> str:
    if insn.opcode in (Opcode.LOAD, Opcode.STORE):
        return f"{insn.opcode.name.lower()} {_MEMORY.get(insn['memory_id'], '?')}"
    return insn.opcode.name.lower()
