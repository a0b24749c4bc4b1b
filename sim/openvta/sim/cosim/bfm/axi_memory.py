# SPDX-License-Identifier: Apache-2.0
"""An AXI4 memory with random latency and back-pressure on every channel, checking the master's rules.

Bursts must be full-width INCR, stay inside 4 KiB (and the given window), carry stable payloads and end with WLAST.
"""

from __future__ import annotations

import random
from collections import deque
from dataclasses import dataclass, field
from typing import Any

import cocotb
from cocotb.triggers import RisingEdge

from openvta.sim.cosim.bfm.stream import Payload, StreamSink, value

OKAY, SLVERR, DECERR = 0, 2, 3


@dataclass
class Timing:
    """Random behaviour: chances per cycle, and the longest latency in cycles."""

    stall: float = 0.3
    gap: float = 0.3
    latency: int = 20
    seed: int = 1


@dataclass
class _Burst:
    address: int
    beats: int
    id: int
    ready: int
    response: int = OKAY
    done: int = 0


@dataclass
class AxiMemory:
    """Serves the ``m_axi_*`` ports of ``dut`` from ``data`` (device addresses start at ``base``).

    ``faults`` holds (first address, bytes, response, is_write).
    """

    dut: Any
    clock: Any
    data: bytearray
    base: int
    beat_bytes: int
    window_bytes: int
    timing: Timing = field(default_factory=Timing)
    prefix: str = "m_axi"
    faults: list[tuple[int, int, int, bool]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._random = random.Random(self.timing.seed)
        self._reads: deque[_Burst] = deque()
        self._writes: deque[_Burst] = deque()
        self._beats: deque[Payload] = deque()
        self._responses: deque[_Burst] = deque()
        self._cycle = 0
        self.read_bursts: list[tuple[int, int, int]] = []
        self.write_bursts: list[tuple[int, int, int]] = []
        self._sinks: list[StreamSink] = []

    def start(self) -> None:
        """Start every channel."""
        t = self.timing
        address = ("id", "addr", "len", "size", "burst")
        for number, (channel, handler) in enumerate((("ar", self._take_ar), ("aw", self._take_aw))):
            sink = StreamSink(
                self.clock, self._pin(f"{channel}valid"), self._pin(f"{channel}ready"),
                {name: self._pin(f"{channel}{name}") for name in address},
                stall=t.stall, seed=t.seed + number, on_take=handler, name=f"{self.prefix}_{channel}",
            )  # fmt: skip
            self._sinks.append(sink)
            cocotb.start_soon(sink.run())
        payload = {name: self._pin(f"w{name}") for name in ("data", "strb", "last")}
        sink = StreamSink(
            self.clock, self._pin("wvalid"), self._pin("wready"), payload, stall=t.stall, seed=t.seed + 2,
            on_take=self._take_w, name=f"{self.prefix}_w",
        )  # fmt: skip
        self._sinks.append(sink)
        cocotb.start_soon(sink.run())
        cocotb.start_soon(self._drive_r())
        cocotb.start_soon(self._drive_b())

    def set_timing(self, timing: Timing) -> None:
        """Change stalls, gaps and latency from now on (the seed stays)."""
        self.timing = timing
        for sink in self._sinks:
            sink.stall = timing.stall

    def _pin(self, name: str) -> Any:
        return getattr(self.dut, f"{self.prefix}_{name}")

    def _burst(self, payload: Payload, kind: str) -> _Burst:
        beats = payload["len"] + 1
        address, size = payload["addr"], beats * self.beat_bytes
        if 1 << payload["size"] != self.beat_bytes or payload["burst"] != 1:
            raise AssertionError(f"{kind}: size {payload['size']} burst {payload['burst']}: must be full-width INCR")
        if address % self.beat_bytes:
            raise AssertionError(f"{kind}: address {address:#x} is not aligned to a beat")
        window = min(4096, self.window_bytes)
        if address // window != (address + size - 1) // window:
            raise AssertionError(f"{kind}: burst of {size} bytes at {address:#x} leaves its window of {window} bytes")
        ready = self._cycle + 1 + self._random.randrange(self.timing.latency + 1)
        return _Burst(address, beats, payload["id"], ready)

    def _response(self, address: int, write: bool) -> int:
        for first, size, response, is_write in self.faults:
            if is_write == write and first < address + self.beat_bytes and address < first + size:
                return response
        inside = self.base <= address and address + self.beat_bytes <= self.base + len(self.data)
        return OKAY if inside else DECERR

    def _take_ar(self, payload: Payload) -> None:
        burst = self._burst(payload, "AR")
        self.read_bursts.append((burst.id, burst.address, burst.beats))
        self._reads.append(burst)

    def _take_aw(self, payload: Payload) -> None:
        burst = self._burst(payload, "AW")
        self.write_bursts.append((burst.id, burst.address, burst.beats))
        self._writes.append(burst)
        self._match()

    def _take_w(self, payload: Payload) -> None:
        self._beats.append(payload)
        self._match()

    def _match(self) -> None:
        while self._beats and self._writes:
            burst, beat = self._writes[0], self._beats.popleft()
            address = burst.address + burst.done * self.beat_bytes
            response = self._response(address, True)
            if response == OKAY:
                for lane in range(self.beat_bytes):
                    if beat["strb"] >> lane & 1:
                        self.data[address - self.base + lane] = beat["data"] >> 8 * lane & 0xFF
            burst.response = burst.response or response
            burst.done += 1
            if bool(beat["last"]) != (burst.done == burst.beats):
                raise AssertionError(f"W: last = {beat['last']} on beat {burst.done} of {burst.beats}")
            if burst.done == burst.beats:
                self._writes.popleft()
                burst.ready = self._cycle + 1 + self._random.randrange(self.timing.latency + 1)
                self._responses.append(burst)

    def _oldest(self, bursts: deque[_Burst]) -> _Burst | None:
        """A burst that may answer now: the oldest of some id, any id where several wait (AXI allows it)."""
        heads: dict[int, _Burst] = {}
        for burst in bursts:
            heads.setdefault(burst.id, burst)
        able = [burst for burst in heads.values() if burst.ready <= self._cycle]
        return self._random.choice(able) if able else None

    async def _drive_r(self) -> None:
        valid, ready = self._pin("rvalid"), self._pin("rready")
        valid.value = 0
        current: _Burst | None = None
        driving = False
        while True:
            await RisingEdge(self.clock)
            self._cycle += 1
            if driving and value(ready) and current is not None:
                driving = False
                current.done += 1
                if current.done == current.beats:
                    self._reads.remove(current)
                    current = None
            if current is None:
                current = self._oldest(self._reads)
            if not driving and current is not None and self._random.random() >= self.timing.gap:
                address = current.address + current.done * self.beat_bytes
                response = self._response(address, False)
                at = address - self.base
                data = int.from_bytes(self.data[at : at + self.beat_bytes], "little") if response == OKAY else 0
                self._pin("rdata").value = data
                self._pin("rid").value = current.id
                self._pin("rresp").value = response
                self._pin("rlast").value = int(current.done + 1 == current.beats)
                driving = True
            valid.value = int(driving)

    async def _drive_b(self) -> None:
        valid, ready = self._pin("bvalid"), self._pin("bready")
        valid.value = 0
        current: _Burst | None = None
        while True:
            await RisingEdge(self.clock)
            if current is not None and value(ready):
                self._responses.remove(current)
                current = None
            if current is None and self._random.random() >= self.timing.gap:
                current = self._oldest(self._responses)
                if current is not None:
                    self._pin("bid").value = current.id
                    self._pin("bresp").value = current.response
            valid.value = int(current is not None)
