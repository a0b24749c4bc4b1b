# SPDX-License-Identifier: Apache-2.0
"""Ready/valid channels driven and watched from Python, with random gaps on either side.

Signals are sampled on the rising edge (values before the edge) and driven just after it.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from cocotb.triggers import RisingEdge

Payload = dict[str, int]


def value(handle: Any) -> int:
    """A signal's value as an unsigned number."""
    return int(handle.value.to_unsigned()) if hasattr(handle.value, "to_unsigned") else int(handle.value)


class StreamSource:
    """Drives one ready/valid channel from a queue. ``gap`` is the chance of an idle cycle before a transfer."""

    def __init__(
        self, clock: Any, valid: Any, ready: Any, payload: Mapping[str, Any], *, gap: float = 0.0, seed: int = 1
    ) -> None:
        self._clock, self._valid, self._ready, self._payload = clock, valid, ready, dict(payload)
        self._random = random.Random(seed)
        self.gap = gap
        self.queue: deque[Payload] = deque()
        self.sent = 0
        self._valid.value = 0

    async def run(self) -> None:
        """Drive for ever; start with ``cocotb.start_soon``."""
        driving = False
        while True:
            await RisingEdge(self._clock)
            if driving and value(self._ready):
                self.queue.popleft()
                self.sent += 1
                driving = False
            if not driving and self.queue and self._random.random() >= self.gap:
                for name, item in self.queue[0].items():
                    self._payload[name].value = item
                driving = True
            self._valid.value = int(driving)


class StreamSink:
    """Takes from one ready/valid channel; checks that the payload is stable while it waits."""

    def __init__(
        self,
        clock: Any,
        valid: Any,
        ready: Any,
        payload: Mapping[str, Any],
        *,
        stall: float = 0.0,
        seed: int = 1,
        on_take: Callable[[Payload], None] | None = None,
        name: str = "stream",
    ) -> None:
        self._clock, self._valid, self._ready, self._payload = clock, valid, ready, dict(payload)
        self._random = random.Random(seed)
        self._on_take = on_take
        self._name = name
        self.stall = stall
        self.gate: Callable[[], bool] = lambda: True
        self.taken: list[Payload] = []
        self._ready.value = 0

    async def run(self) -> None:
        """Take for ever; start with ``cocotb.start_soon``."""
        ready = False
        waiting: Payload | None = None
        while True:
            await RisingEdge(self._clock)
            if value(self._valid):
                seen = {name: value(handle) for name, handle in self._payload.items()}
                if waiting is not None and waiting != seen:
                    raise AssertionError(f"{self._name}: payload changed while it waited: {waiting} -> {seen}")
                waiting = None if ready else seen
                if ready:
                    self.taken.append(seen)
                    if self._on_take is not None:
                        self._on_take(seen)
            elif waiting is not None:
                raise AssertionError(f"{self._name}: valid was taken back")
            ready = self.gate() and self._random.random() >= self.stall
            self._ready.value = int(ready)
