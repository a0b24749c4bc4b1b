# SPDX-License-Identifier: Apache-2.0
"""An AXI4-Lite master: register reads and writes with a bound on every wait."""

from __future__ import annotations

import random
from typing import Any

from cocotb.triggers import RisingEdge

from openvta.sim.cosim.bfm.stream import value


class AxiLiteMaster:
    """Drives the ``s_axil_*`` ports of ``dut``. ``gap`` is the chance of an idle cycle before each step."""

    def __init__(
        self, dut: Any, clock: Any, *, prefix: str = "s_axil", gap: float = 0.0, bound: int = 1000, seed: int = 1
    ):
        self._dut, self.clock, self._prefix, self._bound = dut, clock, prefix, bound
        self._gap, self._random = gap, random.Random(seed)
        for name in ("awvalid", "wvalid", "bready", "arvalid", "rready"):
            self._pin(name).value = 0

    def _pin(self, name: str) -> Any:
        return getattr(self._dut, f"{self._prefix}_{name}")

    async def _idle(self) -> None:
        while self._random.random() < self._gap:
            await RisingEdge(self.clock)

    async def _send(self, channel: str) -> None:
        self._pin(f"{channel}valid").value = 1
        for _ in range(self._bound):
            await RisingEdge(self.clock)
            if value(self._pin(f"{channel}ready")):
                self._pin(f"{channel}valid").value = 0
                return
        raise AssertionError(f"{self._prefix}_{channel}: not taken within {self._bound} cycles")

    async def _take(self, channel: str) -> None:
        self._pin(f"{channel}ready").value = 1
        for _ in range(self._bound):
            await RisingEdge(self.clock)
            if value(self._pin(f"{channel}valid")):
                self._pin(f"{channel}ready").value = 0
                return
        raise AssertionError(f"{self._prefix}_{channel}: no answer within {self._bound} cycles")

    async def write(self, offset: int, data: int) -> int:
        """Write a register; returns the response (0 OKAY)."""
        await self._idle()
        self._pin("awaddr").value = offset
        await self._send("aw")
        await self._idle()
        self._pin("wdata").value = data
        self._pin("wstrb").value = 0xF
        await self._send("w")
        await self._idle()
        await self._take("b")
        return value(self._pin("bresp"))

    async def read(self, offset: int) -> int:
        """Read a register."""
        await self._idle()
        self._pin("araddr").value = offset
        await self._send("ar")
        await self._idle()
        self._pin("rready").value = 1
        for _ in range(self._bound):
            await RisingEdge(self.clock)
            if value(self._pin("rvalid")):
                data = value(self._pin("rdata"))
                self._pin("rready").value = 0
                return data
        raise AssertionError(f"{self._prefix}_r: no answer within {self._bound} cycles")
