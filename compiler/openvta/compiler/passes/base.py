# SPDX-License-Identifier: Apache-2.0
"""Passes over the integer graph, and pipelines of them.

A pass is a frozen dataclass whose fields are its options; ``run`` returns a new graph with the same meaning (unless the
pass says otherwise). A pipeline prints as ``fold_clip;lower_to_signed`` or, with options, ``name(option=value)`` and
is read back by ``parse_pipeline``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import ClassVar

from openvta.compiler.errors import CompileError
from openvta.compiler.graph import Graph


@dataclass(frozen=True)
class Pass:
    """Base of every pass."""

    label: ClassVar[str] = ""
    """Name in a pipeline's text."""

    def run(self, graph: Graph) -> Graph:
        """Return the rewritten graph."""
        raise NotImplementedError

    def __str__(self) -> str:
        options = ", ".join(f"{f.name}={json.dumps(getattr(self, f.name))}" for f in fields(self))
        return f"{self.label}({options})" if options else self.label


@dataclass(frozen=True)
class Pipeline:
    """Passes in order."""

    passes: tuple[Pass, ...]

    def run(self, graph: Graph) -> Graph:
        """Run every pass and verify the graph after each; GraphError names what a pass broke."""
        for step in self.passes:
            graph = step.run(graph).verify()
        return graph

    def __str__(self) -> str:
        return ";".join(str(step) for step in self.passes)


ENTRY = re.compile(r"\s*([a-z_]+)\s*(?:\((.*)\))?\s*", re.DOTALL)


def parse_pipeline(text: str, known: Mapping[str, type[Pass]]) -> Pipeline:
    """Read a pipeline's text.

    Raises:
        CompileError: an unknown pass or option, or a value that is not JSON.
    """
    found = []
    for entry in (part for part in text.split(";") if part.strip()):
        match = ENTRY.fullmatch(entry)
        if match is None or match.group(1) not in known:
            raise CompileError(f"pipeline: no pass '{entry.strip()}': known are {', '.join(sorted(known))}")
        kind = known[match.group(1)]
        names = {f.name for f in fields(kind)}
        options = {}
        for item in (part for part in (match.group(2) or "").split(",") if part.strip()):
            key, _, value = item.partition("=")
            if key.strip() not in names:
                raise CompileError(f"pipeline: {kind.label} has no option '{key.strip()}': {', '.join(sorted(names))}")
            try:
                options[key.strip()] = json.loads(value)
            except ValueError:
                raise CompileError(f"pipeline: {kind.label}: {key.strip()} = {value.strip()}: not a value") from None
        found.append(kind(**options))
    return Pipeline(tuple(found))
