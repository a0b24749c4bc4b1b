# SPDX-License-Identifier: Apache-2.0
"""Random GEMM, ALU and REQUANT instructions with their micro-ops, and the distances at which they reuse results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from openvta.sim.verify.plan import Cells, Draft
from openvta.sim.verify.transfers import PADS, Transfers
from openvta.spec import AluOpcode, HardwareConfig, MemId, Opcode, RequantMode
from openvta.spec.bins import DISTANCES
from openvta.spec.insn import isa_of

PARAMETER_SETS, SMALL_DATA = 24, 12
"""The area of acc begins with so many sets of parameters that make sense, then so many elements of small values."""


@dataclass(frozen=True)
class Uops:
    """Micro-ops of a group: encoded words, and the fields as arrays."""

    words: list[int]
    fields: dict[str, Cells]


class Operations(Transfers):
    """Drafts of everything the compute unit calculates; ``ops``: most micro-op steps of an instruction."""

    def __init__(self, config: HardwareConfig, rng: np.random.Generator, ops: int) -> None:
        super().__init__(config, rng)
        self.ops = ops
        self._words: list[int] = []

    def _loops(self, dst: int, src: int, wgt: int) -> tuple[dict[str, int], Uops]:
        """Loop fields and new micro-ops that keep dst, src and wgt below these depths."""
        outer, inner, count = (self._int(1, 3), self._int(1, 3), self._int(1, 4))
        if self._maybe(0.4):
            outer, inner, count = 1, 1, self._int(2, 10)
        while outer * inner * count > self.ops and count > 1:
            outer, inner, count = max(1, outer - 1), max(1, inner - 1), max(1, count - 1)
        values = {"iter_out": outer, "iter_in": inner}
        rooms = {}
        for name, depth in (("dst", dst), ("src", src), ("wgt", wgt)):
            room = depth - 1
            for loop, loops in (("out", outer), ("in", inner)):
                most = min(4, room // max(1, loops - 1), depth - 1)
                factor = self._int(0, most)
                room -= (loops - 1) * factor
                values[f"{name}_factor_{loop}"] = factor
            rooms[name] = room
        few = min(rooms["dst"], self._int(0, 3)) if self._maybe(0.4) else rooms["dst"]
        layout = isa_of(self.config).uop
        draws = {name: self.rng.integers(0, room + 1, count) for name, room in rooms.items()}
        draws["dst"] = self.rng.integers(0, few + 1, count) + (rooms["dst"] - few if self._maybe(0.2) else 0)
        distance = self._int(0, len(DISTANCES) + 2)
        if distance < len(DISTANCES) and count > distance + 1 and self._maybe(0.7):
            behind = distance + 1
            if self._maybe():
                draws["src"][behind:] = np.minimum(draws["dst"][:-behind], rooms["src"])
            else:
                for k in range(behind, count):
                    draws["dst"][k] = draws["dst"][k - behind]
        words = [layout.encode({name: int(draws[name][k]) for name in ("dst", "src", "wgt")}) for k in range(count)]
        return values, Uops(words, draws)

    def _place(self, uops: Uops) -> tuple[Draft, int]:
        """The LOAD that brings micro-ops, and where they are."""
        count = len(uops.words)
        first = len(self._words)
        self._words += uops.words
        place = self.config.uop_depth - count if self._maybe(0.1) else self._int(0, self.config.uop_depth - count)
        values = {
            "memory_id": int(MemId.UOP), "sram_base": place, "dram_base": first, "y_size": 1, "x_size": count,
            "x_stride": self._int(0, 9),
        }  # fmt: skip
        bins = ["load.uop.none.zero"]
        pads = self._pads() if self._maybe(0.3) else {}
        before = pads.get("y_pad_0", 0) * (count + pads.get("x_pad_0", 0) + pads.get("x_pad_1", 0))
        before += pads.get("x_pad_0", 0)
        total = self._size(1, count, pads)
        if pads and place >= before and place - before + total <= self.config.uop_depth:
            values.update({name: value for name, value in pads.items() if value}, sram_base=place - before)
            padded = [name for name in PADS if pads.get(name)]
            where = "none" if not padded else padded[0].replace("_pad_", "") if len(padded) == 1 else "many"
            bins = [f"load.uop.{where}.zero"]
        if values["sram_base"] + (total if len(values) > 6 else count) == self.config.uop_depth:
            bins.append("end.uop")
        return Draft(Opcode.LOAD, values, bins=self._after("uop", bins)), place

    def _uses(self) -> list[Draft]:
        """Micro-ops and one to three instructions that use them, back to back."""
        c = self.config
        if self._maybe(0.1) and c.uop_depth >= 16:
            load = self._load(MemId.UOP, c.uop_depth, c.uop_bytes, None)
            drafts = [load]
        else:
            drafts = []
        gemm = bool(self._maybe(0.4))
        only = gemm and bool(self._maybe())
        sources = c.inp_depth if only else min(c.acc_depth, c.inp_depth)
        values, uops = self._loops(c.acc_depth, sources, c.wgt_depth)
        place_load, place = self._place(uops)
        drafts.append(place_load)
        values.update(uop_begin=place, uop_end=place + len(uops.words))
        for _ in range(self._int(1, 3)):
            if self._maybe(0.2):
                drafts += self._between()
            drafts.append(self._gemm(values, uops) if gemm else self._alu(values, uops))
            if self._maybe(0.2) and not only:
                gemm = not gemm
        return drafts

    def _between(self) -> list[Draft]:
        """Something else for the compute unit, so that instructions of every kind follow each other."""
        kind = self._int(0, 2)
        if kind == 0:
            return self._acc()
        if kind == 1 and self.config.has("requant"):
            return [self._requant()]
        return self._noop()

    @staticmethod
    def _walk(values: dict[str, int], uops: Uops, name: str) -> Cells:
        outer = np.arange(values["iter_out"])[:, None, None] * values[f"{name}_factor_out"]
        inner = np.arange(values["iter_in"])[None, :, None] * values[f"{name}_factor_in"]
        cells: Cells = (outer + inner + uops.fields[name][None, None, :]).reshape(-1).astype(np.int64)
        return cells

    def _distances(self, dst: Cells, reads: list[Cells]) -> list[str]:
        """Names of the distances at which an operation reads what an earlier one wrote (0: the one just before)."""
        past = np.concatenate([np.array(self._recent, np.int64), dst])
        shift = len(self._recent)
        found = []
        for distance in DISTANCES:
            for read in reads:
                start = max(0, distance + 1 - shift)
                back = past[shift + start - distance - 1 : len(past) - distance - 1]
                if start < len(dst) and (read[start:] == back).any():
                    found.append(str(distance))
                    break
        self._recent = past[-len(DISTANCES) :].tolist()
        return found or ["none"]

    def _sat(self) -> dict[str, int]:
        return {"sat": self._maybe()} if self.config.has("sat") else {}

    def _gemm(self, loops: dict[str, int], uops: Uops) -> Draft:
        values = {**loops, **self._sat(), "reset": self._maybe(0.2)}
        dst = self._walk(loops, uops, "dst")
        kind = "reset" if values["reset"] else "sat" if values.get("sat") else "plain"
        if self._before != "gemm":
            self._recent = []
        names = [f"gemm.{kind}.{name}" for name in self._distances(dst, [] if values["reset"] else [dst])]
        if values["reset"]:
            return Draft(Opcode.GEMM, values, bins=self._after("gemm", names))
        reads = {"inp": self._walk(loops, uops, "src"), "wgt": self._walk(loops, uops, "wgt")}
        return Draft(Opcode.GEMM, values, reads, {"out": dst}, self._after("gemm", names))

    def _alu(self, loops: dict[str, int], uops: Uops) -> Draft:
        op = AluOpcode(self._int(0, 7 if self.config.has("alu_plus") else 4))
        values = {name: value for name, value in loops.items() if not name.startswith("wgt")}
        values.update(self._sat(), alu_opcode=int(op))
        if self._maybe():
            values["use_imm"] = 1
            values["imm"] = self._int(-32768, 32767) if self._maybe() else self._int(-40, 40)
            if op is AluOpcode.RSHR:
                values["imm"] = self._int(0, 31) - 0x8000 * self._maybe()
        elif op is AluOpcode.RSHR:
            values["imm"] = -0x8000 * self._maybe()
        elif op < AluOpcode.MAC:
            values["imm"] = self._int(-32768, 32767)
        dst, src = self._walk(loops, uops, "dst"), self._walk(loops, uops, "src")
        reads = [src] if op is not AluOpcode.MOV or not values.get("use_imm") else []
        if op is AluOpcode.MAC or (not values.get("use_imm") and op is not AluOpcode.MOV):
            reads.append(dst)
        if self._before != "alu":
            self._recent = []
        operand = "imm" if values.get("use_imm") else "tensor"
        names = [f"alu.{op.name.lower()}.{operand}.{name}" for name in self._distances(dst, reads)]
        if values.get("sat"):
            names.append(f"sat.{op.name.lower()}")
        return Draft(Opcode.ALU, values, {}, {"out": dst}, self._after("alu", names))

    def _requants(self) -> list[Draft]:
        if self._maybe():
            return [self._requant() for _ in range(self._int(1, 2))]
        # Parameters that make sense, and data they leave in range.
        depth = self.config.acc_depth
        places = {"data_base": self._int(0, depth - 1), "param_base": self._int(0, depth - 3)}
        count = min(SMALL_DATA, depth - places["data_base"])
        data = self._values(places["data_base"], 3 * PARAMETER_SETS, count)
        parameters = self._values(places["param_base"], 3 * self._int(0, PARAMETER_SETS - 1), 3)
        return [data, parameters, self._requant(places)]

    def _values(self, sram: int, dram: int, count: int) -> Draft:
        """LOAD of some consecutive acc elements."""
        values = {
            "memory_id": int(MemId.ACC), "sram_base": sram, "dram_base": dram, "y_size": 1, "x_size": count,
            "x_stride": count,
        }  # fmt: skip
        return Draft(Opcode.LOAD, values, {}, {}, self._after("acc", ["load.acc.none.zero", "rows.acc.same"]))

    def _requant(self, places: Mapping[str, int] | None = None) -> Draft:
        """A REQUANT; ``places`` gives data_base and param_base, for one set of parameters."""
        outer, inner = self._int(1, 3), self._int(1, 4)
        mode = RequantMode(self._int(0, len(RequantMode) - 1))
        values = {"iter_out": outer, "iter_in": inner, "mode": int(mode)}
        for name, tail in (("data", 0), ("param", 2)):
            room = self.config.acc_depth - 1 - tail
            still = name == "param" and (places is not None or self._maybe())
            for loop, loops in (("out", outer), ("in", inner)):
                most = 0 if still else min(4, room // max(1, loops - 1), self.config.acc_depth - 1)
                factor = self._int(0, most)
                room -= (loops - 1) * factor
                values[f"{name}_factor_{loop}"] = factor
            values[f"{name}_base"] = room if self._maybe(0.1) else self._int(0, room)
            if places is not None:
                values[f"{name}_base"] = min(room, places[f"{name}_base"])
        flag = ("plain", "clear", "write_acc")[self._int(0, 2)]
        if flag != "plain":
            values[flag] = 1
        values["unsigned_out"] = self._maybe()
        steps = (
            np.arange(outer)[:, None] * values["data_factor_out"] + np.arange(inner) * values["data_factor_in"]
        ).reshape(-1)
        dst = (steps + values["data_base"]).astype(np.int64)
        sign = "unsigned" if values["unsigned_out"] else "signed"
        moves = "moving" if values["param_factor_out"] or values["param_factor_in"] else "still"
        names = [f"requant.{mode.name.lower()}.{flag}.{sign}", f"params.{moves}"]
        self._recent = []
        return Draft(Opcode.REQUANT, values, {}, {"out": dst}, self._after("requant", names))
