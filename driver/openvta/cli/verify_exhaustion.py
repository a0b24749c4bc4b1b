# SPDX-License-Identifier: Apache-2.0
"""`openvta verify exhaustion`: every pair of the multiplier cells, and the requantizer by the hundred million."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import numpy.typing as npt

from openvta.cli import console
from openvta.sim.verify.configs import configuration
from openvta.spec import RequantMode, hash_text
from openvta.spec.arith import RequantParams, requant


def expected(points: npt.NDArray[np.uint32]) -> npt.NDArray[np.int32]:
    """Results of points (see :mod:`openvta.sim.exhaustion.requant`) by the specification's scalar arithmetic."""
    results = np.empty(len(points), np.int32)
    for at, (mode, unsigned, acc, word0, word1, word2, _) in enumerate(points.tolist()):
        params = RequantParams.from_words(word0, word1, word2, unsigned=bool(unsigned))
        results[at] = requant(RequantMode(mode), acc, params)
    return results


def run_exhaustion(name: str, points: int, seed: int) -> dict[str, Any]:
    """What was tried on a configuration as JSON; ``failures`` says what differed."""
    from openvta.sim.exhaustion.multiplier import run_pairs
    from openvta.sim.exhaustion.requant import run_requant

    config = configuration(name)
    started = time.monotonic()
    pairs = run_pairs(config, seed=seed, progress=console.say)
    requantized = run_requant(config, points, expected, seed=seed, progress=console.say)
    failures = [*pairs.failures, *requantized.failures]
    return {
        "config": name, "config_hash": hash_text(config), "label": config.label, "seeds": [seed],
        "seconds": round(time.monotonic() - started, 1), "mismatches": len(failures), "failures": failures,
        "pairs": pairs.pairs, "cells": pairs.cells, "products": pairs.products,
        "grid": requantized.grid, "points": requantized.random, "against_spec": requantized.against_spec,
    }  # fmt: skip


def line(result: dict[str, Any]) -> str:
    """A result in a line."""
    return (
        f"exhaustion on {result['config']} ({result['label']}), seed {result['seeds'][0]}: {result['pairs']} pairs on each of "
        f"{result['cells']} multiplier cells ({result['products']} products); requantizer: {result['grid']} grid points, "
        f"{result['points']} random points, {result['against_spec']} of both against openvta.spec.arith; {result['mismatches']} "
        f"failures in {result['seconds']} s"
    )
