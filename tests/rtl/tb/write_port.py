# SPDX-License-Identifier: Apache-2.0
"""Cycle-by-cycle memory behind a write port: takes addresses and beats, checks the rules of the bus, gives responses.

``sample`` is called on a rising edge (values from before it), then ``drive``.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from openvta.sim.cosim.bfm.stream import value
from openvta.spec.config import HardwareConfig


@dataclass(frozen=True)
class WriteTiming:
    """Chances per cycle that an address or a beat is not taken or a response not given; latency in cycles."""

    stall_address: float = 0.0
    stall_data: float = 0.0
    gap: float = 0.0
    latency: int = 1


class WritePortMemory:
    """Behind ``prefix``_aw, _w and _b. ``written`` maps byte addresses to values; ``faults`` are beat addresses."""

    def __init__(self, dut: Any, prefix: str, config: HardwareConfig, seed: int) -> None:
        def pin(name: str) -> Any:
            return getattr(dut, f"{prefix}_{name}")

        self._aw = (pin("aw_valid"), pin("aw_ready"), [pin("aw_bits_addr"), pin("aw_bits_len"), pin("aw_bits_id")])
        self._w = (pin("w_valid"), pin("w_ready"), [pin("w_bits_data"), pin("w_bits_strb"), pin("w_bits_last")])
        self._b = (pin("b_valid"), pin("b_ready"), pin("b_bits_resp"), pin("b_bits_id"))
        self._bytes, self._window = config.axi_data_bytes, config.axi_burst_beats * config.axi_data_bytes
        self._limit = config.axi_outstanding
        self._random = random.Random(seed)
        self.timing = WriteTiming()
        self.take_beat: Callable[[int], bool] | None = None
        self.faults: set[int] = set()
        self.restart()

    def restart(self) -> None:
        """Forget everything."""
        self.written: dict[int, int] = {}
        self.bursts: list[tuple[int, int]] = []
        self.beats: list[tuple[int, int, int]] = []
        self._open: deque[list[int]] = deque()
        self._early: deque[tuple[int, int, int]] = deque()
        self._responses: deque[tuple[int, int]] = deque()
        self._ready = [False, False]
        self._seen: list[list[int] | None] = [None, None]
        self._responding = False
        self._stalled = 0
        for handle in (self._aw[1], self._w[1], self._b[0]):
            handle.value = 0

    @property
    def idle(self) -> bool:
        """Every burst has been answered."""
        return not (self._open or self._early or self._responses or self._responding)

    def _stable(self, number: int, channel: tuple[Any, Any, list[Any]], name: str) -> list[int] | None:
        """The payload taken in this cycle, if one was; checks that a payload that waits does not change."""
        waited = self._seen[number]
        if not value(channel[0]):
            assert waited is None, f"{name}: valid was taken back"
            return None
        payload = [value(handle) for handle in channel[2]]
        assert waited is None or waited == payload, f"{name}: payload changed while it waited: {waited} -> {payload}"
        self._seen[number] = None if self._ready[number] else payload
        return payload if self._ready[number] else None

    def sample(self, cycle: int) -> None:
        """Look at the edge of ``cycle``."""
        if self._responding and value(self._b[1]):
            self._responses.popleft()
            self._responding = False
        address = self._stable(0, self._aw, "AW")
        if address is not None:
            first, beats = address[0], address[1] + 1
            last = first + beats * self._bytes - 1
            assert first % self._bytes == 0, f"burst at {first:#x} is not aligned to a beat"
            assert first // self._window == last // self._window, f"burst {first:#x}..{last:#x} leaves its window"
            assert first // 4096 == last // 4096, f"burst {first:#x}..{last:#x} crosses 4 KiB"
            self.bursts.append((first, beats))
            self._open.append([first, beats, 0, 0])
            assert len(self._open) + len(self._responses) <= self._limit, "more bursts in flight than configured"
        waiting = value(self._w[0]) and not self._ready[1]
        self._stalled = self._stalled + 1 if waiting else 0
        beat = self._stable(1, self._w, "W")
        if beat is not None:
            self.beats.append((beat[0], beat[1], beat[2]))
            self._early.append((beat[0], beat[1], beat[2]))
        while self._early and self._open:
            data, strobe, is_last = self._early.popleft()
            burst = self._open[0]
            first = burst[0] + burst[2] * self._bytes
            burst[2] += 1
            burst[3] |= int(first in self.faults)
            for lane in range(self._bytes):
                if strobe >> lane & 1 and first not in self.faults:
                    self.written[(first + lane) % (1 << 64)] = data >> 8 * lane & 0xFF
            assert bool(is_last) == (burst[2] == burst[1]), f"WLAST is {is_last} on beat {burst[2]} of {burst[1]}"
            if burst[2] == burst[1]:
                self._open.popleft()
                self._responses.append((cycle + 1 + self._random.randrange(self.timing.latency), burst[3]))

    def drive(self, cycle: int) -> None:
        """Set inputs for the next edge."""
        self._ready[0] = self._random.random() >= self.timing.stall_address
        if self.take_beat is None:
            self._ready[1] = self._random.random() >= self.timing.stall_data
        else:
            self._ready[1] = self.take_beat(self._stalled)
        self._aw[1].value = int(self._ready[0])
        self._w[1].value = int(self._ready[1])
        if (
            not self._responding
            and self._responses
            and self._responses[0][0] <= cycle
            and self._random.random() >= self.timing.gap
        ):
            self._responding = True
            self._b[2].value = 2 + self._random.randrange(2) if self._responses[0][1] else 0
            self._b[3].value = 0
        self._b[0].value = int(self._responding)
