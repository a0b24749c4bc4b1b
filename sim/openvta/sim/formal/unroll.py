# SPDX-License-Identifier: Apache-2.0
"""A circuit over several cycles as clauses for a SAT solver."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import TracebackType

from openvta.sim.formal.aig import Aig
from openvta.sim.formal.errors import FormalError


def _solver(name: str) -> object:
    try:
        from pysat.solvers import Solver
    except ImportError as error:
        raise FormalError(
            "python-sat not found: needed for formal proofs; run 'make setup', or install 'openvta[formal]'"
        ) from error
    return Solver(name=name)


class Unrolling:
    """Frames 0, 1, ... of a circuit; ``initial`` says whether frame 0 is the reset state or any state.

    Literals of the solver are integers, negative where inverted. ``solver`` is a name that python-sat knows.
    """

    def __init__(self, circuit: Aig, *, initial: bool, solver: str = "cadical153") -> None:
        self.circuit = circuit
        self.initial = initial
        self._solver = _solver(solver)
        self._count = 1
        self.true = 1
        self.add([self.true])
        self._frames: list[dict[int, int]] = []

    def fresh(self) -> int:
        """A new variable."""
        self._count += 1
        return self._count

    def add(self, clause: Iterable[int]) -> None:
        """A clause that holds from now on."""
        self._solver.add_clause(list(clause))  # type: ignore[attr-defined]

    def at(self, frame: int, literal: int) -> int:
        """The solver's literal of a circuit literal in a frame (made if need be)."""
        while len(self._frames) <= frame:
            self._next_frame()
        value = self._frames[frame][literal >> 1]
        return -value if literal & 1 else value

    def _next_frame(self) -> None:
        values = {0: -self.true}
        for literal in self.circuit.inputs.values():
            values[literal >> 1] = self.fresh()
        before = self._frames[-1] if self._frames else None
        for latch in self.circuit.latches:
            if before is not None:
                value = before[latch.next >> 1]
                values[latch.literal >> 1] = -value if latch.next & 1 else value
            elif self.initial and latch.initial is not None:
                values[latch.literal >> 1] = self.true if latch.initial else -self.true
            else:
                values[latch.literal >> 1] = self.fresh()
        t = self.true
        for gate, a, b in self.circuit.gates:
            x = values[a >> 1] if not a & 1 else -values[a >> 1]
            y = values[b >> 1] if not b & 1 else -values[b >> 1]
            if x == -t or y == -t or x == -y:
                value = -t
            elif x in (t, y):
                value = y
            elif y == t:
                value = x
            else:
                value = self.fresh()
                self.add((-value, x))
                self.add((-value, y))
                self.add((value, -x, -y))
            values[gate >> 1] = value
        self._frames.append(values)

    def any_of(self, literals: Sequence[int]) -> int:
        """A variable that implies that one of the literals holds."""
        one = self.fresh()
        self.add([-one, *literals])
        return one

    def solve(self, assumptions: Sequence[int] = ()) -> bool:
        """Whether the clauses and the assumptions can hold together."""
        return bool(self._solver.solve(assumptions=list(assumptions)))  # type: ignore[attr-defined]

    def values(self, literals: Sequence[int]) -> list[bool]:
        """Values in the last solution."""
        model = self._solver.get_model()  # type: ignore[attr-defined]
        return [(model[abs(lit) - 1] > 0) == (lit > 0) if abs(lit) <= len(model) else lit < 0 for lit in literals]

    def close(self) -> None:
        """Free the solver."""
        self._solver.delete()  # type: ignore[attr-defined]

    def __enter__(self) -> Unrolling:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
