# SPDX-License-Identifier: Apache-2.0
"""The HLS kernel as a device: registers over its AXI4-Lite channels, memory in place."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from openvta.sim.cosim.cache import Progress
from openvta.sim.errors import SimError
from openvta.sim.hls.build import Flavour, build_library
from openvta.sim.hls.library import HlsError, Library
from openvta.sim.memory import DeviceMemory, Refusal
from openvta.spec.config import HardwareConfig
from openvta.spec.registers import OFFSETS, REGISTERS

MEMORY_BASE = 0x1000_0000
MODES = ("sequential", "threaded")
INTEGERS = ("native", "wide")
ALIGNMENT = 16
RESET_POLLS = 10_000
CYCLES_A_SECOND = 1_000.0
"""How slow a threaded kernel may be before :meth:`HlsTransport.wait` gives up."""


class HlsTransport:
    """Registers, memory and waits of the HLS kernel, compiled on first use and cached by content.

    ``CYCLES`` and the counters of cycles count steps of the control stage, not clock cycles ("cycles" is not among the
    capabilities); counters of bytes, micro-ops and vectors are exact.

    Args:
        config: hardware configuration.
        mode: "sequential": all stages step in turn; "threaded": a thread a stage, with streams of bounded depth.
        integers: "native": lanes as C++ integers, for speed; "wide": fixed-width integers, as synthesized.
        memory_bytes: size of device memory.
        depth_limit: threaded: streams hold at most so many (0: as declared; dependence queues always as declared).
        timeout: threaded: seconds without any movement after which a wait ends with the fill of every stream.
        compiler: C++ compiler.
        flags: further compiler flags.
        memory: device memory to use; the kernel's part of it is mapped here.
        progress: told about long steps.
    """

    capabilities = frozenset({"counters"})

    def __init__(
        self,
        config: HardwareConfig,
        *,
        mode: str = "sequential",
        integers: str = "native",
        memory_bytes: int = 1 << 26,
        depth_limit: int = 0,
        timeout: float = 10.0,
        compiler: str = "g++",
        flags: tuple[str, ...] = (),
        memory: DeviceMemory | None = None,
        progress: Progress | None = None,
    ) -> None:
        for name, value, choices in (("mode", mode, MODES), ("integers", integers, INTEGERS)):
            if value not in choices:
                raise SimError(f"device 'hls': {name} = '{value}': must be one of {', '.join(choices)}")
        if depth_limit < 0 or not 0 < timeout <= 3600:
            raise SimError(
                f"device 'hls': depth_limit = {depth_limit}, timeout = {timeout}: must be 0 or more, and 0 to 3600 seconds"
            )
        self.config = config
        self.memory = memory or DeviceMemory()
        if self.memory.images != 1:
            raise SimError(f"device 'hls': memory of {self.memory.images} images: the kernel runs one at a time")
        self.memory.map(MEMORY_BASE, memory_bytes)
        view = self.memory.rows(MEMORY_BASE, 1, memory_bytes, memory_bytes, write=True)
        if view is None or view.ctypes.data % ALIGNMENT:
            raise SimError(f"device 'hls': device memory must be one region aligned to {ALIGNMENT} bytes")
        self._view = view
        path = build_library(config, Flavour(integers == "native", compiler, tuple(flags)), progress=progress)
        self._library = Library(path)
        self._end = MEMORY_BASE + memory_bytes
        self._next = MEMORY_BASE
        self._refusals: tuple[Refusal, ...] = ()
        self._library.start(
            view.ctypes.data,
            MEMORY_BASE,
            memory_bytes,
            threaded=mode == "threaded",
            depth_limit=depth_limit,
            seconds=timeout,
        )

    def read_register(self, offset: int) -> int:
        """Value of a register.

        Raises:
            HlsError: the kernel does not answer.
        """
        return self._library.read(offset)

    def write_register(self, offset: int, value: int) -> None:
        """Write a register. A launch takes over what memory refuses.

        Raises:
            HlsError: the kernel does not answer.
        """
        if offset == OFFSETS["CONTROL"] and self.memory.refusals != self._refusals:
            self._refusals = self.memory.refusals
            self._library.refuse(self._refusals)
        self._library.write(offset, value & 0xFFFFFFFF)

    def allocate(self, nbytes: int, alignment: int = 4096) -> int:
        """Device address of ``nbytes`` fresh bytes.

        Raises:
            SimError: device memory is full.
        """
        address = -(-self._next // alignment) * alignment
        if address + nbytes > self._end:
            raise SimError(
                f"device memory: {nbytes} bytes do not fit, {self._end - address} of {self._end - MEMORY_BASE} "
                "are free; open the device with a larger memory_bytes"
            )
        self._next = address + nbytes
        return address

    def free_all(self) -> None:
        """Forget every allocation."""
        self._next = MEMORY_BASE

    def read(self, address: int, nbytes: int) -> npt.NDArray[np.uint8]:
        """A copy of device memory.

        Raises:
            BusFault: part of it is not mapped.
        """
        return self.memory.read(address, nbytes)

    def write(self, address: int, data: npt.NDArray[np.uint8] | bytes) -> None:
        """Write device memory.

        Raises:
            BusFault: part of it is not mapped.
        """
        self.memory.write(address, data)

    def wait(self, *, cycles: int) -> bool:
        """Run until the accelerator stops (finished or error) or ``cycles`` steps are done; False on the latter.

        Raises:
            HlsError: threaded, and nothing moved for the time-out; the message has the fill of every stream.
        """
        return self._library.wait(cycles, 60.0 + cycles / CYCLES_A_SECOND)

    def retire_events(self) -> list[tuple[int, int, int]]:
        """None: the kernel keeps no events."""
        return []

    def queue_fills(self) -> str:
        """Every stream of the kernel with its fill and depth."""
        return self._library.fills()

    @property
    def interrupt(self) -> bool:
        """Level of the interrupt line."""
        return self._library.interrupt()

    def hard_reset(self) -> None:
        """Soft reset, and every register at its reset value; memory and scratchpads stay."""
        self.write_register(OFFSETS["RESET"], 1)
        for _ in range(RESET_POLLS):
            if not self.read_register(OFFSETS["RESET"]) & 1:
                break
        else:
            raise HlsError("HLS kernel: a soft reset does not end; " + self.queue_fills())
        for register in REGISTERS:
            if register.access == "rw" and register.name not in ("CONTROL", "RESET"):
                self.write_register(register.offset, register.reset)

    def close(self) -> None:
        """Unload the kernel and give its memory back."""
        self._library.close()
        if (MEMORY_BASE, self._end - MEMORY_BASE) in self.memory.regions():
            self.memory.free(MEMORY_BASE)


def open_transport(config: HardwareConfig, **options: object) -> HlsTransport:
    """Entry point of the device "hls": see :class:`HlsTransport` for the options."""
    return HlsTransport(config, **options)  # type: ignore[arg-type]
