# SPDX-License-Identifier: Apache-2.0
"""Where the cycles of a run went, layer by layer, from its retire events and the ends of its GEMM instructions.

A layer's cycles go from the last micro-op of the layer before (the first layer's: from launch) to its own last
micro-op (the last layer's: to the end of the run), so they add up to the run. Between two GEMM instructions the array
idles; the gap is shared out among what the compute unit did or waited for in between, in its order:

- ``load``: a token of the load unit (memory, or a schedule that asked too late),
- ``store``: a token of the store unit,
- ``requant``: requantization that GEMM did not overlap,
- ``constants``: loads of micro-ops and accumulator elements,
- ``alu``: ALU instructions,
- ``other``: dispatch, pipelines, and anything else.

A layer without GEMM ends with its last instruction of the compute unit. ``fill`` is what comes before the first
micro-op of the run, ``drain`` what comes after the last.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from openvta.driver.result import LaunchResult, gemm_uops
from openvta.spec.bundle import Bundle
from openvta.spec.config import HardwareConfig
from openvta.spec.insn import Insn
from openvta.spec.isa import Opcode, Unit

REASONS = ("fill", "load", "store", "requant", "constants", "alu", "other", "drain")


class TimingError(RuntimeError):
    """Events that do not belong to the program."""


@dataclass
class LayerTiming:
    """One layer: ``cycles`` = ``uops`` + the sum of ``stalls``; ``start`` and ``end`` count from launch."""

    name: str
    macs: int
    start: int = 0
    end: int = 0
    uops: int = 0
    stalls: dict[str, int] = field(default_factory=lambda: dict.fromkeys(REASONS, 0))

    @property
    def cycles(self) -> int:
        """Cycles of the layer."""
        return self.end - self.start

    def padding(self, config: HardwareConfig) -> int:
        """Micro-ops beyond the least that the layer's multiply-accumulates need."""
        return self.uops - -(-self.macs * config.batch // config.macs_per_cycle)

    def utilization(self, config: HardwareConfig) -> float:
        """Share of the peak that the layer's own multiply-accumulates (padding not counted) reached."""
        return self.macs * config.batch / (self.cycles * config.macs_per_cycle) if self.cycles else 0.0


@dataclass(frozen=True)
class RunTiming:
    """A launch: cycles from launch to end, and its layers in order."""

    cycles: int
    layers: tuple[LayerTiming, ...]

    def stalls(self) -> dict[str, int]:
        """Stalls of all layers by reason."""
        return {reason: sum(layer.stalls[reason] for layer in self.layers) for reason in REASONS}


def retire_times(launch: LaunchResult) -> tuple[dict[int, int], int]:
    """Cycle from launch at which each instruction retired, by index; and the trace's cycle at launch.

    Raises:
        TimingError: no events, or no cycles.
    """
    if not launch.events or "cycles" not in launch.counters:
        raise TimingError("the device reports no retired instructions with their cycles; use the device 'cosim'")
    begin = max(cycle for cycle, _, _ in launch.events) - launch.counters["cycles"]
    return {index: cycle - begin for cycle, _, index in launch.events}, begin


def token_times(insns: Sequence[Insn], retired: dict[int, int]) -> dict[int, dict[Unit, int]]:
    """For each compute instruction that pops: when the token of each neighbour was pushed."""
    queues: dict[Unit, deque[int]] = {Unit.LOAD: deque(), Unit.STORE: deque()}
    found: dict[int, dict[Unit, int]] = {}
    for index, insn in enumerate(insns):
        if insn.unit is Unit.LOAD and insn["push_next"]:
            queues[Unit.LOAD].append(retired[index])
        elif insn.unit is Unit.STORE and insn["push_prev"]:
            queues[Unit.STORE].append(retired[index])
        elif insn.unit is Unit.COMPUTE:
            pops = ((Unit.LOAD, insn["pop_prev"]), (Unit.STORE, insn["pop_next"]))
            taken = {unit: queues[unit].popleft() for unit, pop in pops if pop}
            if taken:
                found[index] = taken
    return found


def analyse(bundle: Bundle, launch: LaunchResult) -> RunTiming:
    """Return where the cycles of a launch went.

    Raises:
        TimingError: the device does not report what is needed, or its events do not fit the program.
    """
    retired, begin = retire_times(launch)
    insns = bundle.segments[launch.segment].program.insns()
    ends = deque(cycle - begin for cycle in launch.gemm_ends)
    infos = sorted((x for x in bundle.layers if x.segment == launch.segment), key=lambda x: x.first_insn)
    layers = [LayerTiming(info.name, info.macs) for info in infos]
    tokens = token_times(insns, retired)
    total = launch.counters["cycles"]
    place, now, done = 0, 0, 0
    waits: list[tuple[str, int]] = []
    first = True
    for index, insn in enumerate(insns):
        if insn.unit is not Unit.COMPUTE:
            continue
        while place + 1 < len(layers) and index > infos[place].last_insn:
            if not layers[place].uops:
                _share(layers[place].stalls, None, waits, now, max(0, done - now))
                waits.clear()
                now, first = max(now, done), False
            layers[place].end = layers[place + 1].start = now
            place += 1
        done = retired[index]
        for unit, when in tokens.get(index, {}).items():
            waits.append(("load" if unit is Unit.LOAD else "store", when))
        uops = gemm_uops(insn)
        if not uops:
            reason = _REASONS.get(insn.opcode)
            if reason is not None:
                waits.append((reason, retired[index]))
            continue
        if not ends:
            raise TimingError(
                f"instruction {index}: the device reported the ends of {len(launch.gemm_ends)} GEMM only; "
                "use the device 'cosim'"
            )
        end = ends.popleft()
        layer = layers[place]
        layer.uops += uops
        gap = end - uops - now
        _share(layer.stalls, "fill" if first else None, waits, now, gap)
        now, first = end, False
        waits.clear()
    if ends:
        raise TimingError(f"the device reported {len(ends)} GEMM ends more than the program has")
    layers[place].stalls["drain"] += total - now
    layers[place].end = total
    return RunTiming(total, tuple(layers))


_REASONS = {Opcode.LOAD: "constants", Opcode.REQUANT: "requant", Opcode.ALU: "alu"}


def _share(stalls: dict[str, int], only: str | None, waits: list[tuple[str, int]], now: int, gap: int) -> None:
    """Add a gap of ``gap`` cycles after ``now`` to ``stalls``: each wait from where the one before it ended."""
    if only is not None:
        stalls[only] += gap
        return
    at, stop = now, now + gap
    for reason, when in waits:
        until = min(when, stop)
        overlapped = reason == "requant" and when > stop
        if until > at and not overlapped:
            stalls[reason] += until - at
            at = until
    stalls["other"] += stop - at
