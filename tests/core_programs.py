# SPDX-License-Identifier: Apache-2.0
"""Programs for whole-core tests: a first one that gives every scratchpad a value, and placing areas on a device."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from random_programs import AREA, NAMES, RandomProgram

from openvta.driver import Device
from openvta.driver.device import LaunchResult
from openvta.spec import AluOpcode, HardwareConfig, Insn, MemId, Opcode, Program, make


def fill_program(config: HardwareConfig) -> Program:
    """Load every element of uop, inp, wgt and acc, and write every element of out: no backend may start from chance."""

    def load(memory: MemId, depth: int, element: int, **tokens: int) -> Insn:
        row = min(depth, AREA // element)
        return make(Opcode.LOAD, memory_id=int(memory), y_size=depth // row, x_size=row, x_stride=0, **tokens)

    c = config
    inner = min(16, c.acc_depth)
    insns = [
        load(MemId.INP, c.inp_depth, c.inp_bytes),
        load(MemId.WGT, c.wgt_depth, c.wgt_bytes, push_next=1),
        load(MemId.UOP, c.uop_depth, c.uop_bytes),
        load(MemId.ACC, c.acc_depth, c.acc_bytes),
        make(Opcode.LOAD, memory_id=int(MemId.UOP), y_size=1, x_size=1, x_stride=1, x_pad_0=1),
        make(
            Opcode.ALU, alu_opcode=int(AluOpcode.ADD), use_imm=1, uop_begin=0, uop_end=1, iter_out=c.acc_depth // inner,
            iter_in=inner, dst_factor_out=inner, dst_factor_in=1, src_factor_out=inner, src_factor_in=1,
        ),
        make(Opcode.FINISH, pop_prev=1),
    ]  # fmt: skip
    return Program.assemble(config, insns)


def place(device: Device, areas: Mapping[str, np.ndarray], programs: list[Program]) -> tuple[dict[str, int], list[int]]:
    """Write areas and programs into fresh device memory; returns (bases, program addresses)."""
    transport = device.transport
    bases = {}
    for name in NAMES:
        bases[name] = transport.allocate(AREA, 4096)
        transport.write(bases[name], areas[name])
    addresses = []
    for program in programs:
        data = program.to_bytes()
        addresses.append(transport.allocate(len(data), 4096))
        transport.write(addresses[-1], data)
    return bases, addresses


def run_filled(device: Device, found: RandomProgram, *, max_cycles: int = 2_000_000) -> tuple[np.ndarray, LaunchResult]:
    """Fill the scratchpads, run the program, and return (every area afterwards, one after the other; the launch)."""
    device.transport.free_all()
    programs = [fill_program(found.program.config), found.program]
    bases, addresses = place(device, found.areas, programs)
    device.launch(programs[0], addresses[0], bases, max_cycles=max_cycles)
    result = device.launch(programs[1], addresses[1], bases, max_cycles=max_cycles)
    return np.concatenate([device.transport.read(bases[name], AREA) for name in NAMES]), result
