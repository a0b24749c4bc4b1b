# SPDX-License-Identifier: Apache-2.0
"""Errors of co-simulation."""

from __future__ import annotations


class CosimError(RuntimeError):
    """Base of every co-simulation error."""


class ToolMissing(CosimError):
    """A tool that is needed is not on this machine."""

    def __init__(self, tool: str, needed_for: str, how: str) -> None:
        super().__init__(f"{tool} not found: needed {needed_for}; {how}")
        self.tool = tool


class BuildFailed(CosimError):
    """An outer tool failed; the message ends with the tail of its own output."""


class SimulationFailed(CosimError):
    """The simulator ended unexpectedly or did not answer in time."""
