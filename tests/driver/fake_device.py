# SPDX-License-Identifier: Apache-2.0
"""A device for tests of the driver: registers, memory, and a script for what a launch does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from openvta.spec.config import HardwareConfig
from openvta.spec.isa import ISA_VERSION, Cause, Unit
from openvta.spec.registers import COUNTERS, ERROR, ID_MAGIC, OFFSETS, STATUS
from openvta.spec.resolve import config_hash, feature_word

BASE = 0x4000_0000
MEMORY = 1 << 20
Action = Callable[["FakeTransport"], None]


def finish(device: FakeTransport) -> None:
    """End well, without doing anything."""
    device.registers[OFFSETS["CONTROL"]] = 2


@dataclass
class FakeTransport:
    """A transport whose launch runs ``action``."""

    config: HardwareConfig
    action: Action = finish
    capabilities: frozenset[str] = frozenset({"counters", "cycles", "retire_events"})
    registers: dict[int, int] = field(default_factory=dict)
    log: list[str] = field(default_factory=list)
    events: list[tuple[int, int, int]] = field(default_factory=list)
    closed: bool = False

    def __post_init__(self) -> None:
        value = config_hash(self.config)
        self.memory = np.full(MEMORY, 0xA5, np.uint8)
        self.next = BASE
        self.stops = True
        self.registers |= {
            OFFSETS["ID"]: ID_MAGIC,
            OFFSETS["ISA_VERSION"]: ISA_VERSION,
            OFFSETS["CONFIG_HASH_LO"]: value & 0xFFFFFFFF,
            OFFSETS["CONFIG_HASH_HI"]: value >> 32,
            OFFSETS["FEATURES"]: feature_word(self.config),
        }

    def read_register(self, offset: int) -> int:
        return self.registers.get(offset, 0)

    def write_register(self, offset: int, value: int) -> None:
        if offset == OFFSETS["CONTROL"] and value & 1:
            self.log.append("launch")
            self.registers[OFFSETS["CONTROL"]] = 0
            self.action(self)
        elif offset == OFFSETS["RESET"]:
            self.log.append("reset")
            for name in ("ERROR", "STATUS", "CONTROL"):
                self.registers[OFFSETS[name]] = 0
        else:
            self.registers[offset] = value

    def allocate(self, nbytes: int, alignment: int = 4096) -> int:
        address = -(-self.next // alignment) * alignment
        self.next = address + nbytes
        return address

    def free_all(self) -> None:
        self.log.append("free")
        self.next = BASE

    def read(self, address: int, nbytes: int) -> npt.NDArray[np.uint8]:
        return self.memory[address - BASE : address - BASE + nbytes].copy()

    def write(self, address: int, data: npt.NDArray[np.uint8] | bytes) -> None:
        flat = np.frombuffer(data, np.uint8) if isinstance(data, bytes) else data.reshape(-1).view(np.uint8)
        self.memory[address - BASE : address - BASE + flat.size] = flat

    def wait(self, *, cycles: int) -> bool:
        self.log.append(f"wait {cycles}")
        return self.stops

    def retire_events(self) -> list[tuple[int, int, int]]:
        events, self.events = self.events, []
        return events

    def close(self) -> None:
        self.closed = True

    # what actions use ----------------------------------------------------------------------------

    def pointer(self, name: str) -> int:
        """Value of a base address register."""
        return self.registers[OFFSETS[f"{name}_BASE_LO"]] | self.registers[OFFSETS[f"{name}_BASE_HI"]] << 32

    def fail(self, cause: Cause, unit: Unit, index: int, *, address: int = 0, **fields: int) -> None:
        """Hold an error."""
        self.registers[OFFSETS["ERROR"]] = ERROR.encode({"cause": int(cause), "unit": int(unit), **fields})
        self.registers[OFFSETS["ERROR_INDEX"]] = index
        self.registers[OFFSETS["ERROR_ADDR_LO"]] = address & 0xFFFFFFFF
        self.registers[OFFSETS["ERROR_ADDR_HI"]] = address >> 32
        self.registers[OFFSETS["STATUS"]] = STATUS.field("halted").mask

    def count(self, cycles: int, **counters: int) -> None:
        """Set counters."""
        self.registers[OFFSETS["CYCLES"]] = cycles & 0xFFFFFFFF
        self.registers[OFFSETS["CYCLES_HI"]] = cycles >> 32
        assert set(counters) <= {name for name, _ in COUNTERS}
        for name, value in counters.items():
            self.registers[OFFSETS[f"COUNTER_{name.upper()}"]] = value
