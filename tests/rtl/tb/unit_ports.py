# SPDX-License-Identifier: Apache-2.0
"""One unit of a bench that holds several, seen as if it were the design under test."""

from __future__ import annotations

from typing import Any


class Unit:
    """Ports ``io_x`` of the unit are ports ``<prefix>_x`` of the bench; clock and reset are shared."""

    def __init__(self, dut: Any, prefix: str) -> None:
        self._dut, self._prefix = dut, prefix

    def __getattr__(self, name: str) -> Any:
        return getattr(self._dut, f"{self._prefix}_{name[3:]}" if name.startswith("io_") else name)
