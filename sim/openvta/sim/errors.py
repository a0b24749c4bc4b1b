# SPDX-License-Identifier: Apache-2.0
"""Errors of the simulators."""

from __future__ import annotations


class SimError(RuntimeError):
    """Base of every error a simulator raises."""


class BusFault(SimError):
    """An access to device memory that no region answers.

    Attributes:
        address: first byte address that is not mapped.
        write: whether it was a write.
    """

    def __init__(self, address: int, nbytes: int, first: int, *, write: bool) -> None:
        kind = "write" if write else "read"
        super().__init__(
            f"device memory: {kind} of {nbytes} bytes at {address:#x}: no region holds byte {first:#x}; "
            "allocate or map it first"
        )
        self.address = first
        self.write = write


class MemoryLimitError(SimError):
    """A region that cannot be allocated: size, alignment, or overlap with another."""


class LockstepError(SimError):
    """Images run in lockstep differ where they must not (micro-ops or weights)."""


class StateError(SimError):
    """Scratchpad contents or token counts given by a caller that do not fit the machine."""
