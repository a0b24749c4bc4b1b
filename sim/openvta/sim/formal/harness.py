# SPDX-License-Identifier: Apache-2.0
"""A harness: SystemVerilog around one module of the design, whose outputs are its properties.

The module ``harness`` has inputs that may take any value in any cycle, and one-bit outputs:

* ``p_NAME``: the property NAME, true in every cycle of every run;
* ``c_NAME``: its interesting case happens in this cycle (a run that reaches it is the property's cover trace);
* ``m_NAME``: an assumption on the inputs, true in every cycle;
* ``i_NAME``: a fact that helps a proof, itself proved.

The comment lines before the module say what cannot be said in Verilog::

    // dut: TokenQueue_{token_depth}      the module of the design (configuration knobs in braces)
    // free: ram_* Fetch                  modules inside it that may answer anything (proofs hold whatever they do)
    // internal: v_count = dut.count, ... an undriven wire of the harness becomes a signal inside the design
    // depth: 20                          cycles searched for covers and killed mutants
    // steps: 2                           cycles of an induction step
    // mutants: 60                        mutants tried at a time (at most 255), up to four times
    // p_NAME: text                       what the property says (so for m_NAME and i_NAME)
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from openvta.sim.cosim.toolchain import repository
from openvta.sim.formal.errors import FormalError
from openvta.spec.config import HardwareConfig

_KEYS = ("dut", "free", "internal", "depth", "steps", "mutants")
_LINE = re.compile(r"// ([a-z][a-z0-9_]*): (.*)")


@dataclass(frozen=True)
class Harness:
    """A harness file, read. ``texts`` has the properties in order."""

    name: str
    path: Path
    source: str
    dut: str
    free: tuple[str, ...]
    internal: tuple[tuple[str, str], ...]
    depth: int
    steps: int
    mutants: int
    texts: dict[str, str]

    def module(self, config: HardwareConfig) -> str:
        """Name of the module under test in a configuration."""
        return self.dut.format(**{name: getattr(config, name) for name in re.findall(r"\{(\w+)\}", self.dut)})


def folder() -> Path:
    """Where the harnesses are."""
    return repository() / "hardware" / "formal"


def read(path: Path) -> Harness:
    """A harness file.

    Raises:
        FormalError: a line that is not understood, or properties without text or cover.
    """
    source = path.read_text("utf-8")
    head, _, body = source.partition("\nmodule harness")
    single: dict[str, str] = {}
    internal: list[tuple[str, str]] = []
    texts: dict[str, str] = {}
    for line in head.splitlines():
        found = _LINE.fullmatch(line)
        if found is None or line.startswith("// SPDX"):
            continue
        key, value = found.groups()
        if key.startswith("p_"):
            texts[key[2:]] = value
        elif key.startswith(("i_", "m_")):
            continue
        elif key == "internal":
            for pair in value.split(", "):
                wire, _, signal = pair.partition(" = ")
                internal.append((wire.strip(), signal.strip()))
        elif key in _KEYS:
            single[key] = value
        else:
            raise FormalError(f"{path.name}: unknown key '{key}'; keys are {', '.join(_KEYS)} and p_NAME")
    if "dut" not in single or not body:
        raise FormalError(f"{path.name}: needs a line '// dut: MODULE' and a module named harness")
    for kind in ("p", "c"):
        declared = set(re.findall(rf"output\s+(?:wire\s+)?{kind}_(\w+)", body))
        if declared != set(texts):
            odd = sorted(declared ^ set(texts))
            raise FormalError(
                f"{path.name}: {', '.join(f'{kind}_{name}' for name in odd)}: every property needs a line '// p_NAME: text', "
                "an output p_NAME and an output c_NAME"
            )
    return Harness(
        name=path.stem,
        path=path,
        source=source,
        dut=single["dut"],
        free=tuple(single.get("free", "").split()),
        internal=tuple(internal),
        depth=int(single.get("depth", "20")),
        steps=int(single.get("steps", "2")),
        mutants=int(single.get("mutants", "60")),
        texts=texts,
    )


def all_harnesses() -> list[Harness]:
    """Every harness of the project, by name."""
    return [read(path) for path in sorted(folder().glob("*.sv"))]
