# SPDX-License-Identifier: Apache-2.0
"""ALU: operations one after the other, executed in batches whose members cannot see each other's results."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from openvta.sim.fsim.access import Accesses, merged, with_uops
from openvta.sim.fsim.arithmetic import alu_function, narrow
from openvta.sim.fsim.loops import Indices, Piece, compact, largest
from openvta.sim.fsim.op import Core, Op, OpFault, Work
from openvta.sim.fsim.scratchpads import Memory
from openvta.sim.fsim.uops import UopFields, UopPlans
from openvta.spec import AluOpcode, Cause, Insn

FAR = np.iinfo(np.int64).max


@dataclass(frozen=True)
class Batch:
    """Operations that may run at once: all reads come before all writes."""

    dst: slice | Indices
    src: slice | Indices


@dataclass(frozen=True)
class Plan:
    """A piece of an instruction, planned for one set of micro-ops."""

    batches: tuple[Batch, ...]
    accesses: Accesses
    count: int


def levels(dst: Indices, src: Indices) -> list[Indices]:
    """Positions of operations grouped so that running group after group equals running one after the other.

    Operation j writes dst[j] after reading dst[j] and src[j].
    """
    count = len(dst)
    last_write = np.full(int(max(dst.max(), src.max())) + 1, FAR, np.int64)
    last_write[dst] = np.arange(count)
    unique = int(np.count_nonzero(last_write != FAR)) == count
    if unique and bool((last_write[src] >= np.arange(count)).all()):
        return [np.arange(count)]
    written: dict[int, int] = {}
    read: dict[int, int] = {}
    level = np.empty(count, np.int64)
    for number, (target, source) in enumerate(zip(dst.tolist(), src.tolist(), strict=True)):
        after = max(written.get(source, -1), written.get(target, -1)) + 1
        here = max(after, read.get(target, 0))
        level[number] = here
        written[target] = here
        read[source] = max(read.get(source, 0), here)
    order = np.argsort(level, kind="stable")
    cuts = np.flatnonzero(np.diff(level[order])) + 1
    return list(np.split(order, cuts))


def reads_from_before(dst: Indices, src: Indices) -> Indices:
    """Elements of ``src`` read before the same instruction writes them, ascending; dst[j] is written by operation j."""
    size = int(max(dst.max(), src.max())) + 1
    count = len(dst)
    first_write = np.full(size, FAR, np.int64)
    np.minimum.at(first_write, dst, np.arange(count))
    first_read = np.full(size, FAR, np.int64)
    np.minimum.at(first_read, src, np.arange(count))
    return np.flatnonzero((first_read != FAR) & (first_read <= first_write))


class Alu(Op):
    """One ALU instruction."""

    name = "alu"

    def __init__(self, core: Core, insn: Insn) -> None:
        super().__init__(core, insn)
        self.plans = UopPlans(core, insn, self._check, self._plan)
        self.saturate = bool(insn["sat"])
        op, use_imm = AluOpcode(insn["alu_opcode"]), bool(insn["use_imm"])
        self.function = alu_function(op, insn["imm"], use_imm=use_imm)
        self.reads_src = not (use_imm and op is AluOpcode.MOV)
        self.reads_dst = op is AluOpcode.MAC or not (use_imm or op is AluOpcode.MOV)

    def _check(self, uops: UopFields) -> None:
        insn, depth = self.insn, self.core.config.acc_depth
        for name, base in (("dst", uops.dst), ("src", uops.src)):
            most = largest(
                base, insn["iter_out"], insn[f"{name}_factor_out"], insn["iter_in"], insn[f"{name}_factor_in"]
            )
            if most >= depth and (name == "dst" or self.reads_src):
                raise OpFault(Cause.INDEX_RANGE, f"acc index {most} ({name}): depth is {depth}")

    def _plan(self, uops: UopFields, piece: Piece) -> Plan:
        insn = self.insn
        dst = piece.expand(uops.dst, insn["dst_factor_out"], insn["dst_factor_in"])
        src = dst
        if self.reads_src:
            src = piece.expand(uops.src, insn["src_factor_out"], insn["src_factor_in"])
        batches = tuple(Batch(compact(dst[part]), compact(src[part])) for part in levels(dst, src))
        reads = []
        if self.reads_src:
            reads.append(reads_from_before(dst, src))
        if self.reads_dst:
            reads.append(reads_from_before(dst, dst))
        needed = np.unique(np.concatenate(reads)) if reads else np.empty(0, np.int64)
        written = np.unique(dst)
        accesses = Accesses(
            reads=((Memory.ACC, needed),) if len(needed) else (),
            writes=((Memory.ACC, written), (Memory.OUT, written)),
        )
        return Plan(batches, accesses, len(dst))

    def execute(self) -> None:
        acc, out = self.core.pads.acc, self.core.pads.out
        bits = self.core.config.out_bits
        for plan in self.plans.now():
            self.core.acc_writes += plan.count
            for batch in plan.batches:
                result = self.function(acc[:, batch.dst], acc[:, batch.src])
                acc[:, batch.dst] = result
                out[:, batch.dst] = narrow(result, bits, saturate=self.saturate)

    def accesses(self) -> Accesses:
        return with_uops(self.insn, merged([plan.accesses for plan in self.plans.now()]))

    def work(self) -> Work:
        insn = self.insn
        count = insn["iter_out"] * insn["iter_in"] * (insn["uop_end"] - insn["uop_begin"])
        return Work((("alu_uops", count),))
