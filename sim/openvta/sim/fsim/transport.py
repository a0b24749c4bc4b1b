# SPDX-License-Identifier: Apache-2.0
"""The functional simulator as a device: registers, memory and waits, like every other."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from openvta.sim.errors import SimError
from openvta.sim.fsim.check import CheckError, CheckReport, check_run
from openvta.sim.fsim.machine import Machine, Outcome
from openvta.sim.fsim.registers import RegisterModel
from openvta.sim.fsim.tracer import Tracer
from openvta.sim.memory import DeviceMemory
from openvta.sim.trace import TraceEvent
from openvta.spec import HardwareConfig

CAPABILITIES = frozenset({"counters", "retire_events", "state", "bus_faults", "instant", "zeroed", "images", "forks"})


class FsimTransport:
    """Registers and memory of the functional simulator.

    A launch runs the whole stream before the register write returns, so :meth:`wait` never waits. ``CYCLES`` counts
    retired instructions ("cycles" is not among the capabilities); counters of bytes, micro-ops and vectors are exact.

    Args:
        config: hardware configuration.
        check: look for races, deadlocks, never-written reads and leftover tokens; a finding is raised as
            :class:`CheckError` by :meth:`wait`.
        trace: keep the events of every retired instruction (see :meth:`trace_events`).
        events: keep retirements for :meth:`retire_events`.
        seed: draw the interleaving of the units at random with this seed, instead of round robin.
        memory: device memory to use instead of a fresh one.
    """

    def __init__(
        self,
        config: HardwareConfig,
        *,
        check: bool = False,
        trace: bool = False,
        events: bool = True,
        seed: int | None = None,
        memory: DeviceMemory | None = None,
    ) -> None:
        self.config = config
        self.capabilities = CAPABILITIES | ({"trace"} if trace else set()) | ({"check"} if check else set())
        self.memory = memory or DeviceMemory()
        self.machine = Machine(config, self.memory)
        self.report: CheckReport | None = None
        self._check = check
        self._seed = seed
        self._events = events
        self._allocated: list[int] = []
        self._retired: list[tuple[int, int, int]] = []
        self._registers = RegisterModel(self.machine, self._run)
        self._tracer = Tracer(self.machine) if trace else None

    # registers -----------------------------------------------------------------------------------

    def read_register(self, offset: int) -> int:
        """Value of a register."""
        return self._registers.read(offset)

    def read_registers(self, offsets: list[int]) -> list[int]:
        """Values of several registers."""
        return [self._registers.read(offset) for offset in offsets]

    def write_register(self, offset: int, value: int) -> None:
        """Write a register; a launch runs the stream.

        Raises:
            SimError: something no hardware could do either, such as images that diverge in lockstep.
        """
        self._registers.write(offset, value)

    # memory --------------------------------------------------------------------------------------

    def allocate(self, nbytes: int, alignment: int = 4096) -> int:
        """Device address of ``nbytes`` fresh bytes.

        Raises:
            MemoryLimitError: a size or alignment that cannot be had.
        """
        address = self.memory.allocate(nbytes, alignment)
        self._allocated.append(address)
        return address

    def free_all(self) -> None:
        """Forget every allocation made here."""
        for address in self._allocated:
            self.memory.free(address)
        self._allocated.clear()

    def set_images(self, count: int) -> None:
        """Run ``count`` images side by side from now on, in fresh memory; the core starts as after power-up."""
        if count == self.memory.images:
            return
        self._allocated.clear()
        self.memory = DeviceMemory(count)
        self.machine = Machine(self.config, self.memory)
        self._registers = RegisterModel(self.machine, self._run)
        self._tracer = None if self._tracer is None else Tracer(self.machine)
        self.report = None

    def write_images(self, address: int, data: npt.NDArray[np.uint8]) -> None:
        """Write different bytes for every image: uint8 ``[images, nbytes]``.

        Raises:
            BusFault: part of it is not allocated.
        """
        self.memory.write_images(address, data)

    def read_images(self, address: int, nbytes: int) -> npt.NDArray[np.uint8]:
        """The same bytes of every image: uint8 ``[images, nbytes]``.

        Raises:
            BusFault: part of it is not allocated.
        """
        return self.memory.read_images(address, nbytes)

    def read(self, address: int, nbytes: int) -> npt.NDArray[np.uint8]:
        """A copy of device memory.

        Raises:
            BusFault: part of it is not allocated.
        """
        return self.memory.read(address, nbytes)

    def write(self, address: int, data: npt.NDArray[np.uint8] | bytes) -> None:
        """Write device memory.

        Raises:
            BusFault: part of it is not allocated.
        """
        self.memory.write(address, data)

    # runs ----------------------------------------------------------------------------------------

    def wait(self, *, cycles: int = 0, seconds: float | None = None) -> bool:
        """Whether the accelerator has stopped (finished or error); False only where it hangs with its watchdog off.

        Raises:
            CheckError: checks were asked for and found something in the last run.
        """
        if self.report is not None and self.report.findings:
            raise CheckError(self.report)
        return not self._registers.running

    def retire_events(self) -> list[tuple[int, int, int]]:
        """Retired instructions since the last call, in order of retirement: (ordinal, unit, index)."""
        events, self._retired = self._retired, []
        return events

    def trace_events(self) -> list[TraceEvent]:
        """Trace of the last run.

        Raises:
            SimError: the device was opened without ``trace``.
        """
        if self._tracer is None:
            raise SimError("no trace: open the device with trace=True")
        return list(self._tracer.events)

    def fault_text(self) -> str:
        """The last run's fault in words; empty if there was none."""
        outcome = self._registers.outcome
        return outcome.fault.detail if outcome is not None and outcome.fault is not None else ""

    def hard_reset(self) -> None:
        """Everything as after power-up except memory and scratchpads."""
        self._registers.reset()

    def close(self) -> None:
        """Release memory."""
        self.free_all()

    def __enter__(self) -> FsimTransport:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(self, address: int, count: int, bases: dict[str, int]) -> Outcome:
        if self._tracer is not None:
            self._tracer.start()
        if self._check:
            self.report = check_run(self.machine, address, count, bases, seed=self._seed)
            outcome = self.report.outcome
        else:
            outcome = self.machine.run(address, count, bases, seed=self._seed)
        if self._events:
            self._retired.extend(
                (ordinal, int(item.unit), item.index) for ordinal, item in enumerate(outcome.retired_items)
            )
        return outcome


def open_transport(config: HardwareConfig, **options: object) -> FsimTransport:
    """Entry point of the device "fsim": see :class:`FsimTransport` for the options."""
    return FsimTransport(config, **options)  # type: ignore[arg-type]
