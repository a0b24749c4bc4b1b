# SPDX-License-Identifier: Apache-2.0
"""Planted faults: edits of the generated SystemVerilog, all in one build, each switched on by a number.

An edit is found by its text inside one module, white space aside. Text that is not there, or is there twice, is an error:
the list must follow the RTL.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from openvta.sim.cosim import cache
from openvta.sim.cosim.build import ElaboratedDesign
from openvta.sim.errors import SimError

PACKAGE = """package openvta_planted;
  int active = 0;
endpackage
"""
SWITCH = '  initial if (!$value$plusargs("planted=%d", openvta_planted::active)) openvta_planted::active = 0;\n'
TOP = "VtaTop"


class PlantError(SimError):
    """A fault that does not fit the RTL it is put into."""


@dataclass(frozen=True)
class Fault:
    """One edit.

    Attributes:
        name: short and unique.
        unit: the part of the core it is in.
        module: regular expression of the module's name.
        text: what is wrong with the core when it is on.
        old: SystemVerilog as firtool writes it.
        new: what replaces it; ``{on}`` stands for "this fault is switched on".
        known: a defect of the original accelerator of the same kind, in words; empty if there was none.
    """

    name: str
    unit: str
    module: str
    text: str
    old: str
    new: str
    known: str = ""


def plant(design: ElaboratedDesign, faults: Sequence[Fault]) -> ElaboratedDesign:
    """A design with every fault in it, all switched off; ``+planted=N`` switches on the N-th, counted from 1.

    Raises:
        PlantError: an edit that does not fit.
    """
    texts = [path.read_text("utf-8") for path in design.files]
    for number, fault in enumerate(faults, 1):
        texts = _edited(texts, fault, number)
    texts = [_switched(text) for text in texts]
    if not any(SWITCH in text for text in texts):
        raise PlantError(f"no module {TOP} in the design")
    key = cache.hash_text("planted", design.key, *texts)
    folder = cache.cache_folder() / "rtl" / f"planted-{design.config.label}-{key}"
    names = ["openvta_planted.sv", *(path.name for path in design.files)]
    with cache.entry(folder) as work:
        if work is not None:
            for name, text in zip(names, [PACKAGE, *texts], strict=True):
                (work / name).write_text(text, "utf-8")
    return ElaboratedDesign(design.config, design.top, folder, key, tuple(folder / n for n in names), design.extras)


def _pattern(text: str) -> re.Pattern[str]:
    """The text with any white space, or none, between its tokens."""
    tokens = re.findall(r"\w+|'\w+|\$\w+|[^\w\s]", text)
    return re.compile(r"\s*".join(re.escape(token) for token in tokens))


def _edited(texts: list[str], fault: Fault, number: int) -> list[str]:
    place = re.compile(rf"^module ({fault.module})\(.*?^endmodule", re.DOTALL | re.MULTILINE)
    found: list[tuple[int, int, int]] = []
    modules = 0
    for which, text in enumerate(texts):
        for module in place.finditer(text):
            modules += 1
            for match in _pattern(fault.old).finditer(module.group(0)):
                found.append((which, module.start() + match.start(), module.start() + match.end()))
    if len(found) != modules or not modules:
        raise PlantError(
            f"planted fault '{fault.name}': '{fault.old}' is {len(found)} times in {modules} modules '{fault.module}': "
            "must be once in each; write it as the RTL is now"
        )
    new = fault.new.format(on=f"(openvta_planted::active == {number})")
    for which, start, end in reversed(found):
        texts[which] = texts[which][:start] + new + texts[which][end:]
    return texts


def _switched(text: str) -> str:
    head = re.search(rf"^module {TOP}\(.*?\);\n", text, re.DOTALL | re.MULTILINE)
    return text if head is None else text[: head.end()] + SWITCH + text[head.end() :]
