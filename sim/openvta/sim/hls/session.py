# SPDX-License-Identifier: Apache-2.0
"""Recorded sessions: what a host does with the core, and what it must find; the test bench of ``hardware/hls/tb`` plays them."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path

from openvta.sim.errors import SimError
from openvta.spec.registers import CONTROL, OFFSETS

MARK = b"OVTACASE"


class Kind(IntEnum):
    """Operations of a session."""

    PUT = 1
    WRITE = 2
    WAIT = 3
    EXPECT = 4
    EXPECT_REGISTER = 5


@dataclass
class Session:
    """A session in the making. Addresses are device addresses; the core may touch ``size`` bytes from ``base``.

    Attributes:
        base: first address of device memory.
        size: its bytes.
    """

    base: int
    size: int
    _operations: list[bytes] = field(default_factory=list)

    def put(self, address: int, data: bytes) -> None:
        """Write memory.

        Raises:
            SimError: outside the session's memory.
        """
        self._bytes(Kind.PUT, address, data)

    def expect(self, address: int, data: bytes) -> None:
        """Memory must hold these bytes.

        Raises:
            SimError: outside the session's memory.
        """
        self._bytes(Kind.EXPECT, address, data)

    def write(self, name: str, value: int) -> None:
        """Write a register by name."""
        self._add(Kind.WRITE, OFFSETS[name], value)

    def expect_register(self, name: str, value: int) -> None:
        """A register must hold this value."""
        self._add(Kind.EXPECT_REGISTER, OFFSETS[name], value)

    def launch(self, insn: int, count: int, bases: Mapping[str, int]) -> None:
        """Run ``count`` instructions at address ``insn`` with base addresses by name, to the end without an error."""
        for name, address in {"insn": insn, **bases}.items():
            self.write(f"{name.upper()}_BASE_LO", address & 0xFFFFFFFF)
            self.write(f"{name.upper()}_BASE_HI", address >> 32)
        self.write("INSN_COUNT", count)
        self.write("CONTROL", CONTROL.field("launch").mask)
        self._add(Kind.WAIT, 0, 0)
        self.expect_register("CONTROL", CONTROL.field("finish").mask)
        self.expect_register("ERROR", 0)

    def save(self, path: Path) -> None:
        """Write the file."""
        head = MARK + struct.pack("<QQQ", self.base, self.size, len(self._operations))
        path.write_bytes(head + b"".join(self._operations))

    def _add(self, kind: Kind, at: int, value: int, data: bytes = b"") -> None:
        self._operations.append(struct.pack("<IQQ", kind, at, value) + data)

    def _bytes(self, kind: Kind, address: int, data: bytes) -> None:
        if not (self.base <= address and address + len(data) <= self.base + self.size):
            raise SimError(f"session: {len(data)} bytes at {address:#x}: outside {self.base:#x} + {self.size:#x}")
        self._add(kind, address, len(data), data)
