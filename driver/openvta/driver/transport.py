# SPDX-License-Identifier: Apache-2.0
"""The little that differs between devices: registers, memory, waiting."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from openvta.spec.config import HardwareConfig

Bytes = npt.NDArray[np.uint8]
Progress = Callable[[str], None]


@runtime_checkable
class Transport(Protocol):
    """One device. Addresses are device addresses in bytes, register offsets come from ``openvta.spec.registers``.

    Capabilities a transport may name:
        cycles: CYCLES and the counters of cycles mean clock cycles.
        counters: the counter registers are there.
        retire_events: :meth:`retire_events` reports every retired instruction.
        gemm_ends: ``gemm_ends()`` returns, for each GEMM that has micro-ops, in order, the cycle of its last one.
        zeroed: :meth:`allocate` returns zeroed memory, so the driver need not write zeros.
        images: several images run side by side, see :class:`LockstepTransport`.
        forks: all of the device is memory of this process, so that a forked copy is a device of its own.
        trace: ``trace_events()`` returns the trace of the last run.
        check: the run is checked for races, deadlocks and reads of memory that nobody wrote.
    """

    @property
    def capabilities(self) -> frozenset[str]:
        """What this device can do beyond running."""

    def read_register(self, offset: int) -> int:
        """Value of a register, 0 .. 2^32 - 1."""

    def write_register(self, offset: int, value: int) -> None:
        """Write a register."""

    def allocate(self, nbytes: int, alignment: int = 4096) -> int:
        """Device address of ``nbytes`` fresh bytes."""

    def free_all(self) -> None:
        """Forget every allocation."""

    def read(self, address: int, nbytes: int) -> Bytes:
        """A copy of device memory, uint8 ``[nbytes]``."""

    def write(self, address: int, data: Bytes | bytes) -> None:
        """Write device memory."""

    def wait(self, *, cycles: int) -> bool:
        """Run until the accelerator stops (finished or error) or ``cycles`` have passed; False on the latter."""

    def retire_events(self) -> Sequence[tuple[int, int, int]]:
        """Retired instructions since the last call: (cycle, unit, index)."""

    def close(self) -> None:
        """Let the device go."""


@runtime_checkable
class LockstepTransport(Transport, Protocol):
    """A device that runs one stream on several images at once (capability "images")."""

    def set_images(self, count: int) -> None:
        """Run ``count`` images side by side from now on; forgets allocations and memory."""

    def write_images(self, address: int, data: Bytes) -> None:
        """Write different bytes for every image: uint8 ``[images, nbytes]``."""

    def read_images(self, address: int, nbytes: int) -> Bytes:
        """The same bytes of every image: uint8 ``[images, nbytes]``."""


Opener = Callable[[HardwareConfig], Transport]
"""Makes the transport of a configuration."""


def read_registers(transport: Transport, offsets: Sequence[int]) -> list[int]:
    """Values of several registers, in one exchange where the transport can do that."""
    many = getattr(transport, "read_registers", None)
    if many is not None:
        return [int(value) for value in many(list(offsets))]
    return [transport.read_register(offset) for offset in offsets]
