# SPDX-License-Identifier: Apache-2.0
"""Proofs for every run of any length: k-induction over all properties together, else property directed reachability.

What the second engine claims is not believed: the invariant it writes is checked by another solver.
"""

from __future__ import annotations

import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from openvta.sim.formal import aig, yosys
from openvta.sim.formal.aig import Aig
from openvta.sim.formal.errors import FormalError
from openvta.sim.formal.unroll import Unrolling

CHECKER = "glucose4"
PROVED = ("induction", "reachability")


@dataclass(frozen=True)
class Proof:
    """Outcome for one property: ``method`` is "induction", "reachability" or, where it does not hold, "counterexample".

    ``depth``: cycles of the induction step, clauses of the invariant, or cycles of the counterexample. None: not decided.
    """

    name: str
    method: str | None
    depth: int
    seconds: float

    @property
    def proved(self) -> bool:
        """Whether the property holds in every run."""
        return self.method in PROVED


def _kind(circuit: Aig, prefix: str) -> dict[str, int]:
    return {name: literal for name, literal in circuit.outputs.items() if name.startswith(prefix)}


def prove(circuit: Aig, *, steps: int, depth: int, seconds: float, folder: Path) -> list[Proof]:
    """Prove every ``p_`` and ``i_`` output of a circuit under its ``m_`` outputs; ``seconds`` bounds one reachability run."""
    assumed = list(_kind(circuit, "m_").values())
    goals = {**_kind(circuit, "p_"), **_kind(circuit, "i_")}
    circuit = circuit.cone([*assumed, *goals.values()])
    proofs: dict[str, Proof] = {}
    started = time.monotonic()
    for name, frame in _refute(circuit, goals, assumed, steps).items():
        proofs[name] = Proof(name, "counterexample", frame + 1, time.monotonic() - started)
    left = {name: literal for name, literal in goals.items() if name not in proofs}
    done: dict[str, int] = {}
    for k in range(1, steps + 1):
        started = time.monotonic()
        found = _induct(circuit, {n: lit for n, lit in left.items() if n not in done}, assumed, list(done.values()), k)
        for name in found:
            proofs[name] = Proof(name, "induction", k, (time.monotonic() - started) / len(found))
            done[name] = left[name]
    for name, literal in left.items():
        if name not in done:
            proof = _reach(circuit, name, literal, [*assumed, *done.values()], seconds, folder)
            if proof.proved:
                done[name] = literal
            else:
                late = _refute(circuit, {name: literal}, assumed, depth)
                if late:
                    proof = Proof(name, "counterexample", late[name] + 1, proof.seconds)
            proofs[name] = proof
    return [proofs[name] for name in goals]


def refuted(circuit: Aig, *, depth: int) -> dict[str, int]:
    """Properties that fail within ``depth`` cycles of the start, with the cycle (the first is 0)."""
    return _refute(circuit, _kind(circuit, "p_"), list(_kind(circuit, "m_").values()), depth)


def _refute(circuit: Aig, goals: dict[str, int], assumed: list[int], depth: int) -> dict[str, int]:
    """Properties that fail within ``depth`` cycles of the start, with the cycle."""
    failed: dict[str, int] = {}
    with Unrolling(circuit, initial=True) as runs:
        for frame in range(depth):
            for literal in assumed:
                runs.add([runs.at(frame, literal)])
            while True:
                open_ = [name for name in goals if name not in failed]
                if not open_ or not runs.solve([runs.any_of([-runs.at(frame, goals[name]) for name in open_])]):
                    break
                values = runs.values([runs.at(frame, goals[name]) for name in open_])
                failed.update({name: frame for name, value in zip(open_, values, strict=True) if not value})
    return failed


def _induct(circuit: Aig, goals: dict[str, int], assumed: list[int], known: list[int], k: int) -> list[str]:
    """The largest set of goals that, all holding for ``k`` cycles, hold in the next (found by dropping those that do not)."""
    keep = dict(goals)
    with Unrolling(circuit, initial=False) as step:
        guards = {name: step.fresh() for name in keep}
        for frame in range(k + 1):
            for literal in [*assumed, *known]:
                step.add([step.at(frame, literal)])
            if frame < k:
                for name, literal in keep.items():
                    step.add([-guards[name], step.at(frame, literal)])
        while keep:
            some = step.any_of([-step.at(k, literal) for literal in keep.values()])
            if not step.solve([some, *(guards[name] for name in keep)]):
                break
            values = step.values([step.at(k, literal) for literal in keep.values()])
            keep = {name: lit for (name, lit), value in zip(list(keep.items()), values, strict=True) if value}
    return list(keep)


def _reach(circuit: Aig, name: str, literal: int, assumed: list[int], seconds: float, folder: Path) -> Proof:
    started = time.monotonic()
    one = aig.single(circuit, literal ^ 1, assumed)
    aig.write_binary(one, folder / "one.aig")
    invariant = folder / "invariant.pla"
    invariant.unlink(missing_ok=True)
    engine = str(yosys.require() / "yosys-abc")
    command = [engine, "-q", f"read one.aig; pdr -T {max(1, int(seconds))} -d -I {invariant.name}"]
    try:
        subprocess.run(
            command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            timeout=seconds + 30, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return Proof(name, None, 0, time.monotonic() - started)
    cubes = read_invariant(invariant.read_text("utf-8")) if invariant.is_file() else None
    held = cubes is not None and certified(one, cubes)
    return Proof(name, "reachability" if held else None, len(cubes or ()), time.monotonic() - started)


def read_invariant(text: str) -> list[list[tuple[int, bool]]]:
    """Cubes of states that are never reached, as (latch, value), from the engine's PLA file.

    Raises:
        FormalError: the file is of another kind.
    """
    latches: list[int] = []
    cubes = []
    for line in text.splitlines():
        words = line.split()
        if words[:1] == [".ilb"]:
            latches = [int(word.removeprefix("lo")) for word in words[1:]]
        elif len(words) == 2 and set(words[0]) <= set("01-"):
            cubes.append([(latches[k], bit == "1") for k, bit in enumerate(words[0]) if bit != "-"])
    if cubes and not latches:
        raise FormalError("the engine's invariant names no latches")
    return cubes


def certified(circuit: Aig, cubes: list[list[tuple[int, bool]]], *, solver: str = CHECKER) -> bool:
    """Whether "in none of the cubes" holds in the all-zero state, is kept by every step, and excludes the output "bad"."""
    if any(not any(value for _, value in cube) for cube in cubes):
        return False
    with Unrolling(circuit, initial=False, solver=solver) as step:

        def clause(frame: int, cube: list[tuple[int, bool]]) -> list[int]:
            literals = [step.at(frame, circuit.latches[number].literal) for number, _ in cube]
            return [-lit if value else lit for lit, (_, value) in zip(literals, cube, strict=True)]

        for cube in cubes:
            step.add(clause(0, cube))
        if step.solve([step.at(0, circuit.outputs["bad"])]):
            return False
        return not any(step.solve([-lit for lit in clause(1, cube)]) for cube in cubes)
