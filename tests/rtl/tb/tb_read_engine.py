# SPDX-License-Identifier: Apache-2.0
"""Tests of the ReadEngine inside the simulator: fair addresses, routing by id, limits, faults, flush."""

from __future__ import annotations

import os
import random
from collections import deque
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge
from load_model import memory_bytes
from unit_ports import Unit

from openvta.sim.cosim.bfm.stream import value
from openvta.spec.config import load_config

CLIENTS = 5
Burst = tuple[int, int]


class Client:
    """One read client: commands to give, beats it must see."""

    def __init__(self, dut: Any, number: int, rng: random.Random) -> None:
        def pin(name: str) -> Any:
            return getattr(dut, f"io_clients_{number}_{name}")

        self.valid, self.ready = pin("command_valid"), pin("command_ready")
        self.address, self.beats = pin("command_bits_address"), pin("command_bits_beats")
        self.data_valid, self.data_ready = pin("data_valid"), pin("data_ready")
        self.data = {name: pin(f"data_bits_{name}") for name in ("data", "last", "fault")}
        self.commands: deque[Burst] = deque()
        self.expected: deque[tuple[int, int, int]] = deque()
        self.offered = False
        self.takes = False
        self.random = rng
        self.taken = 0
        self.valid.value = self.data_ready.value = 0


class Bench:
    """Five clients and an AXI memory that answers different ids in any order, beats interleaved."""

    def __init__(self, dut: Any, *, stall: float, gap: float, latency: int, ready: float = 0.8) -> None:
        self.dut = dut = Unit(dut, "engine")
        self.config = load_config(os.environ["OPENVTA_CONFIG"])
        self.random = random.Random(cocotb.RANDOM_SEED)
        self.clients = [Client(dut, n, self.random) for n in range(CLIENTS)]
        self.stall, self.gap, self.latency, self.ready = stall, gap, latency, ready
        self.flights: list[deque[list[int]]] = [deque() for _ in range(CLIENTS)]
        self.faults: set[int] = set()
        self.cycle = 0
        self.order: list[int] = []
        self.most = [0] * CLIENTS
        self.beat: tuple[int, int, int, int] | None = None
        self.beats = 0
        self._address: tuple[int, int, int] | None = None
        self._accepts = False

    async def reset(self) -> None:
        """Start the clock and reset."""
        d = self.dut
        d.io_flush.value = d.io_axi_ar_ready.value = d.io_axi_r_valid.value = 0
        d.reset.value = 1
        Clock(d.clock, 2, "ns").start()
        for _ in range(3):
            await RisingEdge(d.clock)
        d.reset.value = 0

    def expect(self, number: int, burst: Burst) -> None:
        """Note the beats a client must see of a burst."""
        address, beats = burst
        for k in range(beats):
            at = address + k * self.config.axi_data_bytes
            data = int.from_bytes(memory_bytes(at, self.config.axi_data_bytes), "little")
            self.clients[number].expected.append((data, int(k == beats - 1), int(at in self.faults)))

    async def step(self) -> None:
        """One clock cycle."""
        await RisingEdge(self.dut.clock)
        self.cycle += 1
        self._sample_clients()
        self._sample_bus()
        self._drive_clients()
        self._drive_bus()

    async def flush(self) -> None:
        """Reset the clients and flush the engine for one cycle, instead of what was driven for the next edge."""
        for client in self.clients:
            client.commands.clear()
            client.expected.clear()
            client.offered = False
        self.dut.io_flush.value = 1
        self._drive_clients()
        await self.step()
        self.dut.io_flush.value = 0

    def _sample_clients(self) -> None:
        for number, client in enumerate(self.clients):
            if client.offered and value(client.ready):
                self.expect(number, client.commands.popleft())
                client.offered = False
            if client.takes and value(client.data_valid):
                seen = tuple(value(client.data[name]) for name in ("data", "last", "fault"))
                assert client.expected, f"client {number}: a beat nobody asked for"
                assert seen == client.expected.popleft(), f"client {number}: wrong beat"
                client.taken += 1

    def _sample_bus(self) -> None:
        d = self.dut
        valid = value(d.io_axi_ar_valid)
        seen = (
            (value(d.io_axi_ar_bits_id), value(d.io_axi_ar_bits_addr), value(d.io_axi_ar_bits_len)) if valid else None
        )
        if self._address is not None:
            assert seen == self._address, f"address changed while it waited: {self._address} -> {seen}"
        if seen is not None and self._accepts:
            number, address, length = seen
            self.order.append(number)
            self.flights[number].append([self.cycle + self.random.randint(1, self.latency), address, length + 1])
            self.most[number] = max(self.most[number], len(self.flights[number]))
            assert len(self.flights[number]) <= self.config.axi_outstanding, "too many bursts in flight"
        self._address = None if self._accepts else seen
        if self.beat is not None and value(d.io_axi_r_ready):
            self.beat = None
            self.beats += 1

    def _drive_clients(self) -> None:
        for client in self.clients:
            if not client.offered and client.commands:
                client.address.value, client.beats.value = client.commands[0]
                client.offered = True
            client.valid.value = int(client.offered)
            client.takes = self.random.random() < self.ready
            client.data_ready.value = int(client.takes)

    def _drive_bus(self) -> None:
        d = self.dut
        self._accepts = self.random.random() >= self.stall
        d.io_axi_ar_ready.value = int(self._accepts)
        if self.beat is None and self.random.random() >= self.gap:
            able = [n for n in range(CLIENTS) if self.flights[n] and self.flights[n][0][0] <= self.cycle]
            if able:
                number = self.random.choice(able)
                flight = self.flights[number][0]
                address, left = flight[1], flight[2]
                flight[1], flight[2] = address + self.config.axi_data_bytes, left - 1
                if left == 1:
                    self.flights[number].popleft()
                self.beat = (
                    number,
                    address,
                    int(left == 1),
                    self.random.choice((2, 3)) if address in self.faults else 0,
                )
                d.io_axi_r_bits_id.value = number
                d.io_axi_r_bits_data.value = int.from_bytes(memory_bytes(address, self.config.axi_data_bytes), "little")
                d.io_axi_r_bits_last.value = int(left == 1)
                d.io_axi_r_bits_resp.value = self.beat[3]
        d.io_axi_r_valid.value = int(self.beat is not None)

    def random_burst(self) -> Burst:
        """A burst inside one window."""
        beat, window = self.config.axi_data_bytes, self.config.axi_burst_beats
        first = self.random.randrange(window)
        beats = self.random.randint(1, window - first)
        return ((self.random.getrandbits(40) * window + first) * beat, beats)

    async def drain(self, bound: int = 200_000) -> None:
        """Run until every command is given and every beat has come."""
        start = self.cycle
        while any(client.commands or client.expected for client in self.clients):
            await self.step()
            assert self.cycle - start < bound, "no end"
        await self.step()
        await self.step()
        assert value(self.dut.io_idle)


