# SPDX-License-Identifier: Apache-2.0
"""Errors of the compiler: every message names the node, the field, the value and the limit."""

from __future__ import annotations


def printable(text: object, limit: int = 120) -> str:
    """Return ``text`` on one line: control and non-ASCII characters escaped, cut to ``limit`` characters."""
    flat = str(text).encode("unicode_escape").decode("ascii")
    return flat if len(flat) <= limit else flat[: limit - 3] + "..."


class CompileError(ValueError):
    """Base of every error the compiler raises on bad input."""


class ModelError(CompileError):
    """A model file that is damaged, unsupported or inconsistent.

    ``node`` is the node, tensor or file the fault is in; ``field`` the attribute or property; ``value`` what was
    found; ``limit`` what is allowed or what to do.
    """

    def __init__(self, node: str, field: str, value: object, limit: str) -> None:
        super().__init__(f"{printable(node)}: {field} = {printable(value)}: {limit}")
        self.node = node
        self.field = field
        self.value = value
        self.limit = limit


class GraphError(CompileError):
    """An integer graph that breaks its own rules: a fault of a pass, or of a text form edited by hand."""

    def __init__(self, node: str, field: str, value: object, limit: str) -> None:
        super().__init__(f"graph: {printable(node)}: {field} = {printable(value)}: {limit}")
        self.node = node
        self.field = field
        self.value = value
        self.limit = limit
