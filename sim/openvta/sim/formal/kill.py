# SPDX-License-Identifier: Apache-2.0
"""Cover traces of properties, and the mutants that each property catches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from openvta.sim.formal.aig import Aig
from openvta.sim.formal.circuit import SELECT, SELECT_BITS
from openvta.sim.formal.errors import FormalError
from openvta.sim.formal.unroll import Unrolling


def covered(circuit: Aig, names: Sequence[str], depth: int) -> dict[str, int]:
    """For each property whose interesting case is reached within ``depth`` cycles: in which cycle, first is 1."""
    assumed = [literal for name, literal in circuit.outputs.items() if name.startswith("m_")]
    goals = {name: circuit.outputs[f"c_{name}"] for name in names}
    circuit = circuit.cone([*assumed, *goals.values()])
    reached: dict[str, int] = {}
    with Unrolling(circuit, initial=True) as runs:
        for frame in range(depth):
            for literal in assumed:
                runs.add([runs.at(frame, literal)])
            for name, literal in goals.items():
                if name not in reached and runs.solve([runs.at(frame, literal)]):
                    reached[name] = frame + 1
    return reached


@dataclass(frozen=True)
class Kills:
    """By property, the numbers of mutants for which it fails within the depth; and all of these together."""

    by_property: dict[str, tuple[int, ...]]
    killed: frozenset[int]


def kills(circuit: Aig, names: Sequence[str], mutants: int, depth: int, *, each: int = 3) -> Kills:
    """Search the mutated circuit for up to ``each`` mutants a property catches."""
    bits = [circuit.inputs.get(f"{SELECT}[{bit}]") for bit in range(SELECT_BITS)]
    if not any(bits):
        raise FormalError(f"the mutated circuit has no input {SELECT}")
    assumed = [literal for name, literal in circuit.outputs.items() if name.startswith("m_")]
    goals = {name: circuit.outputs[f"p_{name}"] for name in names}
    circuit = circuit.cone([*assumed, *goals.values()])
    with Unrolling(circuit, initial=True) as runs:
        select = [runs.at(0, bit) if bit is not None and bit in circuit.inputs.values() else None for bit in bits]
        # The mutant is chosen once for the whole run.
        for frame in range(1, depth):
            for bit, first in zip(bits, select, strict=True):
                if first is not None and bit is not None:
                    here = runs.at(frame, bit)
                    runs.add([-first, here])
                    runs.add([first, -here])
        for frame in range(depth):
            for literal in assumed:
                runs.add([runs.at(frame, literal)])

        def chosen(number: int) -> list[int] | None:
            """Literals that choose a mutant; None where no property depends on it."""
            if any(first is None and number >> k & 1 for k, first in enumerate(select)):
                return None
            return [lit if number >> k & 1 else -lit for k, lit in enumerate(select) if lit is not None]

        one_of = []
        for number in range(1, mutants + 1):
            choice = chosen(number)
            if choice is not None:
                is_this = runs.fresh()
                for lit in choice:
                    runs.add([-is_this, lit])
                one_of.append(is_this)
        runs.add(one_of)
        fails = {n: runs.any_of([-runs.at(frame, goal) for frame in range(depth)]) for n, goal in goals.items()}
        found: dict[str, tuple[int, ...]] = {}
        killed: set[int] = set()

        def current() -> int:
            literals = [lit for lit in select if lit is not None]
            places = [k for k, lit in enumerate(select) if lit is not None]
            return sum(value << k for k, value in zip(places, runs.values(literals), strict=True))

        for name, fail in fails.items():
            mine: list[int] = []
            guard = runs.fresh()
            while len(mine) < each and runs.solve([fail, guard]):
                number = current()
                mine.append(number)
                killed.add(number)
                runs.add([-guard, *(-lit for lit in chosen(number) or [])])
            found[name] = tuple(sorted(mine))
        return Kills(found, frozenset(killed))