async def bench(dut: Any, **timing: Any) -> Bench:
    """A bench after reset."""
    made = Bench(dut, **timing)
    await made.reset()
    return made


@cocotb.test()
async def routes_in_order(dut: Any) -> None:
    """Random traffic of all clients: every beat reaches its client, in order, with its fault."""
    b = await bench(dut, stall=0.3, gap=0.3, latency=60)
    for client in b.clients:
        for _ in range(40):
            burst = b.random_burst()
            client.commands.append(burst)
            if b.random.random() < 0.2:
                b.faults.add(burst[0] + b.random.randrange(burst[1]) * b.config.axi_data_bytes)
    await b.drain()


@cocotb.test()
async def fair_and_limited(dut: Any) -> None:
    """Clients that all ask take turns, and none has more than its bursts in flight."""
    b = await bench(dut, stall=0.0, gap=0.0, latency=1, ready=1.0)
    beat = b.config.axi_data_bytes
    for number, client in enumerate(b.clients):
        client.commands.extend((number * 4096 + k * beat, 1) for k in range(30))
    await b.drain()
    for k in range(0, 100, CLIENTS):
        assert sorted(b.order[k : k + CLIENTS]) == list(range(CLIENTS)), "addresses are not shared fairly"
    b = await bench_again(dut, b, latency=400)
    for client in b.clients:
        client.commands.extend((k * beat, 1) for k in range(3 * b.config.axi_outstanding))
    await b.drain()
    assert max(b.most) == b.config.axi_outstanding


async def bench_again(dut: Any, before: Bench, *, latency: int) -> Bench:
    """The same design with another memory."""
    made = Bench(dut, stall=0.0, gap=0.0, latency=latency, ready=1.0)
    made.cycle = before.cycle
    return made


@cocotb.test()
async def full_rate(dut: Any) -> None:
    """With an ideal memory and ready clients a beat comes every cycle."""
    b = await bench(dut, stall=0.0, gap=0.0, latency=1, ready=1.0)
    window = b.config.axi_burst_beats * b.config.axi_data_bytes
    for client in b.clients:
        client.commands.extend((k * window, b.config.axi_burst_beats) for k in range(8))
    await b.drain()
    total = 8 * CLIENTS * b.config.axi_burst_beats
    assert b.beats == total
    assert b.cycle <= total + 20, f"{total} beats took {b.cycle} cycles"


@cocotb.test()
async def flush_drops_the_old_epoch(dut: Any) -> None:
    """Beats asked for before a flush are dropped, those asked for after it arrive, and clients do not hang."""
    b = await bench(dut, stall=0.2, gap=0.2, latency=80)
    for _ in range(4):
        for client in b.clients:
            client.commands.extend(b.random_burst() for _ in range(6))
        for _ in range(b.random.randint(20, 90)):
            await b.step()
        await b.flush()
    for client in b.clients:
        client.commands.extend(b.random_burst() for _ in range(10))
    await b.drain()
