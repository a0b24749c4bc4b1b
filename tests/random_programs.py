# SPDX-License-Identifier: Apache-2.0
"""Random legal programs of any configuration, with tokens that put the units in stream order."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

import numpy as np

from openvta.spec import AluOpcode, HardwareConfig, Insn, MemId, Opcode, Program, RequantMode, Unit, make
from openvta.spec.insn import isa_of
from openvta.spec.isa import unit_of

AREA = 1 << 16
"""Bytes of each memory type's area."""
NAMES = ("uop", "inp", "wgt", "acc", "out")


@dataclass
class RandomProgram:
    """A program, the area contents by name, and the names whose areas it may write."""

    program: Program
    areas: dict[str, np.ndarray]


@dataclass
class _Draft:
    opcode: Opcode
    values: dict[str, int] = field(default_factory=dict)

    @property
    def unit(self) -> Unit:
        return unit_of(self.opcode, self.values.get("memory_id", 0))


class Generator:
    """Draws programs; every random decision comes from ``rng``.

    Sizes stay small so that a lane-by-lane machine can follow: at most ``ops`` operations an instruction.
    """

    def __init__(self, config: HardwareConfig, rng: np.random.Generator, *, ops: int = 24) -> None:
        self.config = config
        self.rng = rng
        self.ops = ops
        self.drafts: list[_Draft] = []
        self.uops: list[int] = []
        self.window = min(config.acc_depth, 24)
        """Accumulators in use: few, so that instructions meet each other's results."""

    def program(self, length: int) -> RandomProgram:
        """A program of about ``length`` instructions, FINISH included."""
        kinds = [
            self._load_inp,
            self._load_wgt,
            self._load_acc,
            self._gemm,
            self._alu,
            self._alu,
            self._store,
            self._noop,
        ]
        if self.config.has("requant"):
            kinds.append(self._requant)
        for first in (self._load_inp, self._load_wgt, self._load_acc):
            first()
        while len(self.drafts) < length - 2:
            kinds[int(self.rng.integers(len(kinds)))]()
        self._store()
        self.drafts.append(_Draft(Opcode.FINISH))
        insns = self._chained()
        areas = {name: self.rng.integers(0, 256, AREA, dtype=np.uint8) for name in NAMES}
        words = np.array(self.uops, "<u4").view(np.uint8)
        areas["uop"][: len(words)] = words
        return RandomProgram(Program.assemble(self.config, insns), areas)

    def _chained(self) -> list[Insn]:
        """Pass a token wherever the unit changes; load and store meet through a compute no-op."""
        steps: list[_Draft] = []
        for draft in self.drafts:
            if steps and {steps[-1].unit, draft.unit} == {Unit.LOAD, Unit.STORE}:
                steps.append(_Draft(Opcode.LOAD, {"memory_id": int(MemId.UOP)}))
            steps.append(draft)
        for before, after in itertools.pairwise(steps):
            if before.unit < after.unit:
                before.values["push_next"], after.values["pop_prev"] = 1, 1
            elif before.unit > after.unit:
                before.values["push_prev"], after.values["pop_next"] = 1, 1
        return [make(step.opcode, **step.values) for step in steps]

    def _int(self, low: int, high: int) -> int:
        """low .. high inclusive."""
        return int(self.rng.integers(low, high + 1))

    def _maybe(self, chance: float = 0.5) -> int:
        return int(self.rng.random() < chance)

    def _transfer(self, opcode: Opcode, memory: MemId, depth: int, element: int, *, pads: bool) -> None:
        pad = {name: self._int(0, 2) for name in ("y_pad_0", "y_pad_1", "x_pad_0", "x_pad_1")} if pads else {}
        y, x = self._int(1, 3), self._int(1, 5)
        while (y + pad.get("y_pad_0", 0) + pad.get("y_pad_1", 0)) * (
            x + pad.get("x_pad_0", 0) + pad.get("x_pad_1", 0)
        ) > depth:
            pad, y, x = dict.fromkeys(pad, 0), 1, max(1, x // 2)
        total = (y + pad.get("y_pad_0", 0) + pad.get("y_pad_1", 0)) * (
            x + pad.get("x_pad_0", 0) + pad.get("x_pad_1", 0)
        )
        stride = self._int(0 if opcode is Opcode.LOAD else x, x + 3)
        values = {
            "memory_id": int(memory),
            "sram_base": self._int(0, depth - total),
            "dram_base": self._int(0, AREA // element - 3 * stride - x),
            "y_size": y,
            "x_size": x,
            "x_stride": stride,
            **pad,
        }
        if pads and opcode is Opcode.LOAD and memory is not MemId.UOP and self.config.has("padv"):
            kind = self._int(0, 2)
            if kind == 1:
                values["pad_min"] = 1
            elif kind == 2:
                raw = self._int(0, 255)
                values["pad_value_high"], values["pad_value_low"] = raw >> 6, raw & 63
        self.drafts.append(_Draft(opcode, values))

    def _load_inp(self) -> None:
        c = self.config
        self._transfer(Opcode.LOAD, MemId.INP, c.inp_depth, c.inp_bytes, pads=bool(self._maybe()))

    def _load_wgt(self) -> None:
        c = self.config
        self._transfer(Opcode.LOAD, MemId.WGT, c.wgt_depth, c.wgt_bytes, pads=bool(self._maybe(0.3)))

    def _load_acc(self) -> None:
        c = self.config
        choices = [(MemId.ACC, c.acc_bytes)]
        if c.has("acc8"):
            choices += [(MemId.ACC_INT8, c.acc8_bytes), (MemId.ACC_UINT8, c.acc8_bytes)]
        memory, size = choices[self._int(0, len(choices) - 1)]
        self._transfer(Opcode.LOAD, memory, self.window, size, pads=bool(self._maybe()))

    def _store(self) -> None:
        self._transfer(Opcode.STORE, MemId.OUT, self.window, self.config.out_bytes, pads=False)

    def _noop(self) -> None:
        memory = (MemId.INP, MemId.UOP)[self._int(0, 1)]
        opcode = (Opcode.LOAD, Opcode.STORE, Opcode.GEMM)[self._int(0, 2)]
        values: dict[str, int] = {} if opcode is Opcode.GEMM else {"memory_id": int(memory), "y_pad_0": self._int(0, 3)}
        if opcode is Opcode.STORE:
            values = {}
        self.drafts.append(_Draft(opcode, values))

    def _loops(self, depths: dict[str, int]) -> dict[str, int]:
        """A LOAD of new micro-ops; loop counts, factors and the micro-op range that stay inside ``depths``."""
        layout = isa_of(self.config).uop
        outer, inner, count = self._int(1, 3), self._int(1, 3), self._int(1, 4)
        while outer * inner * count > self.ops:
            outer, inner = max(1, outer - 1), max(1, inner - 1)
        values = {"iter_out": outer, "iter_in": inner}
        highest: dict[str, int] = {}
        for name, depth in depths.items():
            room = depth - 1
            factors = []
            for loops in (outer, inner):
                factor = self._int(0, min(6, room // max(1, loops - 1))) if loops > 1 else self._int(0, 6)
                room -= (loops - 1) * factor
                factors.append(min(factor, depth - 1))
            values[f"{name}_factor_out"], values[f"{name}_factor_in"] = factors
            highest[name] = room
        first = len(self.uops)
        few = bool(self._maybe(0.3))
        for _ in range(count):
            fields = {name: self._int(0, min(high, 2) if few else high) for name, high in highest.items()}
            self.uops.append(layout.encode({name: min(v, layout.field(name).maximum) for name, v in fields.items()}))
        place = self._int(0, self.config.uop_depth - count)
        load = {"memory_id": int(MemId.UOP), "sram_base": place, "dram_base": first, "y_size": 1, "x_size": count}
        self.drafts.append(_Draft(Opcode.LOAD, {**load, "x_stride": self._int(0, 9)}))
        return {**values, "uop_begin": place, "uop_end": place + count}

    def _sat(self) -> dict[str, int]:
        return {"sat": self._maybe()} if self.config.has("sat") else {}

    def _gemm(self) -> None:
        c = self.config
        loops = self._loops({"dst": self.window, "src": c.inp_depth, "wgt": c.wgt_depth})
        self.drafts.append(_Draft(Opcode.GEMM, {**loops, **self._sat(), "reset": self._maybe(0.2)}))

    def _alu(self) -> None:
        op = AluOpcode(self._int(0, 7 if self.config.has("alu_plus") else 4))
        values = {**self._loops({"dst": self.window, "src": self.window}), **self._sat(), "alu_opcode": int(op)}
        if self._maybe():
            values["use_imm"] = 1
            values["imm"] = self._int(-32768, 32767) if self._maybe() else self._int(-40, 40)
            if op is AluOpcode.RSHR:
                values["imm"] = self._int(0, 31) - 0x8000 * self._maybe()
        elif op is AluOpcode.RSHR:
            values["imm"] = -0x8000 * self._maybe()
        elif op < AluOpcode.MAC:
            values["imm"] = self._int(-32768, 32767)
        self.drafts.append(_Draft(Opcode.ALU, values))

    def _requant(self) -> None:
        outer, inner = self._int(1, 3), self._int(1, 4)
        values = {"iter_out": outer, "iter_in": inner, "mode": self._int(0, len(RequantMode) - 1)}
        for name, tail in (("data", 0), ("param", 2)):
            room = self.window - 1 - tail
            for loop, loops in (("out", outer), ("in", inner)):
                factor = self._int(0, min(4, room // max(1, loops - 1))) if loops > 1 else self._int(0, 4)
                room -= (loops - 1) * factor
                values[f"{name}_factor_{loop}"] = factor
            values[f"{name}_base"] = self._int(0, room)
        kind = self._int(0, 2)
        if kind:
            values["clear" if kind == 1 else "write_acc"] = 1
        values["unsigned_out"] = self._maybe()
        self.drafts.append(_Draft(Opcode.REQUANT, values))
