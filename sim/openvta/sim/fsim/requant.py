# SPDX-License-Identifier: Apache-2.0
"""REQUANT: parameters from three consecutive acc elements, results to out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from openvta.sim.fsim.access import Accesses
from openvta.sim.fsim.alu import FAR
from openvta.sim.fsim.arithmetic import Int32, Parameters, decode_parameters, keep_low, requantize, spread
from openvta.sim.fsim.loops import CHUNK, Indices, compact
from openvta.sim.fsim.op import Core, Op, OpFault, Work
from openvta.sim.fsim.scratchpads import Memory
from openvta.spec import Cause, Insn, RequantMode

KEEP_PARAMETERS = 8
WORDS = 3
LANES_AT_ONCE = 1 << 15
"""Lanes requantized at a time, to stay in cache."""


@dataclass
class Step:
    """A rectangle of the nest: ``sets`` parameter elements, each used for ``points`` consecutive data elements."""

    data: slice | Indices
    params: Indices
    sets: int
    points: int


class Requant(Op):
    """One REQUANT instruction. Its indices depend on no micro-op, so it is planned once."""

    name = "requant"

    def __init__(self, core: Core, insn: Insn) -> None:
        super().__init__(core, insn)
        self.mode = RequantMode(insn["mode"])
        self.clear, self.write_acc = bool(insn["clear"]), bool(insn["write_acc"])
        self.changes_acc = self.clear or self.write_acc
        self.unsigned = bool(insn["unsigned_out"])
        self.long = insn["iter_out"] * insn["iter_in"] > CHUNK
        self._steps: list[Step] | None = None
        self._accesses: Accesses | None = None
        self._known: dict[tuple[int, bytes], Parameters] = {}

    def _check(self) -> None:
        """Raise OpFault where an index is out of range."""
        insn, depth = self.insn, self.core.config.acc_depth
        for name, tail in (("data", 0), ("param", WORDS - 1)):
            most = insn[f"{name}_base"] + tail
            most += (insn["iter_out"] - 1) * insn[f"{name}_factor_out"] + (insn["iter_in"] - 1) * insn[
                f"{name}_factor_in"
            ]
            if most >= depth:
                raise OpFault(Cause.INDEX_RANGE, f"acc index {most} ({name}): depth is {depth}")

    def _rows(self, name: str, outer: Indices) -> Indices:
        """Indices of ``name`` for some outer iterations: ``[len(outer), iter_in]``."""
        insn = self.insn
        inner = np.arange(insn["iter_in"], dtype=np.int64)
        steps = outer[:, None] * insn[f"{name}_factor_out"] + inner * insn[f"{name}_factor_in"]
        return insn[f"{name}_base"] + steps

    def _outer(self) -> Iterator[Indices]:
        """Outer iterations, so many at a time that their indices fit memory."""
        outer, step = self.insn["iter_out"], max(1, CHUNK // self.insn["iter_in"])
        for first in range(0, outer, step):
            yield np.arange(first, min(first + step, outer), dtype=np.int64)

    def _plan(self) -> Iterator[Step]:
        """The steps of the instruction, in order."""
        for outer in self._outer():
            data, params = self._rows("data", outer), self._rows("param", outer)
            flat = data.reshape(-1)
            read = np.unique(params.reshape(-1)[:, None] + np.arange(WORDS))
            repeats = self.long or len(np.unique(flat)) < len(flat)
            if repeats or (self.changes_acc and bool(np.isin(flat, read).any())):
                yield from self._serial(flat, params.reshape(-1))
            elif self.insn["param_factor_in"] == 0 or data.shape[1] == 1:
                yield Step(compact(flat), params[:, 0], len(params), data.shape[1])
            else:
                yield Step(compact(flat), params.reshape(-1), params.size, 1)

    @staticmethod
    def _serial(data: Indices, params: Indices) -> Iterator[Step]:
        """One iteration at a time; parameters are kept while their index stays the same."""
        for point, params_at in zip(data.tolist(), params, strict=True):
            yield Step(slice(point, point + 1), np.array([params_at]), 1, 1)

    def _find_accesses(self) -> Accesses:
        depth = self.core.config.acc_depth
        first_read, first_write = np.full(depth, FAR, np.int64), np.full(depth, FAR, np.int64)
        done = 0
        for outer in self._outer():
            data, params = self._rows("data", outer).reshape(-1), self._rows("param", outer).reshape(-1)
            order = np.arange(done, done + len(data))
            done += len(data)
            for elements in (data, *(params + word for word in range(WORDS))):
                np.minimum.at(first_read, elements, order)
            np.minimum.at(first_write, data, order)
        written = np.flatnonzero(first_write != FAR)
        if not self.changes_acc:
            first_write[:] = FAR
        needed = np.flatnonzero((first_read != FAR) & (first_read <= first_write))
        writes = [(Memory.OUT, written)]
        if self.changes_acc:
            writes.insert(0, (Memory.ACC, written))
        return Accesses(reads=((Memory.ACC, needed),), writes=tuple(writes))

    def _parameters(self, step: Step) -> Parameters:
        """Decoded parameters of a step: arrays ``[R, sets, 1, block]``, or ``[1, ...]`` if all rows agree."""
        acc, params = self.core.pads.acc, step.params
        words = [acc.take(params + word, axis=1)[:, :, None, :] for word in range(WORDS)]
        key = (step.points, b"".join(word.tobytes() for word in words))
        found = self._known.get(key)
        if found is None:
            if all(bool((word == word[:1]).all()) for word in words):
                words = [word[:1] for word in words]
            found = decode_parameters(self.mode, words[0], words[1], words[2], unsigned=self.unsigned)
            if len(found.bias) == 1 and step.points > 1:
                found = spread(found, (1, step.sets, step.points, acc.shape[2]))
            if len(self._known) >= KEEP_PARAMETERS:
                del self._known[next(iter(self._known))]
            self._known[key] = found
        return found

    def execute(self) -> None:
        steps: Iterable[Step]
        if self._steps is not None:
            steps = self._steps
        else:
            self._check()
            steps = self._plan()
            if not self.long:
                steps = self._steps = list(steps)
        previous, held = -1, None
        for step in steps:
            if held is None or step.sets > 1 or step.params[0] != previous:
                held, previous = self._parameters(step), int(step.params[0])
            self._run(step, held)
        if self.changes_acc:
            self.core.acc_writes += self.insn["iter_out"] * self.insn["iter_in"]

    def _run(self, step: Step, held: Parameters) -> None:
        acc = self.core.pads.acc
        rows = len(acc)
        at_once = rows
        if len(held.bias) == 1:
            at_once = max(1, LANES_AT_ONCE // (step.sets * step.points * acc.shape[2]))
        for first in range(0, rows, at_once):
            self._run_rows(step, held, slice(first, min(first + at_once, rows)))

    def _run_rows(self, step: Step, held: Parameters, rows: slice) -> None:
        pads, bits = self.core.pads, self.core.config.out_bits
        acc, out = pads.acc[rows], pads.out[rows]
        source: Int32 = acc[:, step.data]
        shape = (len(source), step.sets, step.points, source.shape[2])
        result = requantize(source.reshape(shape), held).reshape(source.shape)
        small: npt.NDArray[Any] = result.astype(np.uint8 if self.unsigned else np.int8)
        out[:, step.data] = small.view(np.int8) if bits == 8 else keep_low(small, bits)
        if self.clear:
            acc[:, step.data] = 0
        elif self.write_acc:
            acc[:, step.data] = small

    def accesses(self) -> Accesses:
        if self._accesses is None:
            self._check()
            self._accesses = self._find_accesses()
        return self._accesses

    def work(self) -> Work:
        return Work((("requant_vectors", self.insn["iter_out"] * self.insn["iter_in"]),))
