# SPDX-License-Identifier: Apache-2.0
"""From a harness and the elaborated design to circuits: as it is, and with mutants behind an input."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from openvta.sim.cosim.build import ElaboratedDesign
from openvta.sim.formal import aig, yosys
from openvta.sim.formal.aig import Aig
from openvta.sim.formal.errors import FormalError
from openvta.sim.formal.harness import Harness
from openvta.sim.formal.spec_header import macros

SELECT = "mutant_select"
SELECT_BITS = 8
_DESIGN = "design.sv"


@dataclass(frozen=True)
class Mutant:
    """One change of the netlist: a yosys ``mutate`` command without its name, and where it is in the SystemVerilog."""

    command: str
    source: str

    @property
    def text(self) -> str:
        """Kind of change and place, for people."""
        words = self.command.split()
        options = dict(zip(words[::2], words[1::2], strict=False))
        wire = options.get("-wire", options.get("-cell", "?"))
        return f"{options['-mode']} at {wire}[{options.get('-wirebit', options['-portbit'])}] ({self.source})"


def prepare(harness: Harness, design: ElaboratedDesign, folder: Path) -> None:
    """Put what yosys reads into ``folder``, and check that the module under test is in the design."""
    module = harness.module(design.config)
    text = "".join(path.read_text("utf-8") for path in design.files)
    if f"\nmodule {module}(" not in text:
        raise FormalError(f"{harness.path.name}: the design has no module {module}; change the line '// dut:'")
    (folder / _DESIGN).write_text(text, "utf-8")
    (folder / "spec.svh").write_text(macros(design.config) + f"`define DUT {module}\n", "utf-8")
    (folder / "harness.sv").write_text(harness.source, "utf-8")


def _flat(harness: Harness) -> list[str]:
    commands = [f"read_verilog -sv {_DESIGN}"]
    commands += [f"blackbox {name}" for name in harness.free]
    commands += ["read_verilog -sv spec.svh harness.sv", "hierarchy -check -top harness", "proc", "flatten"]
    if harness.free:
        commands.append("cutpoint -blackbox")
    commands += [f"connect -set {wire} {signal}" for wire, signal in harness.internal]
    # Unknown values become inputs before anything may choose one.
    return [*commands, "setundef -undriven -anyseq", "opt_clean", "memory_map", "opt -fast", "async2sync"]


_TO_GATES = [
    "setundef -undriven -anyseq",
    "techmap",
    "opt -fast",
    "dffunmap",
    "opt_clean",
    "setundef -undriven -anyseq",
    "aigmap",
    "opt_clean",
]


def build(harness: Harness, folder: Path) -> Aig:
    """The circuit of a prepared harness.

    Raises:
        FormalError: yosys does not understand it, or an internal signal does not exist.
    """
    commands = [*_flat(harness), *_TO_GATES, "write_aiger -ascii -symbols circuit.aag"]
    yosys.run(commands, folder, makes=["circuit.aag"], what=harness.path.name)
    return aig.read(folder / "circuit.aag")


def build_mutated(harness: Harness, folder: Path, count: int, seed: int) -> tuple[Aig, list[Mutant]]:
    """The circuit with up to ``count`` mutants of the design (never of the harness), chosen by the input ``SELECT`` = 1, 2, ..."""
    if not 1 <= count < 1 << SELECT_BITS:
        raise FormalError(f"{count} mutants in a circuit: must be 1 to {(1 << SELECT_BITS) - 1}")
    commands = [*_flat(harness), "write_rtlil flat.il", f"mutate -list {6 * count} -seed {seed} -o mutants.txt"]
    yosys.run(commands, folder, makes=["flat.il", "mutants.txt"], what=f"mutants for {harness.path.name}")
    mutants = _of_design((folder / "mutants.txt").read_text("utf-8"))[:count]
    if not mutants:
        raise FormalError(f"{harness.path.name}: no mutants in {harness.dut}")
    apply = [f"mutate -ctrl {SELECT} {SELECT_BITS} {k + 1} {mutant.command}" for k, mutant in enumerate(mutants)]
    commands = ["read_rtlil flat.il", *apply, *_TO_GATES, "write_aiger -ascii -symbols mutated.aag"]
    yosys.run(commands, folder, makes=["mutated.aag"], what=f"mutants for {harness.path.name}")
    return aig.read(folder / "mutated.aag"), mutants


def _of_design(text: str) -> list[Mutant]:
    found = []
    for line in text.splitlines():
        command = line.removeprefix("mutate ")
        sources = [part.split()[0] for part in command.split("-src ")[1:]]
        inside = [source for source in sources if source.startswith(_DESIGN)]
        if inside and len(inside) == len(sources):
            found.append(Mutant(command, inside[0]))
    return found
