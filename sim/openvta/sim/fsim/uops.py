# SPDX-License-Identifier: Apache-2.0
"""Micro-ops of an instruction and the plans made from them, kept by their contents."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from openvta.sim.fsim.loops import CHUNK, Indices, Piece, pieces
from openvta.sim.fsim.op import Core
from openvta.spec import Insn
from openvta.spec.insn import isa_of

P = TypeVar("P")

KEEP_PLANS = 8


@dataclass(frozen=True)
class UopFields:
    """The fields of consecutive micro-ops, int64 ``[n]`` each."""

    dst: Indices
    src: Indices
    wgt: Indices


def split_uops(core: Core, first: int, last: int) -> UopFields:
    """Decode micro-ops ``first`` .. ``last - 1`` of the scratchpad."""
    layout = isa_of(core.config).uop
    words = core.pads.uop[first:last].astype(np.int64)

    def part(name: str) -> Indices:
        field = layout.field(name)
        return (words >> field.lo) & ((1 << field.width) - 1)

    return UopFields(part("dst"), part("src"), part("wgt"))


class UopPlans(Generic[P]):
    """Plans of a GEMM or ALU instruction: made when its micro-ops change, found again when they return.

    Args:
        core: the core.
        insn: the instruction; it does something (no loop or range is empty).
        check: raises OpFault where an index is out of range.
        plan: makes the plan of a piece.
    """

    def __init__(
        self,
        core: Core,
        insn: Insn,
        check: Callable[[UopFields], None],
        plan: Callable[[UopFields, Piece], P],
    ) -> None:
        self._core = core
        self._insn = insn
        self._check = check
        self._plan = plan
        self._range = slice(insn["uop_begin"], insn["uop_end"])
        self._last: bytes | None = None
        self._current: list[P] = []
        self._known: dict[bytes, list[P]] = {}

    def now(self) -> list[P] | Iterator[P]:
        """The plans for the micro-ops the scratchpad holds now, in order.

        A list, kept for next time; for very long instructions an iterator that plans as it goes.

        Raises:
            OpFault: an index is out of range.
        """
        key = self._core.pads.uop[self._range].tobytes()
        if key == self._last:
            return self._current
        plans = self._known.get(key)
        if plans is None:
            insn = self._insn
            uops = split_uops(self._core, insn["uop_begin"], insn["uop_end"])
            self._check(uops)
            count = len(uops.dst)
            parts = pieces(insn["iter_out"], insn["iter_in"], count)
            if insn["iter_out"] * insn["iter_in"] * count > CHUNK:
                return (self._plan(uops, part) for part in parts)
            plans = [self._plan(uops, part) for part in parts]
            if len(self._known) >= KEEP_PLANS:
                del self._known[next(iter(self._known))]
            self._known[key] = plans
        self._last, self._current = key, plans
        return plans
