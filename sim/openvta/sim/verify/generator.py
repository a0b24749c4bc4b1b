# SPDX-License-Identifier: Apache-2.0
"""Random legal programs of any configuration: every instruction, memory, pad, mode and hazard distance.

Legality comes from the specification alone: depths, field widths, and what :func:`openvta.spec.insn.static_fault` allows.
A program is made of groups of drafts that need each other (micro-ops and their users), so that a failing one can be
cut down group by group.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from openvta.sim.verify.plan import Cells, Draft, PlanFull, Planner
from openvta.spec import AluOpcode, HardwareConfig, MemId, Opcode, Program, RequantMode
from openvta.spec.bins import DISTANCES
from openvta.spec.insn import isa_of

AREA = 1 << 16
"""Bytes of each memory type's area; STORE's comes last."""
NAMES = ("uop", "inp", "wgt", "acc", "out")
Bytes = npt.NDArray[np.uint8]
PADS = ("x_pad_0", "x_pad_1", "y_pad_0", "y_pad_1")


@dataclass(frozen=True)
class RandomProgram:
    """A program, its groups of drafts, the contents of the areas by name, and the seed of its tokens."""

    program: Program
    groups: tuple[tuple[Draft, ...], ...]
    areas: dict[str, Bytes]
    seed: int

    @property
    def bins(self) -> list[str]:
        """Functional bins the program fills, stalls apart."""
        return [name for group in self.groups for draft in group for name in draft.bins]


def plan(config: HardwareConfig, groups: tuple[tuple[Draft, ...], ...], seed: int) -> tuple[Program, int]:
    """The program of these groups with tokens, and how many groups found room (the rest is left out)."""
    planner = Planner(config, AREA, np.random.default_rng([seed, 0x70C]))
    done = 0
    try:
        for group in groups:
            for draft in group:
                planner.add(draft, extra=0.1)
            done += 1
    except PlanFull:
        pass
    return planner.program(), done


@dataclass
class _Uops:
    """Micro-ops of a group: encoded words, and the fields as arrays."""

    words: list[int]
    first: int
    fields: dict[str, Cells]
    highest: dict[str, int] = field(default_factory=dict)


class Generator:
    """Draws programs of one configuration; every random decision comes from ``seed``.

    Args:
        config: the configuration.
        seed: of everything.
        ops: most micro-op steps of an instruction.
    """

    def __init__(self, config: HardwareConfig, seed: int, *, ops: int = 16) -> None:
        self.config = config
        self.seed = seed
        self.rng = np.random.default_rng([seed, 0x9E4])
        self.ops = ops
        self._count = 0
        self._words: list[int] = []
        self._recent: list[int] = []
        self._before = ""

    # whole programs ------------------------------------------------------------------------------

    def program(self, length: int) -> RandomProgram:
        """A program of about ``length`` instructions, FINISH included."""
        self._count += 1
        self._words, self._recent, self._before = [], [], ""
        kinds = [
            self._inp,
            self._wgt,
            self._acc,
            self._acc,
            self._uses,
            self._uses,
            self._uses,
            self._store,
            self._noop,
        ]
        if self.config.has("requant"):
            kinds.append(self._requants)
        limit = AREA // 4 - 64
        groups: list[tuple[Draft, ...]] = []
        total = 1
        while total < length and len(self._words) < limit:
            group = tuple(kinds[int(self.rng.integers(len(kinds)))]())
            groups.append(group)
            total += len(group)
        seed = int(self.rng.integers(1 << 31))
        program, done = plan(self.config, tuple(groups), seed)
        areas = {name: self.rng.integers(0, 256, AREA, dtype=np.uint8) for name in NAMES}
        words = np.array(self._words, "<u4").view(np.uint8)
        areas["uop"][: len(words)] = words
        self._plausible(areas["acc"])
        return RandomProgram(program, tuple(groups[:done]), areas, seed)

    def _plausible(self, acc: Bytes) -> None:
        """Half of acc's words become small, so that saturation, ties and requantization do not always hit a limit."""
        words = acc.view("<i4")
        shift = self.rng.integers(0, 31, len(words))
        words[:] = np.where(self.rng.random(len(words)) < 0.7, words >> shift, words)

    # draws ---------------------------------------------------------------------------------------

    def _int(self, low: int, high: int) -> int:
        """low .. high inclusive."""
        return int(self.rng.integers(low, high + 1))

    def _maybe(self, chance: float = 0.5) -> int:
        return int(self.rng.random() < chance)

    def _after(self, kind: str, names: list[str]) -> tuple[str, ...]:
        """Bins of a compute instruction: its own and that of the pair it makes with the one before."""
        if self._before:
            names.append(f"pair.{self._before}.{kind}")
        self._before = kind
        return tuple(names)

    # transfers -----------------------------------------------------------------------------------

    def _pads(self) -> dict[str, int]:
        kind = self._int(0, 7)
        if kind < 2:
            return {}
        if kind < 6:
            return {PADS[kind - 2]: self._int(1, 3)}
        return {name: self._int(0, 15 if self._maybe(0.1) else 2) for name in PADS}

    def _load(self, memory: MemId, depth: int, element: int, space: str | None) -> Draft:
        uop = memory is MemId.UOP
        pads = self._pads()
        y, x = self._int(1, 4), self._int(1, 6)
        if self._maybe(0.04):
            y, x = 1, min(depth, self._int(depth // 2, depth))
        while self._size(y, x, pads) > depth:
            pads, y, x = {}, 1, max(1, x // 2)
        total = self._size(y, x, pads)
        kind = ("same", "gap", "overlap", "zero")[self._int(0, 3)]
        x_stride = {"same": x, "gap": x + self._int(1, 5), "overlap": max(0, x - self._int(1, 3)), "zero": 0}[kind]
        span = (y - 1) * x_stride + x
        own = AREA // element - span
        if own < 0:
            y, x, pads, x_stride, kind = 1, 1, {}, 1, "same"
            total, own = 1, AREA // element - 1
        base = depth - total if self._maybe(0.15) else self._int(0, depth - total)
        values = {
            "memory_id": int(memory), "sram_base": base, "dram_base": self._int(0, own), "y_size": y, "x_size": x,
            "x_stride": x_stride, **{name: value for name, value in pads.items() if value},
        }  # fmt: skip
        padded = [name for name in PADS if pads.get(name)]
        fill = "zero"
        if padded and not uop and self.config.has("padv"):
            fill = ("zero", "min", "value")[self._int(0, 2)]
            if fill == "min":
                values["pad_min"] = 1
            elif fill == "value":
                raw = self._int(1, 255)
                values["pad_value_high"], values["pad_value_low"] = raw >> 6, raw & 63
        name = memory.name.lower()
        where = "none" if not padded else padded[0].replace("_pad_", "") if len(padded) == 1 else "many"
        bins = [f"load.{name}.{where}.{fill}", f"rows.{name}.{kind}"]
        if base + total == depth:
            bins.append(f"end.{name}")
        reads: dict[str, Cells] = {}
        if (space is None and not uop and self._maybe(0.3)) or (space == "inp" and self._maybe(0.3)):
            reads = self._feedback(values, element)
        if reads:
            bins.append(f"feedback.{name}")
        writes = {space: np.arange(base, base + total)} if space else {}
        if memory not in (MemId.INP, MemId.WGT):
            return Draft(Opcode.LOAD, values, reads, writes, self._after("uop" if uop else "acc", bins))
        return Draft(Opcode.LOAD, values, reads, writes, tuple(bins))

    @staticmethod
    def _size(y: int, x: int, pads: dict[str, int]) -> int:
        rows = y + pads.get("y_pad_0", 0) + pads.get("y_pad_1", 0)
        return rows * (x + pads.get("x_pad_0", 0) + pads.get("x_pad_1", 0))

    def _feedback(self, values: dict[str, int], element: int) -> dict[str, Cells]:
        """Load from the area that STORE writes instead: order then comes from tokens across units."""
        name = "inp" if values["memory_id"] == MemId.INP else "acc"
        offset = (NAMES.index("out") - NAMES.index(name)) * AREA // element
        x, y, pitch = values["x_size"], values["y_size"], values["x_stride"]
        rows = [np.arange(x * element) + row * pitch * element for row in range(y)]
        values["dram_base"] += offset
        start = (values["dram_base"] - offset) * element
        return {"memory": start + np.concatenate(rows)}

    def _inp(self) -> list[Draft]:
        return [self._load(MemId.INP, self.config.inp_depth, self.config.inp_bytes, "inp")]

    def _wgt(self) -> list[Draft]:
        return [self._load(MemId.WGT, self.config.wgt_depth, self.config.wgt_bytes, "wgt")]

    def _acc(self) -> list[Draft]:
        choices = [(MemId.ACC, self.config.acc_bytes)]
        if self.config.has("acc8"):
            choices += [(MemId.ACC_INT8, self.config.acc8_bytes), (MemId.ACC_UINT8, self.config.acc8_bytes)]
        memory, size = choices[self._int(0, len(choices) - 1)]
        return [self._load(memory, self.config.acc_depth, size, None)]

    def _store(self) -> list[Draft]:
        depth, element = self.config.acc_depth, self.config.out_bytes
        y, x = self._int(1, 4), self._int(1, 6)
        if self._maybe(0.04):
            y, x = 1, min(depth, self._int(depth // 2, depth))
        while y * x > depth:
            y, x = 1, max(1, x // 2)
        kind = ("same", "gap", "overlap")[self._int(0, 2)]
        pitch = {"same": x, "gap": x + self._int(1, 5), "overlap": max(0, x - self._int(1, 3))}[kind]
        span = (y - 1) * pitch + x
        base = depth - y * x if self._maybe(0.15) else self._int(0, depth - y * x)
        first = self._int(0, AREA // element - span)
        values = {
            "memory_id": int(MemId.OUT), "sram_base": base, "dram_base": first, "y_size": y, "x_size": x,
            "x_stride": pitch,
        }  # fmt: skip
        rows = [np.arange(x * element) + (first + row * pitch) * element for row in range(y)]
        cells = {"out": np.arange(base, base + y * x)}
        align = first * element % self.config.axi_data_bytes
        bins = (f"store.{kind}.{'aligned' if not align else 'inside'}",)
        return [Draft(Opcode.STORE, values, cells, {"memory": np.concatenate(rows)}, bins)]

    def _noop(self) -> list[Draft]:
        kind = ("load", "loaduop", "store", "gemm", "alu", "requant")[
            self._int(0, 5 if self.config.has("requant") else 4)
        ]
        pads = {PADS[self._int(0, 3)]: self._int(1, 15)} if self._maybe() else {}
        size = {"y_size": self._int(1, 9)} if self._maybe() else {"x_size": self._int(1, 9)}
        values: dict[str, dict[str, int]] = {
            "load": {"memory_id": int((MemId.INP, MemId.WGT)[self._int(0, 1)]), **size, **pads},
            "loaduop": {"memory_id": int((MemId.UOP, MemId.ACC)[self._int(0, 1)]), **size, **pads},
            "store": {"memory_id": int(MemId.OUT), **size, **pads},
            "gemm": {"iter_out": self._int(0, 2), "iter_in": 0, "uop_end": 1},
            "alu": {"iter_out": 1, "iter_in": 1, "uop_begin": 1, "uop_end": 1},
            "requant": {"iter_in": self._int(1, 3)},
        }
        opcode = Opcode.LOAD if kind.startswith("load") else Opcode[kind.upper()]
        names = [f"noop.{kind}"]
        compute = kind not in ("load", "store")
        return [Draft(opcode, values[kind], bins=self._after("noop", names) if compute else tuple(names))]

    # micro-ops -----------------------------------------------------------------------------------

    def _loops(self, dst: int, src: int, wgt: int) -> tuple[dict[str, int], _Uops]:
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
        return values, _Uops(words, 0, draws)

    def _place(self, uops: _Uops) -> tuple[Draft, int]:
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
    def _walk(values: dict[str, int], uops: _Uops, name: str) -> Cells:
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

    def _gemm(self, loops: dict[str, int], uops: _Uops) -> Draft:
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

    def _alu(self, loops: dict[str, int], uops: _Uops) -> Draft:
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

    # requantization ------------------------------------------------------------------------------

    def _requants(self) -> list[Draft]:
        return [self._requant() for _ in range(self._int(1, 2))]

    def _requant(self) -> Draft:
        outer, inner = self._int(1, 3), self._int(1, 4)
        mode = RequantMode(self._int(0, len(RequantMode) - 1))
        values = {"iter_out": outer, "iter_in": inner, "mode": int(mode)}
        for name, tail in (("data", 0), ("param", 2)):
            room = self.config.acc_depth - 1 - tail
            still = name == "param" and self._maybe()
            for loop, loops in (("out", outer), ("in", inner)):
                most = 0 if still else min(4, room // max(1, loops - 1), self.config.acc_depth - 1)
                factor = self._int(0, most)
                room -= (loops - 1) * factor
                values[f"{name}_factor_{loop}"] = factor
            values[f"{name}_base"] = room if self._maybe(0.1) else self._int(0, room)
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
