# SPDX-License-Identifier: Apache-2.0
"""Tests of the decoder, inside the simulator."""

from __future__ import annotations

import os
import random
from collections import Counter
from typing import Any

import cocotb
import words
from cocotb.triggers import Timer

from openvta.sim.cosim.bfm.stream import value
from openvta.spec.config import HardwareConfig, load_config
from openvta.spec.insn import decode, static_fault
from openvta.spec.isa import Cause

RANDOM_WORDS = 12000


async def check(dut: Any, config: HardwareConfig, word: int, last: bool, seen: Counter[Cause]) -> None:
    """The decoder's answer for one word."""
    dut.io_word.value = word
    dut.io_last.value = int(last)
    await Timer(1, "ns")
    fault = static_fault(config, word, last=last)
    cause = Cause.NONE if fault is None else fault.cause
    seen[cause] += 1
    got = value(dut.io_cause)
    assert got == cause, f"word {word:#034x} last={last}: cause {got}, must be {cause.name} ({fault})"
    if fault is None:
        unit = decode(config, word).unit
        assert value(dut.io_unit) == unit, f"word {word:#034x}: unit {value(dut.io_unit)}, must be {unit.name}"


@cocotb.test()
async def directed(dut: Any) -> None:
    """Every rule from both sides."""
    config, seen = load_config(os.environ["OPENVTA_CONFIG"]), Counter[Cause]()
    for word in words.directed(config):
        for last in (False, True):
            await check(dut, config, word, last, seen)
    missing = {cause for cause in Cause if cause < Cause.TOKEN_OVERFLOW} - set(seen)
    assert not missing, f"no directed word shows {missing}"


@cocotb.test()
async def at_random(dut: Any) -> None:
    """Random words, random fields, and legal words with a few bits flipped."""
    config, seen = load_config(os.environ["OPENVTA_CONFIG"]), Counter[Cause]()
    rng = random.Random(int(os.environ["COCOTB_RANDOM_SEED"]))
    for number in range(RANDOM_WORDS):
        kind, last = number % 4, rng.random() < 0.2
        if kind == 0:
            word = rng.getrandbits(128)
        elif kind == 1:
            word = words.any_fields(config, rng)
        else:
            word = words.legal(config, rng, last=last)
            for _ in range(rng.randrange(3)):
                word ^= 1 << rng.randrange(128)
        await check(dut, config, word, last, seen)
    assert seen[Cause.NONE] > RANDOM_WORDS // 10, f"too few legal words: {seen}"
