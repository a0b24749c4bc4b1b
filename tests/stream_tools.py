# SPDX-License-Identifier: Apache-2.0
"""Short streams for tests, and a machine with some memory to run them on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from openvta.sim.fsim import Machine, Memory
from openvta.sim.memory import DeviceMemory
from openvta.spec import HardwareConfig, Insn, MemId, Opcode, Program, make
from openvta.spec.insn import isa_of

AREA = 1 << 14
FINISH = make(Opcode.FINISH)


def stream(config: HardwareConfig, *insns: Insn) -> bytes:
    """The bytes of a program."""
    return Program.assemble(config, insns).to_bytes()


def load(memory: MemId, sram: int, count: int, dram: int = 0, **values: int) -> Insn:
    """LOAD of one row."""
    return make(
        Opcode.LOAD,
        **{
            "memory_id": int(memory),
            "sram_base": sram,
            "dram_base": dram,
            "x_size": count,
            "y_size": 1,
            "x_stride": count,
        }
        | values,
    )


def store(sram: int, count: int, dram: int = 0, **values: int) -> Insn:
    """STORE of one row."""
    return make(
        Opcode.STORE,
        **{"memory_id": int(MemId.OUT), "sram_base": sram, "dram_base": dram, "x_size": count, "y_size": 1}
        | {"x_stride": count}
        | values,
    )


def gemm(begin: int = 0, end: int = 1, **values: int) -> Insn:
    """GEMM of micro-ops ``begin`` to ``end``, once."""
    return make(Opcode.GEMM, **{"uop_begin": begin, "uop_end": end, "iter_out": 1, "iter_in": 1} | values)


def alu(op: int, begin: int = 0, end: int = 1, **values: int) -> Insn:
    """ALU operation of micro-ops ``begin`` to ``end``, once."""
    return make(
        Opcode.ALU, **{"alu_opcode": int(op), "uop_begin": begin, "uop_end": end, "iter_out": 1, "iter_in": 1} | values
    )


@dataclass
class Bench:
    """A machine with an area of random bytes for each memory type."""

    config: HardwareConfig
    machine: Machine
    memory: DeviceMemory
    bases: dict[str, int]

    def set_uops(self, *uops: tuple[int, int, int]) -> None:
        """Write micro-ops (dst, src, wgt) to the scratchpad, from 0 on."""
        layout = isa_of(self.config).uop
        words = [layout.encode({"dst": dst, "src": src, "wgt": wgt}) for dst, src, wgt in uops]
        self.machine.set_scratchpad(Memory.UOP, 0, np.array(words, np.int64))

    def fill(self) -> None:
        """Write every scratchpad, so that nothing counts as never written."""
        for memory in (Memory.INP, Memory.WGT, Memory.ACC, Memory.OUT):
            self.machine.set_scratchpad(memory, 0, np.zeros_like(self.machine.scratchpad(memory)))


def bench(config: HardwareConfig, seed: int = 1) -> Bench:
    """A fresh machine."""
    memory = DeviceMemory()
    memory.allocate(4096)
    rng = np.random.default_rng(seed)
    bases = {}
    for name in ("uop", "inp", "wgt", "acc", "out"):
        bases[name] = memory.allocate(AREA)
        memory.write(bases[name], rng.integers(0, 256, AREA, dtype=np.uint8))
    return Bench(config, Machine(config, memory), memory, bases)
