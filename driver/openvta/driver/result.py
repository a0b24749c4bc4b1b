# SPDX-License-Identifier: Apache-2.0
"""What a run gives back."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy.typing as npt

from openvta.spec.bundle import Bundle
from openvta.spec.insn import Insn
from openvta.spec.isa import Opcode, Unit

Event = tuple[int, int, int]


@dataclass(frozen=True, eq=False)
class LaunchResult:
    """One segment, launched once.

    Attributes:
        segment: its number.
        counters: by name; "cycles" and the counters of cycles only where the device has cycles.
        events: retired instructions: (cycle, unit, index); empty where the device does not report them.
        gemm_ends: for each GEMM that has micro-ops, in order, the cycle of its last one; empty likewise.
    """

    segment: int
    counters: Mapping[str, int]
    events: Sequence[Event] = ()
    gemm_ends: Sequence[int] = ()


@dataclass(frozen=True, eq=False)
class RunResult:
    """A bundle, run on all its inputs.

    Attributes:
        outputs: arrays by name, first dimension = images.
        counters: of the last pass (one batch of images through every segment), summed over the segments.
        layer_cycles: cycles of every accelerator layer in the last pass, see :func:`layer_cycles`; empty where the device has
            no cycles.
        total: counters summed over all passes.
        images: how many were run.
        passes: how often the segments were launched.
        trace: events of the last launch, where the device was opened with a trace.
        elapsed: seconds, host steps included.
    """

    outputs: dict[str, npt.NDArray[Any]]
    counters: dict[str, int]
    layer_cycles: dict[str, int] = field(default_factory=dict)
    total: dict[str, int] = field(default_factory=dict)
    images: int = 0
    passes: int = 0
    trace: Sequence[Any] = ()
    elapsed: float = 0.0


def add_counters(total: dict[str, int], more: Mapping[str, int]) -> None:
    """Add counters by name."""
    for name, value in more.items():
        total[name] = total.get(name, 0) + value


def gemm_uops(insn: Insn) -> int:
    """Micro-ops of a GEMM; 0 for every other instruction."""
    if insn.opcode is not Opcode.GEMM:
        return 0
    return max(0, insn["uop_end"] - insn["uop_begin"]) * insn["iter_out"] * insn["iter_in"]


def layer_cycles(bundle: Bundle, launches: Sequence[LaunchResult]) -> dict[str, int]:
    """Cycles of every accelerator layer; those of a launch add up to its cycles.

    A layer ends with its last GEMM micro-op (without GEMM, or where the device does not tell, with the retirement of its
    last instruction of the compute unit), starts where the layer before it ended, the first at launch; the last ends with the run.
    """
    result: dict[str, int] = {}
    for launch in launches:
        layers = sorted((x for x in bundle.layers if x.segment == launch.segment), key=lambda layer: layer.first_insn)
        if not launch.events or "cycles" not in launch.counters or not layers:
            continue
        when = {index: cycle for cycle, _, index in launch.events}
        now = max(when.values()) - launch.counters["cycles"]
        gemms = deque(launch.gemm_ends)
        insns = bundle.segments[launch.segment].program.insns()
        for layer in layers:
            end = now
            multiplied = False
            for index in range(layer.first_insn, layer.last_insn + 1):
                insn = insns[index]
                if insn.unit is not Unit.COMPUTE:
                    continue
                if gemms and gemm_uops(insn):
                    end, multiplied = max(now, gemms.popleft()), True
                elif not multiplied:
                    end = max(end, when.get(index, now))
            if layer is layers[-1]:
                end = max(when.values())
            result[layer.name] = result.get(layer.name, 0) + end - now
            now = end
    return result
