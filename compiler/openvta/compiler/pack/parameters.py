# SPDX-License-Identifier: Apache-2.0
"""Requantization parameters as acc elements: three consecutive elements (bias, multiplier, packed word) a set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from openvta.compiler.graph import Requant
from openvta.compiler.pack.weights import blocks
from openvta.spec.arith import PARAMETER_WORDS, RequantParams, parameter_words
from openvta.spec.isa import RequantMode

Int32 = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class ParameterTable:
    """Parameter sets of a layer.

    ``words`` int32 ``[sets, 3, block]``. With ``per_block`` set ``k`` belongs to output block ``k``; else every block
    uses the set of its position's class (class 0 where there is one set only). ``modes`` has the rounding mode of each
    class.
    """

    words: Int32
    per_block: bool
    modes: tuple[RequantMode, ...]
    unsigned: bool

    @property
    def sets(self) -> int:
        """Number of sets."""
        return int(self.words.shape[0])

    def elements(self, low: int, high: int, batch: int) -> Int32:
        """Return sets ``low .. high - 1`` as acc elements ``[(high - low) * 3, batch * block]``, one row an image."""
        flat = self.words[low:high].reshape((high - low) * PARAMETER_WORDS, 1, -1)
        return np.repeat(flat, batch, axis=1).reshape((high - low) * PARAMETER_WORDS, -1)


def parameter_table(rules: Sequence[Requant], bias: npt.NDArray[np.int32], channels: int, block: int) -> ParameterTable:
    """Return the table of one rule for every channel, or of several rules chosen by position.

    ``bias`` is int32 ``[channels]`` for one rule that differs by channel, or ``[1]``; several rules take ``[1]`` only.
    Lanes beyond the last channel get multiplier 0, so their result is the clamped zero point.
    """
    first = rules[0]
    per_block = bias.shape[0] > 1 or first.channels > 1
    count = channels if per_block else block
    rows: list[npt.NDArray[np.int32]] = []
    for rule in rules:
        multiplier = np.broadcast_to(rule.multiplier.values, (count,)) if rule.channels == 1 else rule.multiplier.values
        shift = np.broadcast_to(rule.shift.values, (count,)) if rule.channels == 1 else rule.shift.values
        offset = np.broadcast_to(bias, (count,)) if bias.shape[0] == 1 else bias
        lanes = blocks(count, block) * block
        empty = RequantParams(0, 0, 0, rule.zero_point, rule.low, rule.high)
        params = [
            RequantParams(int(offset[k]), int(multiplier[k]), int(shift[k]), rule.zero_point, rule.low, rule.high)
            for k in range(count)
        ]
        words = parameter_words([*params, *[empty] * (lanes - count)])
        rows.append(words.reshape(PARAMETER_WORDS, -1, block).transpose(1, 0, 2))
    modes = tuple(rule.mode for rule in rules)
    return ParameterTable(np.concatenate(rows), per_block, modes, first.unsigned)
