# SPDX-License-Identifier: Apache-2.0
"""A machine written for reading, one lane at a time with the specification's scalar arithmetic, in stream order.

It executes programs whose tokens put the units in stream order; tests compare fast backends with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from openvta.sim.memory import DeviceMemory
from openvta.spec import HardwareConfig, Insn, MemId, Opcode, RequantMode, decode
from openvta.spec.arith import RequantParams, alu, gemm, out_lane, requant, saturate, truncate, wrap
from openvta.spec.dtypes import DType
from openvta.spec.insn import isa_of
from openvta.spec.isa import AluOpcode


class IndexRange(Exception):
    """An index at or beyond a depth."""


class NaiveMachine:
    """Scratchpads as int64 arrays: uop ``[depth]``, wgt ``[depth, out, in]``, the others ``[depth, batch, block]``."""

    def __init__(self, config: HardwareConfig, memory: DeviceMemory, bases: Mapping[str, int]) -> None:
        self.config, self.memory, self.bases = config, memory, bases
        element = (config.batch, config.block)
        self.uop = np.zeros(config.uop_depth, np.int64)
        self.wgt = np.zeros((config.wgt_depth, config.block, config.block), np.int64)
        self.inp = np.zeros((config.inp_depth, *element), np.int64)
        self.acc = np.zeros((config.acc_depth, *element), np.int64)
        self.out = np.zeros((config.acc_depth, *element), np.int64)

    def run(self, words: list[int]) -> None:
        for word in words:
            insn = decode(self.config, word)
            if not insn.is_noop and insn.opcode is not Opcode.FINISH:
                getattr(self, f"_{insn.opcode.name.lower()}")(insn)

    def _load(self, insn: Insn) -> None:
        c = self.config
        memory = MemId(insn["memory_id"])
        lane, base, target = {
            MemId.UOP: (DType(32, signed=False), "uop", self.uop),
            MemId.WGT: (c.wgt_type, "wgt", self.wgt),
            MemId.INP: (c.inp_type, "inp", self.inp),
            MemId.ACC: (c.acc_type, "acc", self.acc),
            MemId.ACC_INT8: (DType(8), "acc", self.acc),
            MemId.ACC_UINT8: (DType(8, signed=False), "acc", self.acc),
        }[memory]
        shape = target.shape[1:]
        size = max(1, int(np.prod(shape))) * lane.bits // 8
        held = c.acc_type if target is self.acc else lane
        if insn["pad_min"]:
            fill = held.minimum
        elif memory is MemId.ACC_UINT8:
            fill = insn.pad_value
        else:
            fill = wrap(insn.pad_value, 8) if held.bits >= 8 else wrap(insn.pad_value, held.bits)
        at = insn["sram_base"]
        for y in range(-insn["y_pad_0"], insn["y_size"] + insn["y_pad_1"]):
            for x in range(-insn["x_pad_0"], insn["x_size"] + insn["x_pad_1"]):
                if at >= len(target):
                    raise IndexRange
                if 0 <= y < insn["y_size"] and 0 <= x < insn["x_size"]:
                    address = self.bases[base] + (insn["dram_base"] + y * insn["x_stride"] + x) * size
                    target[at] = lane.unpack(self.memory.read(address, size)).astype(np.int64).reshape(shape)
                else:
                    target[at] = fill
                at += 1

    def _store(self, insn: Insn) -> None:
        c = self.config
        for y in range(insn["y_size"]):
            for x in range(insn["x_size"]):
                element = insn["sram_base"] + y * insn["x_size"] + x
                if element >= len(self.out):
                    raise IndexRange
                address = self.bases["out"] + (insn["dram_base"] + y * insn["x_stride"] + x) * c.out_bytes
                self.memory.write(address, c.out_type.pack(self.out[element].reshape(-1)))

    def _nest(self, insn: Insn) -> Iterator[tuple[int, int, int]]:
        layout = isa_of(self.config).uop
        for o in range(insn["iter_out"]):
            for i in range(insn["iter_in"]):
                for u in range(insn["uop_begin"], insn["uop_end"]):
                    fields = layout.decode(int(self.uop[u]))
                    dst, src, wgt = (
                        fields[name] + o * insn[f"{name}_factor_out"] + i * insn[f"{name}_factor_in"]
                        for name in ("dst", "src", "wgt")
                    )
                    yield dst, src, wgt

    def _narrow(self, insn: Insn, value: int) -> int:
        bits = self.config.out_bits
        return saturate(value, bits) if insn["sat"] else truncate(value, bits)

    def _gemm(self, insn: Insn) -> None:
        c = self.config
        for dst, src, wgt in self._nest(insn):
            if dst >= c.acc_depth or (not insn["reset"] and (src >= c.inp_depth or wgt >= c.wgt_depth)):
                raise IndexRange
            if insn["reset"]:
                self.acc[dst] = 0
                continue
            for b in range(c.batch):
                for o in range(c.block):
                    value = gemm(int(self.acc[dst, b, o]), self.inp[src, b].tolist(), self.wgt[wgt, o].tolist())
                    self.acc[dst, b, o] = value
                    self.out[dst, b, o] = self._narrow(insn, value)

    def _alu(self, insn: Insn) -> None:
        op, use_imm = AluOpcode(insn["alu_opcode"]), bool(insn["use_imm"])
        for dst, src, _ in self._nest(insn):
            if dst >= self.config.acc_depth:
                raise IndexRange
            if op is AluOpcode.MOV and use_imm:
                src = dst
            if src >= self.config.acc_depth:
                raise IndexRange
            for b in range(self.config.batch):
                for o in range(self.config.block):
                    before = int(self.acc[dst, b, o]), int(self.acc[src, b, o])
                    value = alu(op, *before, insn["imm"], use_imm=use_imm)
                    self.acc[dst, b, o] = value
                    self.out[dst, b, o] = self._narrow(insn, value)

    def _requant(self, insn: Insn) -> None:
        c, unsigned = self.config, bool(insn["unsigned_out"])
        held, words = -1, np.zeros((3, c.batch, c.block), np.int64)
        for o in range(insn["iter_out"]):
            for i in range(insn["iter_in"]):
                d = insn["data_base"] + o * insn["data_factor_out"] + i * insn["data_factor_in"]
                p = insn["param_base"] + o * insn["param_factor_out"] + i * insn["param_factor_in"]
                if d >= c.acc_depth or p + 2 >= c.acc_depth:
                    raise IndexRange
                if p != held:
                    held, words = p, self.acc[p : p + 3].copy()
                for b in range(c.batch):
                    for lane in range(c.block):
                        params = RequantParams.from_words(*(int(word) for word in words[:, b, lane]), unsigned=unsigned)
                        value = requant(RequantMode(insn["mode"]), int(self.acc[d, b, lane]), params)
                        self.out[d, b, lane] = wrap(out_lane(value, c.out_bits), c.out_bits)
                        if insn["clear"]:
                            self.acc[d, b, lane] = 0
                        elif insn["write_acc"]:
                            self.acc[d, b, lane] = value
