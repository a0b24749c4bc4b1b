# SPDX-License-Identifier: Apache-2.0
"""A program on the RTL through its registers alone: place, launch, wait, read back."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from openvta.sim.cosim.transport import CosimTransport
from openvta.spec import Insn, Program
from openvta.spec.isa import INSN_BYTES
from openvta.spec.registers import CONTROL, COUNTERS, ERROR, OFFSETS, STATUS

AREA = 1 << 16
NAMES = ("uop", "inp", "wgt", "acc", "out")


@dataclass
class Placed:
    """A program and its areas in device memory."""

    address: int
    count: int
    bases: dict[str, int]


def place(rtl: CosimTransport, words: list[int], areas: dict[str, np.ndarray] | None = None) -> Placed:
    """Write a stream and areas (zero where not given) into fresh memory."""
    bases = {}
    for name in NAMES:
        bases[name] = rtl.allocate(AREA)
        rtl.write(bases[name], (areas or {}).get(name, np.zeros(AREA, np.uint8)))
    return add_program(rtl, words, Placed(0, 0, bases))


def add_program(rtl: CosimTransport, words: list[int], beside: Placed) -> Placed:
    """Write a stream that uses the areas of another."""
    data = b"".join(word.to_bytes(INSN_BYTES, "little") for word in words)
    address = rtl.allocate(max(INSN_BYTES, len(data)))
    if data:
        rtl.write(address, data)
    return Placed(address, len(words), beside.bases)


def point(rtl: CosimTransport, placed: Placed) -> None:
    """Set bases and count."""
    for name, address in {"insn": placed.address, **placed.bases}.items():
        rtl.write_register(OFFSETS[f"{name.upper()}_BASE_LO"], address & 0xFFFFFFFF)
        rtl.write_register(OFFSETS[f"{name.upper()}_BASE_HI"], address >> 32)
    rtl.write_register(OFFSETS["INSN_COUNT"], placed.count)


def launch(rtl: CosimTransport, placed: Placed) -> None:
    """Start a run."""
    point(rtl, placed)
    rtl.write_register(OFFSETS["CONTROL"], CONTROL.field("launch").mask)


def run(rtl: CosimTransport, placed: Placed, *, cycles: int = 400_000) -> dict[str, int]:
    """Start a run and wait for its end; returns the decoded error register (cause 0: none), with index and address."""
    launch(rtl, placed)
    assert rtl.wait(cycles=cycles), f"no end within {cycles} cycles"
    return error(rtl)


def error(rtl: CosimTransport) -> dict[str, int]:
    """The error registers."""
    names = ("ERROR", "ERROR_INDEX", "ERROR_ADDR_LO", "ERROR_ADDR_HI")
    word, index, low, high = (rtl.read_register(OFFSETS[name]) for name in names)
    return {**ERROR.decode(word), "index": index, "address": high << 32 | low}


def status(rtl: CosimTransport) -> dict[str, int]:
    """The status register."""
    return STATUS.decode(rtl.read_register(OFFSETS["STATUS"]))


def counters(rtl: CosimTransport) -> dict[str, int]:
    """Every counter by name, and the cycles."""
    found = {name: rtl.read_register(OFFSETS[f"COUNTER_{name.upper()}"]) for name, _ in COUNTERS}
    return {
        **found,
        "cycles": rtl.read_register(OFFSETS["CYCLES"]),
        "acc_writes": rtl.read_register(OFFSETS["ACC_WRITES"]),
    }


def soft_reset(rtl: CosimTransport, *, polls: int = 3000) -> int:
    """Ask for a soft reset and wait for its end; returns the number of reads of RESET that took."""
    rtl.write_register(OFFSETS["RESET"], 1)
    for number in range(polls):
        if not rtl.read_register(OFFSETS["RESET"]) & 1:
            return number
    raise AssertionError(f"the soft reset did not end within {polls} reads")


def assemble(rtl: CosimTransport, insns: list[Insn]) -> list[int]:
    """Words of instructions."""
    return list(Program.assemble(rtl.config, insns))
