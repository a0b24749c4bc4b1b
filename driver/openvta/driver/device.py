# SPDX-License-Identifier: Apache-2.0
"""One device, whatever is below it: identity, placement, launch, bounded wait, counters, outputs."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress

import numpy as np
import numpy.typing as npt

from openvta.driver.bound import cycle_bound
from openvta.driver.errors import DeviceError, Timeout
from openvta.driver.faults import read_fault
from openvta.driver.forks import Shared, can_fork, jobs_wanted
from openvta.driver.host import Arrays, HostPart
from openvta.driver.identity import check_identity
from openvta.driver.image import PlacedImage
from openvta.driver.inputs import check_inputs
from openvta.driver.result import LaunchResult, RunResult, add_counters, layer_cycles
from openvta.driver.stages import Stages
from openvta.driver.transport import LockstepTransport, Opener, Progress, Transport, read_registers
from openvta.spec.bundle import AccelStep, Bundle, HostStep
from openvta.spec.config import HardwareConfig
from openvta.spec.registers import CONTROL, COUNTERS, OFFSETS, STATUS

MAX_IMAGES = 32
"""Images side by side in one pass: enough to share the cost of each instruction, few enough to stay in cache."""
MAX_IMAGE_BYTES = 1 << 30
RESET_POLLS = 10_000


class Device:
    """A device by name. It is opened when its configuration is known: at once, or by the first bundle.

    Args:
        name: for messages.
        opener: makes the transport of a configuration.
        config: the device's configuration; None takes that of the first bundle.
        jobs: processes that share the passes of a long run, where the device can ("forks"); None: OPENVTA_JOBS, else one
            a processor.

    Use it as a context manager, or call :meth:`close`.
    """

    def __init__(
        self, name: str, opener: Opener, config: HardwareConfig | None = None, jobs: int | None = None
    ) -> None:
        try:
            self._jobs = jobs_wanted(jobs)
        except ValueError as error:
            raise DeviceError(str(error)) from error
        self.name = name
        self._opener = opener
        self._transport: Transport | None = None
        self._config = config
        self._placed: PlacedImage | None = None
        self._hosts: dict[bytes, HostPart] = {}
        if config is not None:
            self._open(config)

    def __enter__(self) -> Device:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let the device go; it opens again when it is used again."""
        transport, self._transport, self._placed = self._transport, None, None
        if transport is not None:
            transport.close()

    @property
    def transport(self) -> Transport:
        """What is below.

        Raises:
            DeviceError: the device is not open.
        """
        if self._transport is None:
            raise DeviceError(f"device '{self.name}' is not open: give open_device a config, or run a bundle first")
        return self._transport

    @property
    def capabilities(self) -> frozenset[str]:
        """What the device can do; see :class:`Transport`."""
        return self.transport.capabilities

    def _open(self, config: HardwareConfig) -> Transport:
        if self._transport is None:
            transport = self._opener(config)
            try:
                check_identity(transport, config, "this request")
            except BaseException:
                transport.close()
                raise
            self._transport, self._config = transport, config
        return self._transport

    # bundles -------------------------------------------------------------------------------------

    def load(self, bundle: Bundle, images: int = 1) -> PlacedImage:
        """Place a bundle in the device's memory, constants and programs written; a bundle already there stays as it is.

        Raises:
            ConfigMismatch: the device has another configuration.
        """
        transport = self._open(self._config or bundle.config)
        if self._placed is not None and self._placed.bundle is bundle and self._placed.images == images:
            return self._placed
        check_identity(transport, bundle.config, f"bundle '{bundle.name}'")
        self._placed = None
        if isinstance(transport, LockstepTransport) and "images" in transport.capabilities:
            transport.set_images(images)
        self._placed = PlacedImage(transport, bundle, images)
        return self._placed

    def launch(self, bundle: Bundle, segment: int = 0, *, max_cycles: int | None = None) -> LaunchResult:
        """Run one segment of a bundle on what is in memory, and wait for its end.

        Args:
            bundle: it is placed first if it is not there.
            segment: which program.
            max_cycles: bound of the wait; by default far above what the program can take.

        Raises:
            Fault, BusError: the device stopped with an error.
            Timeout: it did not stop within the bound.
            ConfigMismatch: the device has another configuration.
        """
        images = self._placed.images if self._placed is not None and self._placed.bundle is bundle else 1
        placed = self.load(bundle, images)
        transport = self.transport
        if not 0 <= segment < len(bundle.segments):
            raise DeviceError(f"segment = {segment}: bundle '{bundle.name}' has {len(bundle.segments)}")
        program = bundle.segments[segment].program
        self._recover(transport)
        pointers = {"INSN": bundle.segments[segment].insn_offset, **{k.upper(): v for k, v in bundle.bases.items()}}
        for name, offset in pointers.items():
            address = placed.base + offset
            transport.write_register(OFFSETS[f"{name}_BASE_LO"], address & 0xFFFFFFFF)
            transport.write_register(OFFSETS[f"{name}_BASE_HI"], address >> 32)
        transport.write_register(OFFSETS["INSN_COUNT"], len(program))
        transport.write_register(OFFSETS["IRQ_STATUS"], 3)
        transport.retire_events()
        self._gemm_ends(transport)
        transport.write_register(OFFSETS["CONTROL"], CONTROL.field("launch").mask)
        bound = cycle_bound(program) if max_cycles is None else max_cycles
        stopped = transport.wait(cycles=bound)
        place = f"segment {segment} of bundle '{bundle.name}'"
        layers = [layer for layer in bundle.layers if layer.segment == segment]
        fault = read_fault(transport, program, place, placed.base)
        if fault is not None:
            here = [layer.name for layer in layers if layer.first_insn <= fault.index <= layer.last_insn]
            if here:
                fault.args = (f"{fault.args[0]} [layer '{here[0]}']",)
            raise fault
        if not stopped:
            raise Timeout(f"{place}: still running after {bound} cycles; {self._status(transport)}")
        if not transport.read_register(OFFSETS["CONTROL"]) & CONTROL.field("finish").mask:
            raise DeviceError(f"{place}: stopped without finishing and without an error; {self._status(transport)}")
        events = tuple(transport.retire_events()) if "retire_events" in transport.capabilities else ()
        ends = self._gemm_ends(transport)
        return LaunchResult(segment, self._counters(transport), events, ends)

    @staticmethod
    def _gemm_ends(transport: Transport) -> tuple[int, ...]:
        take = getattr(transport, "gemm_ends", None) if "gemm_ends" in transport.capabilities else None
        return tuple(take()) if take is not None else ()

    def _recover(self, transport: Transport) -> None:
        """Clear what an earlier run left behind: an error held, or a run given up."""
        status = STATUS.decode(transport.read_register(OFFSETS["STATUS"]))
        if not status["halted"] and not status["running"]:
            return
        transport.write_register(OFFSETS["RESET"], 1)
        for _ in range(RESET_POLLS):
            if not transport.read_register(OFFSETS["RESET"]) & 1:
                return
            with suppress(Timeout):
                transport.wait(cycles=16)
        raise Timeout(f"soft reset of device '{self.name}' does not end; {self._status(transport)}")

    @staticmethod
    def _status(transport: Transport) -> str:
        fields = STATUS.decode(transport.read_register(OFFSETS["STATUS"]))
        busy = [name for name, value in fields.items() if value]
        return f"STATUS: {', '.join(busy) or 'idle'}"

    @staticmethod
    def _counters(transport: Transport) -> dict[str, int]:
        if "counters" not in transport.capabilities:
            return {}
        timed = "cycles" in transport.capabilities
        names = [name for name, _ in COUNTERS]
        offsets = [OFFSETS[f"COUNTER_{name.upper()}"] for name in names]
        head = [OFFSETS[name] for name in ("CYCLES", "CYCLES_HI", "ACC_WRITES")]
        low, high, writes, *values = read_registers(transport, [*head, *offsets])
        result = {"cycles": high << 32 | low} if timed else {}
        result["acc_writes"] = writes
        untimed = ("_bytes", "_uops", "_vectors", "_retired")
        for name, value in zip(names, values, strict=True):
            if timed or name.endswith(untimed):
                result[name] = value
        return result

    # whole models --------------------------------------------------------------------------------

    def run(
        self,
        bundle: Bundle,
        inputs: Mapping[str, npt.ArrayLike],
        *,
        max_cycles: int | None = None,
        progress: Progress | None = None,
    ) -> RunResult:
        """Run a bundle on any number of images, a batch at a time (several batches where the device can).

        Args:
            bundle: what the compiler made.
            inputs: arrays by name, first dimension = images.
            max_cycles: bound of the wait for every launch.
            progress: told how far it is.

        Raises:
            InputError: an array that does not fit the model's input.
            ConfigMismatch, Fault, BusError, Timeout: as their names say.
        """
        began = time.monotonic()
        arrays, rows = check_inputs(bundle, inputs)
        transport = self._open(self._config or bundle.config)
        batch = bundle.config.batch
        stages = Stages.of(bundle)
        images, workers = self._images(transport, bundle, -(-rows // batch), stages)
        placed = self.load(bundle, images)
        step = batch * images
        launches: list[LaunchResult] = []

        def one(number: int) -> tuple[Arrays, dict[str, int]]:
            start = number * step
            count = min(step, rows - start)
            values = {name: array[start : start + count] for name, array in table.items()}
            launches[:] = self._pass(bundle, placed, stages, values, count, max_cycles)
            counters: dict[str, int] = {}
            for launch in launches:
                add_counters(counters, launch.counters)
            if progress is not None and rows > step:
                progress(f"{self.name}: {start + count} of {rows} images")
            return {name: values[name] for name in stages.kept if name in values}, counters

        table = self._host_steps(stages.first, dict(arrays), rows, step)
        passes = Shared(one, -(-rows // step), workers).run()
        for name in passes[0][0]:
            table[name] = np.concatenate([values[name] for values, _ in passes])
        table = self._host_steps(stages.last, table, rows, step)
        missing = [name for name in bundle.outputs if name not in table]
        if missing:
            raise DeviceError(f"bundle '{bundle.name}': no step makes output '{missing[0]}'; compile the model again")
        total: dict[str, int] = {}
        for _, counters in passes:
            add_counters(total, counters)
        trace = getattr(transport, "trace_events", None) if "trace" in transport.capabilities else None
        return RunResult(
            outputs={name: table[name] for name in bundle.outputs},
            counters=passes[-1][1],
            layer_cycles=layer_cycles(bundle, launches) if "cycles" in transport.capabilities else {},
            total=total,
            images=rows,
            passes=len(passes),
            trace=trace() if trace is not None and launches else (),
            elapsed=time.monotonic() - began,
        )

    def _images(self, transport: Transport, bundle: Bundle, needed: int, stages: Stages) -> tuple[int, int]:
        """Images side by side, and processes that share the passes, for ``needed`` images (or batches of them)."""
        able = "images" in transport.capabilities and not transport.capabilities & {"trace", "check"}
        images = max(1, min(needed, MAX_IMAGES, MAX_IMAGE_BYTES // bundle.memory_bytes)) if able else 1
        passes = -(-needed // images)
        workers = min(self._jobs, passes)
        if workers < 2 or stages.mixed or "forks" not in transport.capabilities or not can_fork():
            return images, 1
        return -(-needed // (-(-passes // workers) * workers)), workers

    def _pass(
        self,
        bundle: Bundle,
        placed: PlacedImage,
        stages: Stages,
        values: Arrays,
        rows: int,
        max_cycles: int | None,
    ) -> list[LaunchResult]:
        """The steps from the first to the last of the accelerator, once; ``values`` gets what they make."""
        launches = []
        resident: set[str] = set()
        for step in stages.middle:
            if isinstance(step, HostStep):
                self._host_step(step, values, rows)
                resident -= set(step.outputs)
                continue
            self._feed(bundle, placed, step, values, resident)
            launches.append(self.launch(bundle, step.segment, max_cycles=max_cycles))
            for name in step.outputs:
                resident.add(name)
                if name in stages.kept:
                    values[name] = placed.read_tensor(bundle.tensor(name), rows)
                else:
                    values.pop(name, None)
        return launches

    def _host_steps(self, steps: Sequence[HostStep], values: Arrays, rows: int, at_once: int) -> Arrays:
        """``values`` with what these host steps make, ``at_once`` rows at a time."""
        if not steps:
            return values
        parts = []
        for start in range(0, rows, at_once):
            part = {name: array[start : start + at_once] for name, array in values.items()}
            for step in steps:
                self._host_step(step, part, min(at_once, rows - start))
            parts.append(part)
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    def _host_step(self, step: HostStep, values: Arrays, rows: int) -> None:
        missing = [name for name in step.inputs if name not in values]
        if missing:
            raise DeviceError(f"host step '{step.name}': no step before it makes '{missing[0]}'")
        values.update(self._host(step).run(values, rows))

    @staticmethod
    def _feed(bundle: Bundle, placed: PlacedImage, step: AccelStep, values: Arrays, resident: set[str]) -> None:
        for name in step.inputs:
            if name in resident:
                continue
            if name not in values:
                raise DeviceError(f"segment {step.segment}: no step before it makes '{name}'; compile the model again")
            placed.write_tensor(bundle.tensor(name), values[name])
            resident.add(name)

    def _host(self, step: HostStep) -> HostPart:
        found = self._hosts.get(step.model)
        if found is None or found.step != step:
            found = HostPart(step)
            self._hosts[step.model] = found
        return found
