# SPDX-License-Identifier: Apache-2.0
"""The RTL as a device: registers over AXI4-Lite, memory shared with the simulator, bounded waits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from openvta.sim.cosim.build import ElaboratedDesign, elaborate, fast_harness, verilate
from openvta.sim.cosim.cache import Progress
from openvta.sim.cosim.errors import CosimError
from openvta.sim.cosim.session import DRAM, IDEAL, BusFault, FastSession, MemoryModel, Op, OpKind
from openvta.spec.config import HardwareConfig
from openvta.spec.registers import OFFSETS, STATUS

MEMORY_BASE = 0x1000_0000
MEMORY_MODELS = {"ideal": IDEAL, "dram": DRAM}
SLOWEST_CYCLES_A_SECOND = 5_000
CAPABILITIES = frozenset({"cycles", "counters", "retire_events", "gemm_ends", "bus_faults"})


class CosimTransport:
    """Registers, memory and waits of the RTL under Verilator, driven by cocotb.

    Args:
        config: hardware configuration; elaborated and built on first use, cached by content.
        memory_bytes: size of device memory.
        memory: "ideal", "dram" or a :class:`MemoryModel`.
        waves: write a waveform (VCD) to this file.
        checked: random initial state and assertions instead of speed.
        trace: hash what every instruction writes, for :meth:`trace_hashes`.
        stalls: build stall points inside, closed as the memory model's ``inside`` says.
        coverage_file: count lines and toggles, and write them here when the device is closed.
        seed: of the random initial state.
        change: makes another design of the elaborated one, such as one with faults planted in it.
        arguments: more arguments of the simulator, such as plusargs.
        progress: told about long steps.
    """

    def __init__(
        self,
        config: HardwareConfig,
        *,
        memory_bytes: int = 1 << 26,
        memory: str | MemoryModel = "ideal",
        waves: str | Path | None = None,
        checked: bool = False,
        trace: bool = False,
        stalls: bool = False,
        coverage_file: str | Path | None = None,
        seed: int = 1,
        change: Callable[[ElaboratedDesign], ElaboratedDesign] | None = None,
        arguments: Sequence[str] = (),
        progress: Progress | None = None,
    ) -> None:
        if isinstance(memory, str):
            if memory not in MEMORY_MODELS:
                raise CosimError(f"memory model '{memory}': must be one of {', '.join(MEMORY_MODELS)}")
            memory = MEMORY_MODELS[memory]
        self.config = config
        extras = tuple(name for name, wanted in (("trace", trace), ("stalls", stalls)) if wanted)
        self.capabilities = CAPABILITIES | ({"trace"} if trace else set())
        design = elaborate(config, extras=extras, progress=progress)
        if change is not None:
            design = change(design)
        harness = fast_harness(
            config, waves=waves is not None, checked=checked, coverage=coverage_file is not None, extras=extras
        )
        self.model = verilate(design, harness, progress=progress)
        self._memory_model = memory
        self._session = FastSession(
            self.model,
            memory_bytes,
            memory_base=MEMORY_BASE,
            memory_model=memory,
            waves=None if waves is None else Path(waves),
            coverage_file=None if coverage_file is None else Path(coverage_file),
            seed=seed,
            arguments=arguments,
        )
        self._next = MEMORY_BASE
        self._end = MEMORY_BASE + memory_bytes
        self._retired: list[tuple[int, int, int]] = []
        self._gemm_ends: list[int] = []
        self._hashes: list[int] = []
        self._queued: list[Op] = []

    def read_register(self, offset: int) -> int:
        """Value of a register."""
        return self._request([Op(OpKind.READ, offset, bound=10_000)])[-1]

    def read_registers(self, offsets: list[int]) -> list[int]:
        """Values of several registers in one exchange with the simulator."""
        return self._request([Op(OpKind.READ, offset, bound=10_000) for offset in offsets])

    def write_register(self, offset: int, value: int) -> None:
        """Write a register (kept back until the next read or wait: one exchange carries many)."""
        self._queued.append(Op(OpKind.WRITE, offset, value & 0xFFFFFFFF, bound=10_000))

    def allocate(self, nbytes: int, alignment: int = 4096) -> int:
        """Device address of ``nbytes`` fresh bytes.

        Raises:
            CosimError: device memory is full.
        """
        address = -(-self._next // alignment) * alignment
        if address + nbytes > self._end:
            raise CosimError(
                f"device memory: {nbytes} bytes do not fit, {self._end - address} of {self._end - MEMORY_BASE} "
                "are free; open the device with a larger memory_bytes"
            )
        self._next = address + nbytes
        return address

    def free_all(self) -> None:
        """Forget every allocation."""
        self._next = MEMORY_BASE

    def read(self, address: int, nbytes: int) -> npt.NDArray[np.uint8]:
        """A copy of device memory."""
        start = self._range(address, nbytes)
        return np.array(self._session.memory[start : start + nbytes])

    def write(self, address: int, data: npt.NDArray[np.uint8] | bytes) -> None:
        """Write device memory."""
        array = np.frombuffer(data, np.uint8) if isinstance(data, bytes) else data.reshape(-1).view(np.uint8)
        start = self._range(address, array.size)
        self._session.memory[start : start + array.size] = array

    def wait(self, *, cycles: int) -> bool:
        """Run until the accelerator stops (finished or error) or ``cycles`` have passed; False on the latter.

        Raises:
            SimulationFailed: the simulator ended or hangs.
        """
        running = STATUS.field("running").mask
        op = Op(OpKind.WAIT, OFFSETS["STATUS"], 0, running, cycles)
        return self._request([op], seconds=60.0 + cycles / SLOWEST_CYCLES_A_SECOND)[-1] == 1

    def retire_events(self) -> list[tuple[int, int, int]]:
        """Retired instructions since the last call: (cycle, unit, index)."""
        events, self._retired, self._hashes = self._retired, [], []
        return events

    def gemm_ends(self) -> list[int]:
        """Cycles of the last micro-op of each GEMM that has any, in order, since the last call."""
        ends, self._gemm_ends = self._gemm_ends, []
        return ends

    def trace_hashes(self) -> list[tuple[int, int, int, int]]:
        """Retired instructions since the last call: (cycle, unit, index, hash of the cells written).

        Raises:
            CosimError: the device was opened without ``trace``.
        """
        if "trace" not in self.capabilities:
            raise CosimError("no trace: open the device with trace=True")
        found = [(*event, hashed) for event, hashed in zip(self._retired, self._hashes, strict=True)]
        self._retired, self._hashes = [], []
        return found

    def set_memory(self, model: MemoryModel, faults: tuple[BusFault, ...] = ()) -> None:
        """Change memory timing and injected bus faults."""
        self._session.set_memory_model(model, faults)

    def delay(self, cycles: int) -> None:
        """Let so many cycles pass before the next operation."""
        self._queued.append(Op(OpKind.DELAY, bound=cycles))

    def hard_reset(self) -> None:
        """Pulse aresetn; memory keeps its content."""
        self._queued.append(Op(OpKind.RESET))

    def close(self) -> None:
        """End the simulator."""
        self._session.close()

    def _request(self, ops: list[Op], seconds: float = 120.0) -> list[int]:
        queued, self._queued = self._queued, []
        answer = self._session.request([*queued, *ops], seconds=seconds)
        self._retired.extend(answer.retired)
        self._gemm_ends.extend(answer.gemm_ends)
        self._hashes.extend(answer.hashes)
        return list(answer.results)

    def _range(self, address: int, nbytes: int) -> int:
        if not MEMORY_BASE <= address <= address + nbytes <= self._end:
            raise CosimError(
                f"device memory: {nbytes} bytes at {address:#x} are outside {MEMORY_BASE:#x}..{self._end:#x}"
            )
        return address - MEMORY_BASE


def open_transport(config: HardwareConfig, **options: object) -> CosimTransport:
    """Entry point of the device "cosim": see :class:`CosimTransport` for the options."""
    return CosimTransport(config, **options)  # type: ignore[arg-type]
