# SPDX-License-Identifier: Apache-2.0
"""GEMM: an instruction's micro-ops gathered into a few matrix products.

Additions of one acc element may be reordered (they wrap modulo 2^32), so its (inp, wgt) pairs are sorted by weight.
Elements with the same weights form the rows of one product, and those products that also share their inputs stand side
by side. A product runs in float32 while no partial sum can reach 2^24, in float64 otherwise (2^53 is out of reach).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from openvta.sim.fsim.access import Accesses, merged, with_uops
from openvta.sim.fsim.arithmetic import narrow
from openvta.sim.fsim.gather import Gather
from openvta.sim.fsim.loops import Indices, Piece, compact, largest
from openvta.sim.fsim.op import Core, Op, OpFault, Work
from openvta.sim.fsim.scratchpads import Memory
from openvta.sim.fsim.uops import UopFields, UopPlans
from openvta.spec import Cause, Insn

FLOAT32_EXACT = 1 << 24
GATHER_LANES = 1 << 17
"""Lanes of inp gathered for one product at a time, to stay in cache."""
KEEP_PACKED = 16


@dataclass
class Packed:
    """Weights of one product: ``[terms * block, groups * block]``, and whether float32 is exact."""

    tags: bytes
    matrix: npt.NDArray[np.float32] | npt.NDArray[np.float64]


class Product:
    """Elements whose weights and inputs form a full rectangle.

    Attributes:
        inp: inp indices ``[points, terms]``.
        wgt: wgt indices ``[groups, terms]``.
        dst: acc indices ``[points, groups]``.
    """

    def __init__(self, inp: Indices, wgt: Indices, dst: Indices) -> None:
        self.inp = inp
        self.wgt = wgt
        self.dst = dst
        self.gather = Gather(inp)
        by_point, by_group = compact(dst.reshape(-1)), compact(dst.T.reshape(-1))
        self.group_major = not isinstance(by_point, slice) and isinstance(by_group, slice)
        self.where = by_group if self.group_major else by_point
        self._packed: list[Packed] = []

    def _weights(self, core: Core) -> npt.NDArray[np.float32] | npt.NDArray[np.float64]:
        tags = core.pads.wgt_tags[self.wgt].tobytes()
        for position, packed in enumerate(self._packed):
            if packed.tags == tags:
                if position:
                    self._packed.insert(0, self._packed.pop(position))
                return packed.matrix
        groups, terms = self.wgt.shape
        block = core.config.block
        tiles = core.pads.wgt[self.wgt]
        matrix = np.ascontiguousarray(tiles.transpose(1, 3, 0, 2)).reshape(terms * block, groups * block)
        reach = float(np.abs(matrix).sum(axis=0, dtype=np.float64).max()) * (1 << (core.config.inp_bits - 1))
        entry = Packed(tags, matrix if reach < FLOAT32_EXACT else matrix.astype(np.float64))
        self._packed.insert(0, entry)
        del self._packed[KEEP_PACKED:]
        return entry.matrix

    def run(self, core: Core) -> None:
        """Add the product to acc."""
        weights = self._weights(core)
        inp, acc = core.pads.inp, core.pads.acc
        points, terms = self.inp.shape
        groups = len(self.wgt)
        rows, block = len(inp), core.config.block
        at_once = GATHER_LANES // (points * terms * block)
        if at_once:
            for row in range(0, rows, at_once):
                part = slice(row, row + at_once)
                self._add(acc[part], self._multiply(self.gather.rows(inp[part]), weights), groups)
            return
        step = max(1, GATHER_LANES // (terms * block))
        result = np.empty((points, groups * block), np.int32)
        for row in range(rows):
            for first in range(0, points, step):
                some = slice(first, first + step)
                result[some] = self._multiply(self.gather.part(inp[row], some), weights)
            self._add(acc[row : row + 1], result, groups)

    def _add(self, acc: npt.NDArray[np.int32], result: npt.NDArray[np.int32], groups: int) -> None:
        """Add ``[rows * points, groups * block]`` to acc ``[rows, depth, block]``."""
        rows, _, block = acc.shape
        lanes = result.reshape(rows, -1, groups, block)
        if self.group_major:
            lanes = lanes.transpose(0, 2, 1, 3)
        acc[:, self.where] += lanes.reshape(rows, -1, block)

    @staticmethod
    def _multiply(
        left: npt.NDArray[np.float32], weights: npt.NDArray[np.float32] | npt.NDArray[np.float64]
    ) -> npt.NDArray[np.int32]:
        if weights.dtype == np.float32:
            return (left @ weights).astype(np.int32)
        return (left.astype(np.float64) @ weights).astype(np.int64).astype(np.int32)


def products(dst: Indices, inp: Indices, wgt: Indices) -> list[Product]:
    """Group operations (flat index arrays, in any order) into products."""
    order = np.lexsort((inp, wgt, dst))
    dst, inp, wgt = dst[order], inp[order], wgt[order]
    starts = np.flatnonzero(np.concatenate(([True], dst[1:] != dst[:-1])))
    lengths = np.diff(np.concatenate((starts, [len(dst)])))
    found: list[Product] = []
    for terms in np.unique(lengths):
        rows = starts[lengths == terms][:, None] + np.arange(int(terms))
        found += _rectangles(dst[rows[:, 0]], inp[rows], wgt[rows])
    return found


def _rectangles(dst: Indices, inp: Indices, wgt: Indices) -> list[Product]:
    """Products of elements with equally many terms: dst ``[n]``, inp and wgt ``[n, terms]``."""
    by_weights: dict[bytes, list[int]] = {}
    for number, row in enumerate(wgt):
        by_weights.setdefault(row.tobytes(), []).append(number)
    by_inputs: dict[tuple[bytes, ...], list[list[int]]] = {}
    for numbers in by_weights.values():
        named = sorted((inp[number].tobytes(), number) for number in numbers)
        ordered = sorted(named, key=lambda item: int(dst[item[1]]))
        shared = tuple(name for name, _ in named)
        if len(set(shared)) < len(shared):
            shared = (wgt[numbers[0]].tobytes(), b"alone")
        else:
            ordered = named
        by_inputs.setdefault(shared, []).append([number for _, number in ordered])
    result = []
    for groups in by_inputs.values():
        table = np.array(groups)
        first = table[0]
        table = table[:, np.argsort(dst[first], kind="stable")]
        result.append(Product(inp[table[0]], wgt[table[:, 0]], np.ascontiguousarray(dst[table].T)))
    return result


@dataclass
class Plan:
    """A piece of an instruction, planned for one set of micro-ops; ``runs`` counts runs of equal dst."""

    products: list[Product]
    written: slice | Indices
    accesses: Accesses
    runs: int


class Gemm(Op):
    """GEMM with or without reset."""

    name = "gemm"

    def __init__(self, core: Core, insn: Insn) -> None:
        super().__init__(core, insn)
        self.plans = UopPlans(core, insn, self._check, self._plan)
        self.reset = bool(insn["reset"])
        self.saturate = bool(insn["sat"])
        self._plain = not self.saturate and core.config.out_bits == 8

    def _check(self, uops: UopFields) -> None:
        insn, config = self.insn, self.core.config
        limits = [("acc", "dst", uops.dst, config.acc_depth)]
        if not self.reset:
            limits += [("inp", "src", uops.src, config.inp_depth), ("wgt", "wgt", uops.wgt, config.wgt_depth)]
        for memory, name, base, depth in limits:
            most = largest(
                base, insn["iter_out"], insn[f"{name}_factor_out"], insn["iter_in"], insn[f"{name}_factor_in"]
            )
            if most >= depth:
                raise OpFault(Cause.INDEX_RANGE, f"{memory} index {most}: depth is {depth}")

    def _plan(self, uops: UopFields, piece: Piece) -> Plan:
        insn = self.insn
        dst = piece.expand(uops.dst, insn["dst_factor_out"], insn["dst_factor_in"])
        written = np.unique(dst)
        runs = 1 + int(np.count_nonzero(np.diff(dst)))
        if self.reset:
            return Plan([], compact(written), Accesses(writes=((Memory.ACC, written),)), len(dst))
        inp = piece.expand(uops.src, insn["src_factor_out"], insn["src_factor_in"])
        wgt = piece.expand(uops.wgt, insn["wgt_factor_out"], insn["wgt_factor_in"])
        accesses = Accesses(
            reads=((Memory.ACC, written), (Memory.INP, np.unique(inp)), (Memory.WGT, np.unique(wgt))),
            writes=((Memory.ACC, written), (Memory.OUT, written)),
        )
        return Plan(products(dst, inp, wgt), compact(written), accesses, runs)

    def execute(self) -> None:
        pads = self.core.pads
        for plan in self.plans.now():
            self.core.acc_writes += plan.runs
            if self.reset:
                pads.acc[:, plan.written] = 0
                continue
            for product in plan.products:
                product.run(self.core)
            if self._plain:
                pads.out[:, plan.written] = pads.acc[:, plan.written]
            else:
                values = narrow(pads.acc[:, plan.written], self.core.config.out_bits, saturate=self.saturate)
                pads.out[:, plan.written] = values

    def accesses(self) -> Accesses:
        return with_uops(self.insn, merged([plan.accesses for plan in self.plans.now()]))

    def work(self) -> Work:
        insn = self.insn
        count = insn["iter_out"] * insn["iter_in"] * (insn["uop_end"] - insn["uop_begin"])
        return Work((("gemm_uops", count),))
