# SPDX-License-Identifier: Apache-2.0
"""Cycle-by-cycle agents for the ports of the load path: a read port's memory and a scratchpad's write port.

``sample`` is called on a rising edge (values from before it), then ``drive``.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from load_model import memory_bytes

from openvta.sim.cosim.bfm.stream import value
from openvta.spec.config import HardwareConfig


@dataclass(frozen=True)
class PortTiming:
    """Chances per cycle that a command is not taken or a beat not given; latency in cycles."""

    stall: float = 0.0
    gap: float = 0.0
    latency_min: int = 1
    latency_max: int = 1


IDEAL = PortTiming(latency_min=4, latency_max=4)
SLOW = PortTiming(stall=0.5, gap=0.5, latency_min=1, latency_max=40)
JITTER = PortTiming(stall=0.2, gap=0.1, latency_min=2, latency_max=12)


class ReadPortMemory:
    """Answers one read port and checks its bursts. ``faults`` are beat addresses that answer with a fault."""

    def __init__(
        self,
        dut: Any,
        prefix: str,
        config: HardwareConfig,
        seed: int,
        source: Callable[[int, int], bytes] = memory_bytes,
    ) -> None:
        def pin(name: str) -> Any:
            return getattr(dut, f"{prefix}_{name}")

        self._source = source
        self._command = (pin("command_valid"), pin("command_bits_address"), pin("command_bits_beats"))
        self._ready = pin("command_ready")
        self._data = (pin("data_valid"), pin("data_bits_data"), pin("data_bits_last"), pin("data_bits_fault"))
        self._taken = pin("data_ready")
        self._bytes, self._window = config.axi_data_bytes, config.axi_burst_beats * config.axi_data_bytes
        self._random = random.Random(seed)
        self._bursts: deque[tuple[int, int, int]] = deque()
        self._beat: tuple[int, bool] | None = None
        self._accepts = False
        self.timing = IDEAL
        self.faults: set[int] = set()
        self.bursts: list[tuple[int, int]] = []
        self.beats = 0
        self.first_beat = self.last_beat = 0
        for handle in (self._ready, *self._data):
            handle.value = 0

    @property
    def outstanding(self) -> int:
        """Beats asked for and not taken."""
        return sum(beats for _, _, beats in self._bursts) + (self._beat is not None)

    def sample(self, cycle: int) -> None:
        """Look at the edge of ``cycle``."""
        if self._beat is not None and value(self._taken):
            self.first_beat = self.first_beat if self.beats else cycle
            self.last_beat = cycle
            self.beats += 1
            self._beat = None
        if self._accepts and value(self._command[0]):
            address, beats = value(self._command[1]), value(self._command[2])
            assert address % self._bytes == 0, f"burst at {address:#x} is not aligned to a beat"
            assert 1 <= beats <= self._window // self._bytes, f"burst of {beats} beats"
            last = address + beats * self._bytes - 1
            assert address // self._window == last // self._window, f"burst {address:#x}..{last:#x} leaves its window"
            assert address // 4096 == last // 4096, f"burst {address:#x}..{last:#x} crosses 4 KiB"
            latency = self._random.randint(self.timing.latency_min, self.timing.latency_max)
            self._bursts.append((cycle + latency, address, beats))
            self.bursts.append((address, beats))

    def drive(self, cycle: int) -> None:
        """Set inputs for the next edge."""
        self._accepts = self._random.random() >= self.timing.stall
        self._ready.value = int(self._accepts)
        if (
            self._beat is None
            and self._bursts
            and self._bursts[0][0] <= cycle
            and self._random.random() >= self.timing.gap
        ):
            ready, address, beats = self._bursts.popleft()
            if beats > 1:
                self._bursts.appendleft((ready, address + self._bytes, beats - 1))
            self._beat = (address, beats == 1)
            fault = address in self.faults
            data = 0 if fault else int.from_bytes(self._source(address, self._bytes), "little")
            self._data[1].value = data
            self._data[2].value = int(beats == 1)
            self._data[3].value = int(fault)
        self._data[0].value = int(self._beat is not None)


class ScratchpadModel:
    """Collects the writes of one write port into ``cells`` (index -> raw bits); parts never written read as zero.

    Where the port has a ready pin, a write is made when it is taken, and does not change until then.
    """

    def __init__(self, dut: Any, prefix: str, elem_bits: int, depth: int, config: HardwareConfig) -> None:
        def pin(name: str) -> Any:
            return getattr(dut, f"{prefix}_{name}")

        self._pins = (pin("valid"), pin("bits_index"), pin("bits_elemMask"), pin("bits_partMask"), pin("bits_data"))
        self.ready = getattr(dut, f"{prefix}_ready", None)
        self._offered: list[int] | None = None
        self._elem_bits, self._depth = elem_bits, depth
        beat = config.axi_data_bits
        self._elems, self._parts = max(1, beat // elem_bits), max(1, elem_bits // beat)
        self.cells: dict[int, int] = {}

    def sample(self) -> None:
        """Look at an edge."""
        if not value(self._pins[0]):
            assert self._offered is None, "a write was taken back"
            return
        offer = [value(handle) for handle in self._pins[1:]]
        assert self._offered in (None, offer), "a write changed before it was taken"
        self._offered = None
        if self.ready is not None and not value(self.ready):
            self._offered = offer
            return
        index, elem_mask, part_mask, data = offer
        width = self._elem_bits // self._parts
        mask = sum(((1 << width) - 1) << (width * k) for k in range(self._parts) if part_mask >> k & 1)
        for k in range(self._elems):
            if elem_mask >> k & 1:
                assert index + k < self._depth, f"write of element {index + k} beyond the depth {self._depth}"
                element = data >> (k * self._elem_bits) & ((1 << self._elem_bits) - 1)
                self.cells[index + k] = self.cells.get(index + k, 0) & ~mask | element & mask
