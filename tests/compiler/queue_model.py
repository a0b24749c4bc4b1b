# SPDX-License-Identifier: Apache-2.0
"""A small model of fetch, queues and tokens that runs a program in a random interleaving and watches for faults.

It shares nothing with the compiler: it reads the decoded instructions only.
"""

from __future__ import annotations

import random

from openvta.spec.config import HardwareConfig
from openvta.spec.insn import Insn
from openvta.spec.isa import Opcode, Queue, Unit, pops_and_pushes

UNITS = (Unit.LOAD, Unit.COMPUTE, Unit.STORE)


def run_interleaved(program: list[Insn], config: HardwareConfig, seed: int) -> int:
    """Run to the end with units finishing in random order; return the most tokens any queue held.

    Raises:
        AssertionError: a deadlock, a push beyond the token depth, or a token left over.
    """
    rng = random.Random(seed)
    queues: dict[Unit, list[int]] = {unit: [] for unit in UNITS}
    running: dict[Unit, int] = {}
    tokens = dict.fromkeys(Queue, 0)
    fetched, most = 0, 0
    while True:
        while fetched < len(program) and len(queues[program[fetched].unit]) < config.queue_depth:
            queues[program[fetched].unit].append(fetched)
            fetched += 1
        choices = [("end", unit) for unit in running]
        for unit in UNITS:
            if unit in running or not queues[unit]:
                continue
            insn = program[queues[unit][0]]
            legal = pops_and_pushes(unit)
            waits = [legal[flag] for flag in ("pop_prev", "pop_next") if insn[flag]]
            quiet = not running and fetched == len(program) and sum(map(len, queues.values())) == 1
            if all(tokens[queue] for queue in waits) and (insn.opcode is not Opcode.FINISH or quiet):
                choices.append(("start", unit))
        if not choices:
            break
        what, unit = rng.choice(choices)
        legal = pops_and_pushes(unit)
        if what == "start":
            running[unit] = queues[unit].pop(0)
            for flag in ("pop_prev", "pop_next"):
                if program[running[unit]][flag]:
                    tokens[legal[flag]] -= 1
            continue
        insn = program[running.pop(unit)]
        for flag in ("push_prev", "push_next"):
            if insn[flag]:
                tokens[legal[flag]] += 1
                most = max(most, tokens[legal[flag]])
                assert tokens[legal[flag]] <= config.token_depth, f"token overflow in {legal[flag].name}"
    left = {unit.name: len(queue) for unit, queue in queues.items() if queue}
    assert fetched == len(program) and not left, f"deadlock: fetched {fetched} of {len(program)}, waiting {left}"
    assert not any(tokens.values()), f"tokens left over: {tokens}"
    return most
