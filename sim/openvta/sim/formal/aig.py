# SPDX-License-Identifier: Apache-2.0
"""And-inverter graphs: what yosys makes of a design, one bit a node.

A literal is twice a node's number, plus one where it is inverted; node 0 is the constant false.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from openvta.sim.formal.errors import FormalError


@dataclass(frozen=True)
class Latch:
    """A register bit: its literal, the literal of its next value, and its initial value (None: any)."""

    literal: int
    next: int
    initial: int | None
    name: str


@dataclass(frozen=True)
class Aig:
    """A sequential circuit. ``gates`` are (literal, operand, operand), operands before their users."""

    inputs: dict[str, int]
    latches: tuple[Latch, ...]
    gates: tuple[tuple[int, int, int], ...]
    outputs: dict[str, int]

    def cone(self, literals: Iterable[int]) -> Aig:
        """The circuit without the gates, latches and inputs that the literals do not depend on; outputs are kept by the caller."""
        operands = {gate[0] >> 1: (gate[1] >> 1, gate[2] >> 1) for gate in self.gates}
        following = {latch.literal >> 1: latch.next >> 1 for latch in self.latches}
        seen: set[int] = set()
        work = [literal >> 1 for literal in literals]
        while work:
            node = work.pop()
            if node in seen:
                continue
            seen.add(node)
            if node in operands:
                work.extend(operands[node])
            elif node in following:
                work.append(following[node])
        return Aig(
            {name: literal for name, literal in self.inputs.items() if literal >> 1 in seen},
            tuple(latch for latch in self.latches if latch.literal >> 1 in seen),
            tuple(gate for gate in self.gates if gate[0] >> 1 in seen),
            {name: literal for name, literal in self.outputs.items() if literal >> 1 in seen or literal < 2},
        )


def read(path: Path) -> Aig:
    """An ASCII AIGER file with a symbol for every input, latch and output.

    Raises:
        FormalError: the file is of another kind.
    """
    lines = path.read_text("utf-8").splitlines()
    header = lines[0].split() if lines else []
    if len(header) < 6 or header[0] != "aag":
        raise FormalError(f"{path}: not an ASCII AIGER file")
    n_inputs, n_latches, n_outputs, n_gates = map(int, header[2:6])
    at = 1
    inputs = [int(line) for line in lines[at : at + n_inputs]]
    at += n_inputs
    latches = [tuple(map(int, line.split())) for line in lines[at : at + n_latches]]
    at += n_latches
    outputs = [int(line) for line in lines[at : at + n_outputs]]
    at += n_outputs
    gates = [tuple(map(int, line.split())) for line in lines[at : at + n_gates]]
    at += n_gates
    names: dict[str, str] = {}
    for line in lines[at:]:
        if line == "c":
            break
        key, _, name = line.partition(" ")
        names[key] = name
    ordered = _ordered([(g[0], g[1], g[2]) for g in gates])
    return Aig(
        {names.get(f"i{k}", f"i{k}"): literal for k, literal in enumerate(inputs)},
        tuple(
            Latch(row[0], row[1], (row[2] if row[2] < 2 else None) if len(row) > 2 else 0, names.get(f"l{k}", f"l{k}"))
            for k, row in enumerate(latches)
        ),
        tuple(ordered),
        {names.get(f"o{k}", f"o{k}"): literal for k, literal in enumerate(outputs)},
    )


def _ordered(gates: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """Gates so that operands come before their users."""
    by_node = {gate[0] >> 1: gate for gate in gates}
    done: set[int] = set()
    result: list[tuple[int, int, int]] = []
    for root in by_node:
        stack = [root]
        while stack:
            node = stack[-1]
            if node in done:
                stack.pop()
                continue
            gate = by_node[node]
            waits = [op >> 1 for op in gate[1:] if op >> 1 in by_node and op >> 1 not in done]
            if waits:
                stack.extend(waits)
            else:
                done.add(node)
                result.append(gate)
                stack.pop()
    return result


def single(circuit: Aig, bad: int, constraints: Iterable[int]) -> Aig:
    """A circuit whose only output is ``bad`` while every constraint has held so far, and whose latches start with zero.

    Latches that start with one are stored inverted; those that start with any value read an input in the first cycle.
    """
    constraints = list(constraints)
    circuit = circuit.cone([bad, *constraints])
    free = [latch for latch in circuit.latches if latch.initial is None]
    writer = _Writer(len(circuit.inputs) + len(free))
    new = {0: 0}
    for k, literal in enumerate(circuit.inputs.values()):
        new[literal >> 1] = 2 * (k + 1)
    stored = [writer.latch() for _ in circuit.latches]
    running, failed = writer.latch(), writer.latch()
    fresh = {latch.literal: 2 * (len(circuit.inputs) + k + 1) for k, latch in enumerate(free)}
    for latch, literal in zip(circuit.latches, stored, strict=True):
        if latch.initial is None:
            new[latch.literal >> 1] = writer.choose(running, literal, fresh[latch.literal])
        else:
            new[latch.literal >> 1] = literal ^ latch.initial

    def of(literal: int) -> int:
        return new[literal >> 1] ^ (literal & 1)

    for gate, a, b in circuit.gates:
        new[gate >> 1] = writer.gate(of(a), of(b))
    held = 1
    for constraint in constraints:
        held = writer.gate(held, of(constraint))
    good = writer.gate(held, failed ^ 1)
    output = writer.gate(good, of(bad))
    following = [of(latch.next) ^ (latch.initial or 0) for latch in circuit.latches]
    names = [latch.name for latch in circuit.latches]
    latches = zip([*stored, running, failed], [*following, 1, good ^ 1], [*names, "running", "failed"], strict=True)
    return Aig(
        {f"i{k}": 2 * (k + 1) for k in range(writer.inputs)},
        tuple(Latch(literal, after, 0, name) for literal, after, name in latches),
        tuple((2 * (writer.inputs + writer.latches + k + 1), *pair) for k, pair in enumerate(writer.gates)),
        {"bad": output},
    )


def write_binary(circuit: Aig, path: Path) -> None:
    """Write a circuit of :func:`single` as binary AIGER, which wants nodes numbered inputs, latches, gates."""
    top = len(circuit.inputs) + len(circuit.latches) + len(circuit.gates)
    text = f"aig {top} {len(circuit.inputs)} {len(circuit.latches)} {len(circuit.outputs)} {len(circuit.gates)}\n"
    text += "".join(f"{latch.next}\n" for latch in circuit.latches)
    text += "".join(f"{literal}\n" for literal in circuit.outputs.values())
    data = bytearray(text.encode())
    for gate, a, b in circuit.gates:
        for delta in (gate - a, a - b):
            rest = delta
            while rest >= 128:
                data.append(rest & 127 | 128)
                rest >>= 7
            data.append(rest)
    path.write_bytes(bytes(data))


class _Writer:
    """Makes a circuit node by node: inputs, then latches, then gates."""

    def __init__(self, inputs: int) -> None:
        self.inputs = inputs
        self.latches = 0
        self.gates: list[tuple[int, int]] = []
        self.known: dict[tuple[int, int], int] = {}

    def latch(self) -> int:
        self.latches += 1
        return 2 * (self.inputs + self.latches)

    def gate(self, a: int, b: int) -> int:
        a, b = max(a, b), min(a, b)
        if b == 0 or a == b ^ 1:
            return 0
        if b == 1 or a == b:
            return a
        if (a, b) not in self.known:
            self.gates.append((a, b))
            self.known[a, b] = 2 * (self.inputs + self.latches + len(self.gates))
        return self.known[a, b]

    def choose(self, which: int, yes: int, no: int) -> int:
        return self.gate(self.gate(which, yes) ^ 1, self.gate(which ^ 1, no) ^ 1) ^ 1
