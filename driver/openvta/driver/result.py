# SPDX-License-Identifier: Apache-2.0
"""What a run gives back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy.typing as npt

from openvta.spec.bundle import Bundle, LayerInfo

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
        layer_cycles: cycles of every accelerator layer in the last pass; empty where the device has no cycles. A layer
            ends when its last instruction retires and starts when the one before it ended. Layers overlap: one that computed
            while the one before was still storing shows fewer cycles than it worked.
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


def layer_cycles(bundle: Bundle, launches: Sequence[LaunchResult]) -> dict[str, int]:
    """Cycles of every accelerator layer, from the retire events of one pass."""
    result: dict[str, int] = {}
    for launch in launches:
        if not launch.events or "cycles" not in launch.counters:
            continue
        mine: list[LayerInfo] = [layer for layer in bundle.layers if layer.segment == launch.segment]
        when = {index: cycle for cycle, _, index in launch.events}
        before = max(when.values()) - launch.counters["cycles"]
        for layer in sorted(mine, key=lambda layer: layer.last_insn):
            inside = [when[index] for index in range(layer.first_insn, layer.last_insn + 1) if index in when]
            end = max([before, *inside])
            result[layer.name] = result.get(layer.name, 0) + end - before
            before = end
    return result
