# SPDX-License-Identifier: Apache-2.0
"""The functional machine: runs a binary stream on scratchpads and device memory."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy.typing as npt

from openvta.sim.errors import BusFault, StateError
from openvta.sim.fsim.alu import Alu
from openvta.sim.fsim.blas import one_thread
from openvta.sim.fsim.gemm import Gemm
from openvta.sim.fsim.op import BASES, Core, Op, OpFault
from openvta.sim.fsim.requant import Requant
from openvta.sim.fsim.schedule import QUEUES, Chooser, Schedule, play, round_robin, seeded
from openvta.sim.fsim.scratchpads import IntArray, Memory, Scratchpads
from openvta.sim.fsim.stream import Decoded, Stream, decode_stream
from openvta.sim.fsim.transfer import LOADS, Store
from openvta.sim.memory import DeviceMemory
from openvta.spec import Cause, HardwareConfig, MemId, Opcode, Queue, Unit
from openvta.spec.isa import INSN_BYTES

KEEP_STREAMS = 16
KEEP_SCHEDULES = 4


@dataclass(frozen=True)
class Fault:
    """What the ERROR registers hold after a run that failed, and the reason in words.

    ``channel`` and ``address`` belong to bus errors; ``wait`` (one bit for every queue some unit waits for) and ``finish``
    to a watchdog, whose ``unit`` is the first that waits for a token.
    """

    cause: Cause
    unit: Unit
    index: int
    detail: str
    channel: int = 0
    address: int = 0
    wait: int = 0
    finish: bool = False


@dataclass(frozen=True)
class Outcome:
    """A run.

    Attributes:
        fault: what ended it, or None.
        retired_items: instructions in the order they retired.
        counters: exact counters by name.
    """

    fault: Fault | None
    retired_items: Sequence[Decoded] = ()
    counters: Mapping[str, int] = field(default_factory=dict)

    @property
    def retired(self) -> int:
        """Instructions retired."""
        return len(self.retired_items)


class Compiled:
    """A stream with its instructions bound to a core."""

    def __init__(self, core: Core, stream: Stream) -> None:
        self.stream = stream
        self.ops: list[Op] = []
        self._by_word: dict[int, Op] = {}
        for item in stream.items:
            key = item.word >> 7
            op = self._by_word.get(key << 3 | item.insn.opcode)
            if op is None:
                op = bind(core, item)
                self._by_word[key << 3 | item.insn.opcode] = op
            self.ops.append(op)
        self._schedules: OrderedDict[tuple[int, ...], Schedule] = OrderedDict()
        self._work: dict[str, int] | None = None
        self._last_order: tuple[int, ...] | None = None
        self._last_items: tuple[Decoded, ...] = ()

    def schedule(self, tokens: Sequence[int]) -> Schedule:
        """The round-robin order from these token counts."""
        key = tuple(tokens)
        found = self._schedules.get(key)
        if found is None:
            found = play(self.stream, key)
            self._schedules[key] = found
            if len(self._schedules) > KEEP_SCHEDULES:
                self._schedules.popitem(last=False)
        return found

    def in_order(self, order: tuple[int, ...]) -> Sequence[Decoded]:
        """The instructions of an order."""
        if order is not self._last_order:
            self._last_order = order
            self._last_items = tuple(self.stream.items[index] for index in order)
        return self._last_items

    def work(self, order: tuple[int, ...]) -> dict[str, int]:
        """Counters of a finished order (the same for every order that finishes)."""
        whole = len(order) == len(self.ops)
        if whole and self._work is not None:
            return self._work
        total: dict[str, int] = {}
        for index in order:
            for name, count in self.ops[index].work().counts:
                total[name] = total.get(name, 0) + count
        if whole:
            self._work = total
        return total


def bind(core: Core, item: Decoded) -> Op:
    """The executable form of an instruction."""
    insn = item.insn
    if insn.is_noop or item.is_finish:
        return Op(core, insn)
    if insn.opcode is Opcode.LOAD:
        return LOADS[MemId(insn["memory_id"])](core, insn)
    if insn.opcode is Opcode.STORE:
        return Store(core, insn)
    if insn.opcode is Opcode.GEMM:
        return Gemm(core, insn)
    if insn.opcode is Opcode.ALU:
        return Alu(core, insn)
    return Requant(core, insn)


Observer = Callable[[Decoded, Op], None]


@dataclass
class Observers:
    """Calls around every instruction: ``before`` it touches anything, ``after`` it retired."""

    before: list[Observer] = field(default_factory=list)
    after: list[Observer] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.before or self.after)


class Machine:
    """A core that executes streams; scratchpads keep their contents from run to run, as hardware does.

    Args:
        config: the configuration.
        memory: device memory; its number of images is the machine's.
    """

    def __init__(self, config: HardwareConfig, memory: DeviceMemory) -> None:
        self.config = config
        self.memory = memory
        self.core = Core(config, Scratchpads(config, memory.images), memory)
        self.observers = Observers()
        self._tokens = [0] * len(QUEUES)
        self._done = 0
        self._compiled: OrderedDict[bytes, Compiled] = OrderedDict()

    # state ---------------------------------------------------------------------------------------

    def scratchpad(self, memory: Memory, image: int = 0) -> IntArray:
        """A copy of a scratchpad's contents; shapes as :meth:`Scratchpads.read`."""
        return self.core.pads.read(memory, image)

    def set_scratchpad(self, memory: Memory, first: int, values: npt.ArrayLike) -> None:
        """Set elements from ``first`` on, in every image; shapes as :meth:`scratchpad` gives them.

        Raises:
            StateError: they do not fit.
        """
        self.core.pads.write(memory, first, values)

    @property
    def tokens(self) -> dict[Queue, int]:
        """Tokens in every dependence queue."""
        return dict(zip(QUEUES, self._tokens, strict=True))

    def set_tokens(self, counts: Mapping[Queue, int]) -> None:
        """Set token counts.

        Raises:
            StateError: a count outside 0 .. token depth.
        """
        for queue, count in counts.items():
            if not 0 <= count <= self.config.token_depth:
                raise StateError(f"{queue.name.lower()}: {count} tokens: must be 0..{self.config.token_depth}")
            self._tokens[queue] = count

    def reset(self) -> None:
        """Soft reset: token queues empty; scratchpads keep what they hold."""
        self._tokens = [0] * len(QUEUES)

    # running -------------------------------------------------------------------------------------

    def compile(self, data: bytes) -> Compiled:
        """The stream in ``data`` ready to run; kept for the next time."""
        found = self._compiled.get(data)
        if found is None:
            found = Compiled(self.core, decode_stream(self.config, data))
            self._compiled[data] = found
            if len(self._compiled) > KEEP_STREAMS:
                self._compiled.popitem(last=False)
        else:
            self._compiled.move_to_end(data)
        return found

    def compile_ops(self, stream: Stream) -> Sequence[Op]:
        """The executable instructions of a stream :meth:`compile` decoded."""
        for compiled in self._compiled.values():
            if compiled.stream is stream:
                return compiled.ops
        return [bind(self.core, item) for item in stream.items]

    def run(
        self,
        address: int,
        count: int,
        bases: Mapping[str, int] | None = None,
        *,
        seed: int | None = None,
    ) -> Outcome:
        """Fetch and execute ``count`` instructions at ``address``.

        Args:
            address: byte address of the stream.
            count: number of instructions, FINISH included.
            bases: base addresses by name (uop, inp, wgt, acc, out); missing ones are zero.
            seed: draw the interleaving of the units at random instead of round robin.

        Raises:
            LockstepError: images differ in micro-ops or weights.
        """
        data, missing = self.fetch(address, count)
        return self.run_stream(data, bases, seed=seed, fetch_fault=missing)

    def fetch(self, address: int, count: int) -> tuple[bytes, Fault | None]:
        """The words of a stream in device memory, and the bus fault that cuts it short (or None)."""
        try:
            self.memory.check(address, count * INSN_BYTES, write=False)
            return self.memory.read(address, count * INSN_BYTES).tobytes(), None
        except BusFault as fault:
            whole = (fault.address - address) // INSN_BYTES
            missing = Fault(Cause.BUS_READ, Unit.FETCH, whole, str(fault), address=fault.address)
            return self.memory.read(address, whole * INSN_BYTES).tobytes(), missing

    def run_stream(
        self,
        data: bytes,
        bases: Mapping[str, int] | None = None,
        *,
        seed: int | None = None,
        fetch_fault: Fault | None = None,
    ) -> Outcome:
        """Execute instruction words that are given rather than fetched; see :meth:`run`."""
        core = self.core
        core.bases.update({name: (bases or {}).get(name, 0) for name in BASES})
        core.acc_writes = 0
        if fetch_fault is not None:
            return Outcome(fetch_fault)
        compiled = self.compile(data)
        if seed is not None:
            return self._execute(compiled, play(compiled.stream, self._tokens, seeded(seed)))
        return self._execute(compiled, compiled.schedule(self._tokens))

    def play(self, data: bytes, choose: Chooser = round_robin) -> Schedule:
        """The token play of a stream from the present counts, without executing it."""
        return play(self.compile(data).stream, self._tokens, choose)

    def _execute(self, compiled: Compiled, schedule: Schedule) -> Outcome:
        overflow = schedule.stop is not None and schedule.stop.cause is Cause.TOKEN_OVERFLOW
        fault: Fault | None = None
        self._done = 0
        try:
            with one_thread():
                self._run_ops(compiled, schedule, len(schedule.order) - overflow)
        except OpFault as error:
            item = compiled.stream.items[schedule.order[self._done]]
            fault = Fault(
                error.cause, item.unit, item.index, error.detail, channel=error.channel, address=error.address
            )
        order = schedule.order if fault is None else schedule.order[: self._done]
        if fault is None:
            self._tokens = list(schedule.tokens)
            fault = _stopped(schedule)
            if overflow:
                order = order[:-1]
        counters = dict(compiled.work(order))
        counters["insns_retired"] = len(order)
        counters["insn_bytes"] = INSN_BYTES * len(compiled.stream.items)
        counters["acc_writes"] = self.core.acc_writes
        return Outcome(fault, compiled.in_order(order), counters)

    def _run_ops(self, compiled: Compiled, schedule: Schedule, retiring: int) -> None:
        """Execute an order; ``self._done`` counts what is complete. Only the first ``retiring`` are seen to retire."""
        ops, observers = compiled.ops, self.observers
        if not observers:
            for index in schedule.order:
                ops[index].execute()
                self._done += 1
            return
        for index in schedule.order:
            item, op = compiled.stream.items[index], ops[index]
            for before in observers.before:
                before(item, op)
            op.execute()
            self._done += 1
            if self._done <= retiring:
                for after in observers.after:
                    after(item, op)


def _stopped(schedule: Schedule) -> Fault | None:
    stop = schedule.stop
    if stop is None:
        return None
    wait, finish = 0, False
    for waiting in stop.waiting:
        for queue in waiting.queues:
            wait |= 1 << queue
        finish |= waiting.finish
    return Fault(stop.cause, stop.unit, stop.index, stop.detail, wait=wait, finish=finish)
