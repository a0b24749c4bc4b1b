# SPDX-License-Identifier: Apache-2.0
"""Random loads, stores and instructions that do nothing."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from openvta.sim.verify.plan import Cells, Draft
from openvta.spec import HardwareConfig, MemId, Opcode

AREA = 1 << 16
"""Bytes of each memory type's area; STORE's comes last."""
NAMES = ("uop", "inp", "wgt", "acc", "out")
Bytes = npt.NDArray[np.uint8]
PADS = ("x_pad_0", "x_pad_1", "y_pad_0", "y_pad_1")


class Transfers:
    """Drafts of transfers. ``before``: kind of the compute instruction drawn last; ``recent``: acc elements its last
    operations wrote.
    """

    def __init__(self, config: HardwareConfig, rng: np.random.Generator) -> None:
        self.config = config
        self.rng = rng
        self._before = ""
        self._recent: list[int] = []

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
