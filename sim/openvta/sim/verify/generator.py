# SPDX-License-Identifier: Apache-2.0
"""Random legal programs of any configuration: every instruction, memory, pad, mode and hazard distance.

Legality comes from the specification alone: depths, field widths, and what :func:`openvta.spec.insn.static_fault` allows.
A program is made of groups of drafts that need each other (micro-ops and their users), so that a failing one can be
cut down group by group.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from openvta.sim.verify.operations import PARAMETER_SETS, SMALL_DATA, Operations
from openvta.sim.verify.plan import Draft, PlanFull, Planner
from openvta.sim.verify.transfers import AREA, NAMES, Bytes
from openvta.spec import HardwareConfig, Program

PARAMETERS = 0.4
"""Share of acc's elements, in threes, that make sense as requantization parameters."""


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


class Generator(Operations):
    """Draws programs of one configuration; every random decision comes from ``seed``.

    Args:
        config: the configuration.
        seed: of everything.
        ops: most micro-op steps of an instruction.
    """

    def __init__(self, config: HardwareConfig, seed: int, *, ops: int = 16) -> None:
        super().__init__(config, np.random.default_rng([seed, 0x9E4]), ops)
        self.seed = seed

    def program(self, length: int) -> RandomProgram:
        """A program of about ``length`` instructions, FINISH included."""
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
        if self.config.has("requant"):
            self._parameters(words)

    def _parameters(self, words: npt.NDArray[np.int32]) -> None:
        """Some runs of three acc elements become parameters that leave results in range, with ties: without them REQUANT
        would meet limits only. Where they are not read as parameters they are data like others."""
        rng, lanes = self.rng, self.config.batch * self.config.block
        threes = words[: len(words) // (3 * lanes) * 3 * lanes].reshape(-1, 3, lanes)
        wanted = rng.random(len(threes)) < PARAMETERS
        wanted[:PARAMETER_SETS] = True
        chosen = np.flatnonzero(wanted)
        shape = (len(chosen), lanes)
        odd, power, away = rng.integers(1, 12, shape), rng.integers(0, 20, shape), rng.integers(0, 12, shape)
        floats = (odd / 2.0**away).astype(np.float32).view(np.int32)
        zero, low, high = rng.integers(-20, 20, shape), rng.integers(-128, 0, shape), rng.integers(0, 128, shape)
        threes[chosen, 0] = rng.integers(-64, 64, shape)
        threes[chosen, 1] = np.where(rng.random((len(chosen), 1)) < 0.25, floats, odd << power)
        packed = power + away | (zero & 255) << 8 | (low & 255) << 16 | (high & 255) << 24
        threes[chosen, 2] = packed.astype(np.uint32).view(np.int32)
        small = words[3 * PARAMETER_SETS * lanes : (3 * PARAMETER_SETS + SMALL_DATA) * lanes]
        small >>= 18


__all__ = ["AREA", "NAMES", "Bytes", "Generator", "RandomProgram", "plan"]
