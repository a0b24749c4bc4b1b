# SPDX-License-Identifier: Apache-2.0
"""Faults on purpose: damaged streams, lost tokens, bus errors, lost responses, and soft resets in any cycle.

After every one of them a known program must run exactly as on fsim, without a hard reset where the specification
promises that.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from openvta.sim.cosim.cache import Progress, tell
from openvta.sim.cosim.errors import SimulationFailed
from openvta.sim.cosim.session import IDEAL, BusFault, MemoryModel
from openvta.sim.fsim.schedule import play
from openvta.sim.verify.campaign import memory_model
from openvta.sim.verify.configs import configuration
from openvta.sim.verify.generator import AREA, NAMES, Bytes, Generator, RandomProgram
from openvta.sim.verify.rig import GUARD_BYTES, IMAGE_BYTES, Rig, RtlRun
from openvta.spec import Cause, MemId, Opcode, Program, Queue, Unit
from openvta.spec.asm import format_program
from openvta.spec.insn import decode, isa_of, static_fault

WATCHDOG = 3000
"""Cycles without progress that these runs call an error."""
HELD = {Unit.LOAD: 0, Unit.COMPUTE: 1, Unit.STORE: 1}
"""Instructions a unit of the RTL holds before it needs their tokens, beyond the queues that all backends have."""
LENGTH = 24
SWEEP_LENGTH = 8
LOST = 4
BURST_LIMIT = 4096
KINDS = ("mutation", "token", "bus", "lost", "reset")
TIMING_CAUSES = frozenset({Cause.WATCHDOG, Cause.TOKEN_OVERFLOW})
OUT_START = GUARD_BYTES + NAMES.index("out") * AREA


@dataclass
class FaultResult:
    """What a campaign of faults did: trials and outcomes by kind, and what went wrong, in words."""

    config: str
    label: str
    seeds: tuple[int, ...]
    trials: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    instructions: int = 0
    seconds: float = 0.0
    failures: list[str] = field(default_factory=list)


class FaultCampaign:
    """Trials on one rig.

    Args:
        rig: both backends.
        seed: of everything random.
        result: where trials are counted.
    """

    def __init__(self, rig: Rig, seed: int, result: FaultResult) -> None:
        self.rig = rig
        self.config = rig.config
        self.seed = seed
        self.result = result
        self.rng = np.random.default_rng([seed, 0xFA17])
        self.generator = Generator(rig.config, seed, ops=8)
        self.reference = self.generator.program(LENGTH)
        self._trial = ""

    # the pieces ----------------------------------------------------------------------------------

    def start(self) -> bool:
        """Fill both sides and see that they agree before anything is broken."""
        self.rig.set_memory(IDEAL)
        return self._agree("before any fault", self.reference, fill=True)

    def _fail(self, text: str, words: bytes | None = None) -> None:
        config = self.rig.config
        shown = ""
        if words is not None:
            try:
                shown = "\n" + format_program(Program.from_bytes(config, words))
            except Exception as error:
                shown = f"\n{error}\n" + "\n".join(words[k : k + 16][::-1].hex() for k in range(0, len(words), 16))
        command = f"openvta verify faults --config {config.name} --seed {self.seed} --trials {self.total()}"
        self.result.failures.append(f"{self._trial}: {text}{shown}\nrepeat with: {command}")

    def total(self) -> int:
        """Trials so far."""
        return sum(self.result.trials.values())

    def _agree(self, when: str, program: RandomProgram, *, fill: bool = False) -> bool:
        """Whether a legal program runs the same on both sides now, scratchpads refilled where asked."""
        found = self.rig.fill(program.areas) if fill else None
        if found is None:
            self.rig.write_areas(program.areas)
            found = self.rig.compare(program.program)
        if found is not None:
            self._fail(f"{when}: {found.text}")
            return False
        self.result.instructions += len(program.program.words)
        return True

    def _recover(self, when: str) -> bool:
        """Soft reset, then the reference program exactly."""
        self.rig.set_memory(IDEAL)
        if not self.rig.soft_reset():
            self._fail(f"{when}: the soft reset did not end")
            self.rig.rtl.hard_reset()
            return False
        return self._agree(f"{when}, soft reset", self.reference, fill=True)

    def _outside(self, before: Bytes) -> str | None:
        """What was written outside the area that STORE may write, in words."""
        after = self.rig.rtl.read(self.rig.base, IMAGE_BYTES)
        different = np.flatnonzero(before != after)
        beyond = different[(different < OUT_START) | (different >= OUT_START + AREA)]
        return (
            f"{beyond.size} bytes outside the given buffers written, first at {beyond[0]:#x}" if beyond.size else None
        )

    def _ends(self, run: RtlRun, words: bytes) -> bool:
        if not run.stopped:
            self._fail(f"the RTL hangs: {len(run.events)} instructions retired", words)
        return run.stopped

    # damaged streams -----------------------------------------------------------------------------

    def mutation(self) -> None:
        """A stream with flipped bits or other opcodes ends: as on fsim, or with a sticky error with the index of a bad instruction."""
        program = self.generator.program(LENGTH)
        words = bytearray(program.program.to_bytes())
        count = int(self.rng.integers(1, 4))
        for _ in range(count):
            bit = int(self.rng.integers(8 * len(words)))
            words[bit // 8] ^= 1 << bit % 8
        if self.rng.random() < 0.4:
            first = 16 * int(self.rng.integers(len(words) // 16))
            layout = isa_of(self.rig.config)
            unknown = [opcode for opcode in range(8) if layout.layout_of(opcode) is None]
            opcodes = unknown if unknown and self.rng.random() < 0.5 else list(range(8))
            words[first] = words[first] & ~7 | opcodes[int(self.rng.integers(len(opcodes)))]
        areas = dict(program.areas)
        if self.rng.random() < 0.3:
            uops = areas["uop"].copy()
            for _ in range(8):
                uops[int(self.rng.integers(0, 4 * LENGTH))] ^= 1 << int(self.rng.integers(8))
            areas["uop"] = uops
        stream = self._contained(bytes(words), program.program)
        self.rig.write_areas(areas)
        before = self.rig.rtl.read(self.rig.base, IMAGE_BYTES)
        outcome = self.rig.run_fsim(stream)
        run = self.rig.run_rtl(stream, watchdog=WATCHDOG)
        if not self._ends(run, stream):
            self.rig.rtl.hard_reset()
            self._recover("after a hang")
            return
        written = self._outside(before)
        if written:
            self._fail(written, stream)
        if outcome.fault is None and run.error is not None and run.error.cause is not Cause.TOKEN_OVERFLOW:
            self._fail(f"the RTL reports {run.error.cause.name} at {run.error.index}, fsim nothing", stream)
        if outcome.fault is not None and run.error is None and outcome.fault.cause not in TIMING_CAUSES:
            self._fail(f"fsim reports {outcome.fault.cause.name} at {outcome.fault.index}, the RTL nothing", stream)
        hangs = run.error is not None and run.error.cause is Cause.WATCHDOG
        if hangs and outcome.fault is not None and outcome.fault.cause not in TIMING_CAUSES:
            self._fail(f"fsim reports {outcome.fault.cause.name} at {outcome.fault.index}, the RTL hangs", stream)
        self.result.outcomes["clean" if run.error is None else run.error.cause.name] += 1
        if run.error is not None:
            self._sensible(run, stream)
        self._recover("after a damaged stream")

    def _contained(self, stream: bytes, original: Program) -> bytes:
        """Put back every STORE that would legally write outside its area: such an address was given by us."""
        config = self.rig.config
        words = list(Program.from_bytes(config, stream).words)
        for at, word in enumerate(words):
            if word & 7 != Opcode.STORE or static_fault(config, word, last=at == len(words) - 1) is not None:
                continue
            insn = decode(config, word)
            span = (max(insn["y_size"], 1) - 1) * insn["x_stride"] + insn["x_size"]
            if not insn.is_noop and (insn["dram_base"] + span) * config.out_bytes > AREA:
                words[at] = original.words[at]
        return b"".join(word.to_bytes(16, "little") for word in words)

    def _sensible(self, run: RtlRun, stream: bytes) -> None:
        """The error registers must say what fsim could also have found: the cause at the index, or a real fault there."""
        error = run.error
        if error is None or error.cause in TIMING_CAUSES:
            return
        config = self.rig.config
        words = Program.from_bytes(config, stream).words
        if error.index >= len(words):
            self._fail(f"{error.cause.name} at instruction {error.index} of {len(words)}", stream)
            return
        static = static_fault(config, words[error.index], last=error.index == len(words) - 1)
        if error.unit is Unit.FETCH and error.cause is not Cause.BUS_READ:
            if static is None or static.cause is not error.cause:
                self._fail(
                    f"the RTL refuses instruction {error.index} with {error.cause.name}, the rules say {static}", stream
                )
        elif static is not None and error.cause is Cause.INDEX_RANGE:
            self._fail(f"instruction {error.index} ran although it is illegal: {static.detail}", stream)

    # lost tokens ---------------------------------------------------------------------------------

    def token(self) -> None:
        """A stream that lacks a push is reported by the watchdog, with the queue that is waited for."""
        layout = isa_of(self.config)
        program = self.generator.program(LENGTH)
        while not (pushes := self._pushes(program)):
            program = self.generator.program(LENGTH)
        words = list(program.program.words)
        at, flag = pushes[int(self.rng.integers(len(pushes)))]
        entry = layout.layout_of(words[at] & 7)
        if entry is None:
            return
        words[at] &= ~entry.field(flag).mask
        stream = b"".join(word.to_bytes(16, "little") for word in words)
        self.rig.write_areas(program.areas)
        outcome = self.rig.run_fsim(stream)
        run = self.rig.run_rtl(stream, watchdog=WATCHDOG)
        if not self._ends(run, stream):
            self.rig.rtl.hard_reset()
        elif outcome.fault is None or outcome.fault.cause is not Cause.WATCHDOG:
            self._fail(f"fsim did not see that instruction {at} lacks {flag}", stream)
        elif run.error is None or run.error.cause is not Cause.WATCHDOG:
            self._fail(f"the RTL reports {run.error} instead of a watchdog", stream)
        else:
            error, waits = run.error, self._waits(stream)
            if (error.unit, error.index, error.wait, error.finish) != waits:
                self._fail(f"waits: {error} on the RTL, (unit, index, queues, finish) must be {waits}", stream)
            self.result.outcomes[f"waits for {_queues(run.error.wait)}"] += 1
        self._recover("after a lost token")

    def _pushes(self, program: RandomProgram) -> list[tuple[int, str]]:
        """(instruction, flag) of every push of a program."""
        insns = [decode(self.config, word) for word in program.program.words]
        return [(at, flag) for at, insn in enumerate(insns) for flag in ("push_prev", "push_next") if insn[flag]]

    def _waits(self, stream: bytes) -> tuple[Unit, int, int, bool] | None:
        """Unit, instruction, queues and FINISH that a watchdog of the RTL names, given the places its units add to queues."""
        compiled = self.rig.machine.compile(stream).stream
        depth = self.rig.config.queue_depth
        places = {unit: depth + more for unit, more in HELD.items()}
        stop = play(compiled, [0] * len(Queue), places=places).stop
        if stop is None or stop.cause is not Cause.WATCHDOG:
            return None
        wait = sum({1 << queue for waiting in stop.waiting for queue in waiting.queues})
        return stop.unit, stop.index, wait, any(waiting.finish for waiting in stop.waiting)

    # the bus -------------------------------------------------------------------------------------

    def bus(self) -> None:
        """SLVERR or DECERR on some beat the program uses: cause, channel and address are held, nothing finishes."""
        program = self.generator.program(LENGTH)
        address, write = self._beat(program)
        model = memory_model("bus", self.rng) if self.rng.random() < 0.5 else IDEAL
        self._bus_error(program, address, write, int(self.rng.integers(2, 4)), model)

    def _bus_error(self, program: RandomProgram, address: int, write: bool, response: int, model: MemoryModel) -> None:
        stream = program.program.to_bytes()
        bytes_ = self.rig.config.axi_data_bytes
        fault = BusFault(address // bytes_ * bytes_, bytes_, response, write)
        self.rig.write_areas(program.areas)
        self.rig.set_memory(model, (fault,))
        run = self.rig.run_rtl(stream, watchdog=WATCHDOG)
        self.rig.set_memory(IDEAL)
        cause = Cause.BUS_WRITE if write else Cause.BUS_READ
        if not self._ends(run, stream):
            self.rig.rtl.hard_reset()
        elif run.error is None or run.error.cause is not cause:
            self._fail(f"{cause.name} at {address:#x}: the RTL reports {run.error}", stream)
        else:
            held = run.error.address
            if not write and held // bytes_ != address // bytes_:
                self._fail(f"ERROR_ADDR {held:#x}, the fault was at {address:#x}", stream)
            elif write and not address - BURST_LIMIT < held <= address:
                self._fail(f"ERROR_ADDR {held:#x} is no burst that holds {address:#x}", stream)
            name = "SLVERR" if response == 2 else "DECERR"
            self.result.outcomes[f"{cause.name} channel {run.error.channel} {name}"] += 1
        self._recover("after a bus error")

    def sweep(self, cycles: int) -> None:
        """SLVERR and DECERR on every beat of a short program, and a soft reset in each of its first ``cycles`` cycles."""
        program = self.generator.program(SWEEP_LENGTH)
        for address, write in sorted(self._beats(program)):
            for response in (2, 3):
                self._trial = f"sweep, configuration {self.rig.config.name}, seed {self.seed}"
                self.result.trials["every beat"] += 1
                self._bus_error(program, address, write, response, IDEAL)
                if self.result.failures:
                    return
        for cycle in range(1, cycles + 1):
            self._trial = f"soft reset in cycle {cycle}, configuration {self.rig.config.name}, seed {self.seed}"
            self.result.trials["every cycle"] += 1
            self._reset_at(program, cycle, IDEAL)
            if self.result.failures:
                return

    def _beats(self, program: RandomProgram) -> set[tuple[int, bool]]:
        """(address, write) of every beat a program moves, its own words included."""
        config, bytes_ = self.rig.config, self.rig.config.axi_data_bytes
        spans = [(self.rig.stream, 16 * len(program.program.words), False)]
        for word in program.program.words:
            insn = decode(config, word)
            if insn.opcode not in (Opcode.LOAD, Opcode.STORE) or insn.is_noop:
                continue
            name, size = self._element(insn["memory_id"])
            for row in range(insn["y_size"]):
                start = self.rig.areas[name] + (insn["dram_base"] + row * insn["x_stride"]) * size
                spans.append((start, insn["x_size"] * size, insn.opcode is Opcode.STORE))
        return {
            (beat * bytes_, write)
            for start, length, write in spans
            for beat in range(start // bytes_, (start + length - 1) // bytes_ + 1)
        }

    def _element(self, memory: int) -> tuple[str, int]:
        """Area and bytes of an element of a memory id."""
        c = self.config
        return {
            MemId.UOP: ("uop", c.uop_bytes), MemId.WGT: ("wgt", c.wgt_bytes), MemId.INP: ("inp", c.inp_bytes),
            MemId.ACC: ("acc", c.acc_bytes), MemId.OUT: ("out", c.out_bytes), MemId.ACC_INT8: ("acc", c.acc8_bytes),
            MemId.ACC_UINT8: ("acc", c.acc8_bytes),
        }[MemId(memory)]  # fmt: skip

    def _beat(self, program: RandomProgram) -> tuple[int, bool]:
        """A byte that the program reads or writes: of the stream, or of a transfer drawn at random."""
        config = self.rig.config
        insns = [decode(config, word) for word in program.program.words]
        moves = [insn for insn in insns if insn.opcode in (Opcode.LOAD, Opcode.STORE) and not insn.is_noop]
        choice = int(self.rng.integers(len(moves) + 3))
        if choice >= len(moves):
            return self.rig.stream + int(self.rng.integers(16 * len(insns))), False
        insn = moves[choice]
        name, size = self._element(insn["memory_id"])
        row, column = int(self.rng.integers(insn["y_size"])), int(self.rng.integers(insn["x_size"]))
        element = insn["dram_base"] + row * insn["x_stride"] + column
        address = self.rig.areas[name] + element * size + int(self.rng.integers(size))
        return address, insn.opcode is Opcode.STORE

    def lost(self) -> None:
        """A response that never comes is a watchdog error; it comes after the soft reset, and changes nothing."""
        program = self.generator.program(LENGTH)
        stream = program.program.to_bytes()
        address, write = self._beat(program)
        bytes_ = self.rig.config.axi_data_bytes
        self.rig.write_areas(program.areas)
        self.rig.set_memory(IDEAL, (BusFault(address // bytes_ * bytes_, bytes_, LOST, write),))
        run = self.rig.run_rtl(stream, watchdog=WATCHDOG)
        if not self._ends(run, stream):
            self.rig.rtl.hard_reset()
        elif run.error is None or run.error.cause is not Cause.WATCHDOG:
            self._fail(f"no response at {address:#x}: the RTL reports {run.error}", stream)
        self.result.outcomes["WATCHDOG, lost response"] += 1
        if not self.rig.soft_reset():
            self._fail("lost response: the soft reset did not end", stream)
            self.rig.rtl.hard_reset()
        self.rig.set_memory(IDEAL)
        self._agree("a response of before the soft reset comes late", self.reference, fill=True)

    # reset ---------------------------------------------------------------------------------------

    def reset(self) -> None:
        """A soft reset in a random cycle of a run; the next run is exact."""
        program = self.generator.program(LENGTH)
        model = memory_model("inside", self.rng) if self.rng.random() < 0.6 else IDEAL
        self._reset_at(program, int(self.rng.integers(1, (40 if self.rng.random() < 0.7 else 8) * LENGTH)), model)

    def _reset_at(self, program: RandomProgram, cycle: int, model: MemoryModel) -> None:
        stream = program.program.to_bytes()
        self.rig.write_areas(program.areas)
        self.rig.set_memory(model)
        self.rig.start_rtl(stream)
        self.rig.rtl.delay(cycle)
        if not self.rig.soft_reset():
            self._fail("the soft reset did not end", stream)
            self.rig.rtl.hard_reset()
        self.result.outcomes["reset"] += 1
        if model is not IDEAL:
            self.rig.set_memory(memory_model("inside", self.rng))
        self._agree(f"after a soft reset in cycle {cycle}", self.reference, fill=True)
        self.rig.set_memory(IDEAL)

    def run(self, trials: int, kinds: tuple[str, ...] = KINDS) -> None:
        """Trials of these kinds in turn; stops at the first failure."""
        if not self.start():
            return
        for number in range(trials):
            kind = kinds[number % len(kinds)]
            self._trial = f"trial {number} ({kind}), configuration {self.rig.config.name}, seed {self.seed}"
            self.result.trials[kind] += 1
            try:
                getattr(self, kind)()
            except SimulationFailed as error:
                self._fail(str(error))
            if self.result.failures:
                return


def _queues(wait: int) -> str:
    return "+".join(queue.name for queue in Queue if wait >> queue & 1) or "memory"


def run_faults(
    name: str, seeds: tuple[int, ...], trials: int, *, sweep: int = 0, progress: Progress | None = None
) -> FaultResult:
    """``trials`` faults on one configuration, shared among the seeds; with ``sweep`` afterwards every
    beat of a short program, and a soft reset in each of so many cycles.

    Raises:
        ConfigError, ToolMissing, BuildFailed, SimulationFailed: as the names say.
    """
    config = configuration(name)
    result = FaultResult(name, config.label, tuple(seeds))
    started = time.monotonic()
    for seed in seeds:
        with Rig(config, seed=seed, progress=progress) as rig:
            campaign = FaultCampaign(rig, seed, result)
            campaign.run(-(-trials // len(seeds)))
            if sweep and not result.failures:
                campaign.sweep(sweep)
        tell(progress, f"{name}: seed {seed}, {sum(result.trials.values())} faults, {len(result.failures)} failures")
        if result.failures:
            break
    result.seconds = time.monotonic() - started
    return result
