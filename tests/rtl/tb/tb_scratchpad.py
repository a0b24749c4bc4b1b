# SPDX-License-Identifier: Apache-2.0
"""Tests of the Scratchpad inside the simulator: masks, rotation, latency, bypass, wide reads."""

from __future__ import annotations

import os
import random
from dataclasses import dataclass, field
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge

from openvta.sim.cosim.bfm.stream import value
from openvta.spec.config import HardwareConfig, load_config

CYCLES = 3000


@dataclass
class Pad:
    """One scratchpad of the bench, its pins and what it must hold."""

    name: str
    depth: int
    elem_bits: int
    beat_bits: int
    reads: tuple[str, ...]
    read_elems: int = 1
    write_first: bool = False
    cells: dict[int, int] = field(default_factory=dict)
    pending: dict[str, tuple[int | None, ...]] = field(default_factory=dict)

    @property
    def elems(self) -> int:
        """Elements a write touches."""
        return max(1, self.beat_bits // self.elem_bits)

    @property
    def parts(self) -> int:
        """Parts of an element with a mask of their own."""
        return max(1, self.elem_bits // self.beat_bits)


def pads(config: HardwareConfig) -> list[Pad]:
    """The scratchpads of the bench."""
    beat, out = config.axi_data_bits, config.out_bytes * 8
    return [
        Pad("Inp", config.inp_depth, config.inp_bytes * 8, beat, ("padInp_read_0", "padInp_read_1")),
        Pad("Acc", config.acc_depth, config.acc_bytes * 8, beat, ("padAcc_read_0",), write_first=True),
        # Out elements are always written whole.
        Pad("Out", config.acc_depth, out, max(beat, out), ("padOut_read_0",), read_elems=max(1, beat // out)),
    ]


def _pin(dut: Any, port: str, name: str) -> Any:
    return getattr(dut, f"{port}_{name}")


def random_write(pad: Pad, rng: random.Random, near: int) -> tuple[int, int, int, int]:
    """Index, element mask, part mask and data of a write in range, often near ``near``."""
    index = (
        min(pad.depth - 1, max(0, near + rng.randint(-pad.elems, 1)))
        if rng.random() < 0.7
        else rng.randrange(pad.depth)
    )
    room = min(pad.elems, pad.depth - index)
    mask = (1 << rng.randint(1, room)) - 1 if rng.random() < 0.8 else rng.getrandbits(room)
    return (
        index,
        mask,
        rng.choice(((1 << pad.parts) - 1, rng.getrandbits(pad.parts))),
        rng.getrandbits(pad.elems * pad.elem_bits),
    )


def written(pad: Pad, write: tuple[int, int, int, int]) -> dict[int, int]:
    """The cells a write changes, with their new values."""
    index, elem_mask, part_mask, data = write
    width = pad.elem_bits // pad.parts
    mask = sum(((1 << width) - 1) << (width * k) for k in range(pad.parts) if part_mask >> k & 1)
    result = {}
    for k in range(pad.elems):
        if elem_mask >> k & 1:
            new = data >> (k * pad.elem_bits) & ((1 << pad.elem_bits) - 1)
            result[index + k] = pad.cells[index + k] & ~mask | new & mask
    return result


async def fill(dut: Any, all_pads: list[Pad], rng: random.Random) -> None:
    """Write every cell once, an element a cycle."""
    for pad in all_pads:
        pad.cells = dict.fromkeys(range(pad.depth), 0)
    for index in range(max(pad.depth for pad in all_pads)):
        for pad in all_pads:
            inside = index < pad.depth
            _pin(dut, f"pad{pad.name}_write", "valid").value = int(inside)
            if inside:
                pad.cells[index] = rng.getrandbits(pad.elem_bits)
                drive_write(dut, pad, (index, 1, (1 << pad.parts) - 1, pad.cells[index]))
        await RisingEdge(dut.clock)
    for pad in all_pads:
        _pin(dut, f"pad{pad.name}_write", "valid").value = 0


def drive_write(dut: Any, pad: Pad, write: tuple[int, int, int, int]) -> None:
    """Set the write port's pins."""
    for name, item in zip(("index", "elemMask", "partMask", "data"), write, strict=True):
        _pin(dut, f"pad{pad.name}_write", f"bits_{name}").value = item


@cocotb.test()
async def random_traffic(dut: Any) -> None:
    """Reads and writes every cycle: a read sees every earlier write, and with bypass that of its own cycle."""
    config = load_config(os.environ["OPENVTA_CONFIG"])
    rng = random.Random(cocotb.RANDOM_SEED)
    all_pads = pads(config)
    for pad in all_pads:
        _pin(dut, f"pad{pad.name}_write", "valid").value = 0
        for read in pad.reads:
            _pin(dut, read, "enable").value = 0
    dut.reset.value = 1
    Clock(dut.clock, 2, "ns").start()
    for _ in range(3):
        await RisingEdge(dut.clock)
    dut.reset.value = 0
    await fill(dut, all_pads, rng)
    checked = 0
    for _ in range(CYCLES):
        for pad in all_pads:
            checked += cycle(dut, pad, rng)
        await RisingEdge(dut.clock)
    assert checked > CYCLES


def cycle(dut: Any, pad: Pad, rng: random.Random) -> int:
    """Check the data of last cycle's reads (pins show it now) and drive the next reads and write."""
    checked = check_reads(dut, pad)
    near = rng.randrange(pad.depth)
    writes = rng.random() < 0.7
    write = random_write(pad, rng, near)
    changed = written(pad, write) if writes else {}
    _pin(dut, f"pad{pad.name}_write", "valid").value = int(writes)
    drive_write(dut, pad, write)
    for read in pad.reads:
        enable = rng.random() < 0.8
        index = near if rng.random() < 0.7 else rng.randrange(pad.depth)
        _pin(dut, read, "enable").value = int(enable)
        _pin(dut, read, "index").value = index
        if enable:
            pad.pending[f"{read}'"] = tuple(expected_cell(pad, changed, index + k) for k in range(pad.read_elems))
    pad.cells.update(changed)
    return checked


def expected_cell(pad: Pad, changed: dict[int, int], index: int) -> int | None:
    """What a read of this cycle gives for one element; None where that is not defined."""
    if index >= pad.depth or (index in changed and not pad.write_first):
        return None
    return changed.get(index, pad.cells[index])


def check_reads(dut: Any, pad: Pad) -> int:
    """Compare the data of reads that were driven two calls ago: taken at the last edge but one, shown since."""
    checked = 0
    for read in pad.reads:
        for k, want in enumerate(pad.pending.pop(read, ())):
            if want is not None:
                got = value(_pin(dut, read, "data")) >> (k * pad.elem_bits) & ((1 << pad.elem_bits) - 1)
                assert got == want, f"{pad.name}, element {k} of a read: {got:#x}, expected {want:#x}"
                checked += 1
        if f"{read}'" in pad.pending:
            pad.pending[read] = pad.pending.pop(f"{read}'")
    return checked
