# SPDX-License-Identifier: Apache-2.0
"""fsim and the RTL side by side: the same memory, the same stream, compared instruction by instruction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

import numpy as np

from openvta.sim.cosim.build import ElaboratedDesign
from openvta.sim.cosim.cache import Progress
from openvta.sim.cosim.session import IDEAL, BusFault, MemoryModel
from openvta.sim.cosim.transport import MEMORY_BASE, CosimTransport
from openvta.sim.describe import describe
from openvta.sim.fsim.machine import Fault, Machine, Outcome
from openvta.sim.fsim.registers import EXACT_COUNTERS
from openvta.sim.fsim.tracer import Tracer
from openvta.sim.memory import DeviceMemory
from openvta.sim.verify.generator import AREA, NAMES, Bytes
from openvta.spec import AluOpcode, Cause, HardwareConfig, Insn, MemId, Opcode, Program, Queue, Unit, make
from openvta.spec.registers import CONTROL, ERROR, OFFSETS

STREAM_BYTES = 1 << 19
GUARD_BYTES = 1 << 12
"""Bytes on either side of the areas that no program may touch."""
IMAGE_BYTES = len(NAMES) * AREA + 2 * GUARD_BYTES
MEMORY_BYTES = IMAGE_BYTES + STREAM_BYTES
CYCLES_AN_INSTRUCTION = 60_000
SHOWN = 4


@dataclass(frozen=True)
class RtlRun:
    """A launch on the RTL: whether it stopped, the ERROR registers, exact counters, events (cycle, unit, index, hash)."""

    stopped: bool
    error: Fault | None
    counters: dict[str, int]
    events: tuple[tuple[int, int, int, int], ...]
    cycles: int


@dataclass(frozen=True)
class Mismatch:
    """Where the two part, in words."""

    text: str


def fill_program(config: HardwareConfig) -> Program:
    """Give every element of every scratchpad a value: no backend may start from chance."""

    def load(memory: MemId, depth: int, element: int, **tokens: int) -> Insn:
        row = min(depth, AREA // element)
        return make(Opcode.LOAD, memory_id=int(memory), y_size=depth // row, x_size=row, x_stride=0, **tokens)

    c = config
    inner = min(16, c.acc_depth // 2)
    insns = [
        load(MemId.INP, c.inp_depth, c.inp_bytes),
        load(MemId.WGT, c.wgt_depth, c.wgt_bytes, push_next=1),
        load(MemId.UOP, c.uop_depth, c.uop_bytes),
        load(MemId.ACC, c.acc_depth, c.acc_bytes),
        make(Opcode.LOAD, memory_id=int(MemId.UOP), y_size=1, x_size=1, x_stride=1, x_pad_0=1),
        make(
            Opcode.ALU, alu_opcode=int(AluOpcode.ADD), use_imm=1, uop_begin=0, uop_end=1, iter_out=c.acc_depth // inner,
            iter_in=inner, dst_factor_out=inner, dst_factor_in=1, src_factor_out=inner, src_factor_in=1,
        ),
        make(Opcode.FINISH, pop_prev=1),
    ]  # fmt: skip
    return Program.assemble(config, insns)


class Rig:
    """One configuration on both backends, with the same addresses.

    Args:
        config: the configuration.
        seed: of the RTL's random initial state.
        checked: random initial state and assertions; without, the fast build.
        stalls: build stall points inside.
        coverage_file: count lines and toggles into this file.
        change, arguments: of the RTL, as :class:`CosimTransport` takes them.
        progress: told about long steps.
    """

    def __init__(
        self,
        config: HardwareConfig,
        *,
        seed: int = 1,
        checked: bool = True,
        stalls: bool = True,
        coverage_file: Path | None = None,
        change: Callable[[ElaboratedDesign], ElaboratedDesign] | None = None,
        arguments: Sequence[str] = (),
        progress: Progress | None = None,
    ) -> None:
        self.config = config
        self.rtl = CosimTransport(
            config, memory_bytes=MEMORY_BYTES, checked=checked, trace=True, stalls=stalls, seed=seed,
            coverage_file=coverage_file, change=change, arguments=arguments, progress=progress,
        )  # fmt: skip
        self.base = self.rtl.allocate(MEMORY_BYTES)
        self.memory = DeviceMemory()
        self.memory.map(MEMORY_BASE, MEMORY_BYTES)
        self.machine = Machine(config, self.memory)
        self.tracer = Tracer(self.machine)
        self.areas = {name: self.base + GUARD_BYTES + number * AREA for number, name in enumerate(NAMES)}
        self.stream = self.base + IMAGE_BYTES
        self.set_memory(IDEAL)

    def set_memory(self, model: MemoryModel, faults: tuple[BusFault, ...] = ()) -> None:
        """Timing of the RTL's memory, and injected faults."""
        self.rtl.set_memory(model, faults)

    def write_areas(self, areas: dict[str, Bytes], *, rtl_only: bool = False) -> None:
        """Set the areas' contents on both sides."""
        for name, data in areas.items():
            self.rtl.write(self.areas[name], data)
            if not rtl_only:
                self.memory.write(self.areas[name], data)

    def image(self) -> tuple[Bytes, Bytes]:
        """The areas and the guards around them: of fsim, and of the RTL."""
        return self.memory.read(self.base, IMAGE_BYTES), self.rtl.read(self.base, IMAGE_BYTES)

    # one side ------------------------------------------------------------------------------------

    def run_fsim(self, words: bytes) -> Outcome:
        """Run a stream on fsim, from cleared token queues."""
        self.machine.reset()
        self.tracer.start()
        return self.machine.run_stream(words, self.areas)

    def start_rtl(self, words: bytes, *, watchdog: int | None = None) -> None:
        """Write stream and registers, and launch (at the next request)."""
        rtl = self.rtl
        rtl.write(self.stream, words)
        if watchdog is not None:
            rtl.write_register(OFFSETS["WATCHDOG"], watchdog)
        rtl.write_register(OFFSETS["INSN_COUNT"], len(words) // 16)
        for name, address in (("INSN", self.stream), *((name.upper(), base) for name, base in self.areas.items())):
            rtl.write_register(OFFSETS[f"{name}_BASE_LO"], address & 0xFFFFFFFF)
            rtl.write_register(OFFSETS[f"{name}_BASE_HI"], address >> 32)
        rtl.write_register(OFFSETS["CONTROL"], CONTROL.field("launch").mask)

    def finish_rtl(self, cycles: int) -> RtlRun:
        """Wait for the end of a run and read what the registers say."""
        rtl = self.rtl
        stopped = rtl.wait(cycles=cycles)
        names = sorted(EXACT_COUNTERS)
        offsets = [OFFSETS[name] for name in ("ERROR", "ERROR_INDEX", "ERROR_ADDR_LO", "ERROR_ADDR_HI", "CYCLES")]
        values = rtl.read_registers([*offsets, *(OFFSETS[f"COUNTER_{name.upper()}"] for name in names)])
        counters = dict(zip(names, values[5:], strict=True))
        error = None
        if values[0]:
            word = ERROR.decode(values[0])
            error = Fault(
                Cause(word["cause"]), Unit(word["unit"]), values[1], "", channel=word["channel"],
                address=values[2] | values[3] << 32, wait=word["wait"], finish=bool(word["finish"]),
            )  # fmt: skip
        return RtlRun(stopped, error, counters, tuple(rtl.trace_hashes()), values[4])

    def run_rtl(self, words: bytes, *, cycles: int | None = None, watchdog: int | None = None) -> RtlRun:
        """Run a stream on the RTL."""
        self.start_rtl(words, watchdog=watchdog)
        return self.finish_rtl(cycles or self.bound(words))

    @staticmethod
    def bound(words: bytes) -> int:
        """Cycles a stream may take, whatever the memory does."""
        return CYCLES_AN_INSTRUCTION * (len(words) // 16 + 16)

    def soft_reset(self) -> bool:
        """Soft reset of the RTL; False if it did not end in time."""
        self.rtl.write_register(OFFSETS["RESET"], 1)
        for _ in range(64):
            if not self.rtl.read_register(OFFSETS["RESET"]) & 1:
                self.rtl.trace_hashes()
                return True
            self.rtl.delay(2000)
        return False

    # both sides ----------------------------------------------------------------------------------

    def fill(self, areas: dict[str, Bytes]) -> Mismatch | None:
        """Areas to both sides, and a value to every element of every scratchpad."""
        self.write_areas(areas)
        return self.compare(fill_program(self.config))

    def compare(self, program: Program) -> Mismatch | None:
        """Run a program on both sides; None if every instruction, all memory and all shared counters agree."""
        words = program.to_bytes()
        outcome = self.run_fsim(words)
        if outcome.fault is not None:
            return Mismatch(f"fsim refuses the program: {outcome.fault.cause.name}, {outcome.fault.detail}")
        run = self.run_rtl(words)
        if not run.stopped:
            return Mismatch(f"the RTL did not end within {self.bound(words)} cycles ({len(run.events)} retired)")
        if run.error is not None:
            return Mismatch(self._error(run, run.error))
        return self._events(program, run) or self._totals(outcome, run)

    def _error(self, run: RtlRun, error: Fault) -> str:
        """An error of the RTL in a program without one: who waits for what, and how far every unit came."""
        queues = " and ".join(queue.name.lower() for queue in Queue if error.wait >> queue & 1)
        waits = f", waiting for a token from {queues}" if queues else ""
        if error.finish:
            waits = ", FINISH waiting for the other units to end"
        done = []
        for unit in (Unit.LOAD, Unit.COMPUTE, Unit.STORE):
            expected = sum(event.unit is unit for event in self.tracer.events)
            retired = sum(who == unit for _, who, _, _ in run.events)
            done.append(f"{unit.name.lower()} {retired} of {expected}")
        text = f"the RTL reports {error.cause.name} of unit {error.unit.name} at instruction {error.index}{waits}"
        return f"{text}; retired: {', '.join(done)}"

    def _events(self, program: Program, run: RtlRun) -> Mismatch | None:
        for unit in (Unit.LOAD, Unit.COMPUTE, Unit.STORE):
            expected = [(event.index, int(event.hash or "0", 16)) for event in self.tracer.events if event.unit is unit]
            got = [(index, found) for _, who, index, found in run.events if who == unit]
            if expected == got:
                continue
            at = next((k for k, pair in enumerate(zip(expected, got, strict=False)) if pair[0] != pair[1]), None)
            if at is None:
                return Mismatch(f"{unit.name.lower()} unit: {len(got)} events on the RTL, {len(expected)} on fsim")
            (index, value), (other, found) = expected[at], got[at]
            text = describe(self.config, program.words[index])
            if index != other:
                return Mismatch(
                    f"{unit.name.lower()} unit, event {at}: instruction {other} retired instead of {index} [{text}]"
                )
            return Mismatch(
                f"{unit.name.lower()} unit, event {at}: instruction {index} [{text}] wrote other values "
                f"(hash {found:016x} on the RTL, {value:016x} on fsim)"
            )
        return None

    def _totals(self, outcome: Outcome, run: RtlRun) -> Mismatch | None:
        for name, value in run.counters.items():
            if outcome.counters.get(name, 0) != value:
                return Mismatch(f"counter {name}: {value} on the RTL, {outcome.counters.get(name, 0)} on fsim")
        expected, got = self.image()
        different = np.flatnonzero(expected != got)
        if different.size:
            where = ", ".join(f"{int(at) - GUARD_BYTES:#x}" for at in different[:SHOWN])
            return Mismatch(f"memory: {different.size} bytes differ, first at offsets {where} of the areas")
        return None

    def close(self) -> None:
        """End the simulator."""
        self.rtl.close()

    def __enter__(self) -> Rig:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
