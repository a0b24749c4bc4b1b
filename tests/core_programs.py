# SPDX-License-Identifier: Apache-2.0
"""Programs for whole-core tests: a first one that gives every scratchpad a value, and a bundle that holds both."""

from __future__ import annotations

import numpy as np

from openvta.driver import Device
from openvta.driver.result import LaunchResult
from openvta.spec import AluOpcode, HardwareConfig, Insn, MemId, Opcode, Program, make
from openvta.spec.bundle import Bundle, Segment
from random_programs import AREA, NAMES, RandomProgram

FILL, RANDOM = 0, 1
"""Segments of :func:`bundle_of`."""


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


def bundle_of(found: RandomProgram) -> Bundle:
    """A bundle with the areas of a random program, one after the other, and two segments: fill, then the program."""
    config = found.program.config
    bases = {name: number * AREA for number, name in enumerate(NAMES)}
    image = [(bases[name], found.areas[name].tobytes()) for name in NAMES]
    end = len(NAMES) * AREA
    segments = []
    for program in (fill_program(config), found.program):
        segments.append(Segment(program, end))
        end += -(-len(program.to_bytes()) // 4096) * 4096
    return Bundle(
        name="random",
        config=config,
        memory_bytes=end,
        image=tuple(image),
        bases=bases,
        tensors=(),
        segments=tuple(segments),
        steps=(),
        layers=(),
        inputs={},
        outputs={},
    )


def run_filled(device: Device, found: RandomProgram, *, max_cycles: int = 2_000_000) -> tuple[np.ndarray, LaunchResult]:
    """Fill the scratchpads, run the program, and return (every area afterwards, one after the other; the launch)."""
    bundle = bundle_of(found)
    placed = device.load(bundle)
    device.launch(bundle, FILL, max_cycles=max_cycles)
    result = device.launch(bundle, RANDOM, max_cycles=max_cycles)
    return device.transport.read(placed.base, len(NAMES) * AREA), result
