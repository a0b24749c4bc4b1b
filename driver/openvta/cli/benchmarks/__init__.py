# SPDX-License-Identifier: Apache-2.0
"""Benchmarks, one file each. A benchmark whose outputs are wrong ends with an error, never with a figure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


class BenchmarkError(RuntimeError):
    """A benchmark that did not compute what it should have."""


@dataclass(frozen=True)
class Figures:
    """What a benchmark measured: ``rows`` of a table, ``summary``, and ``details`` that only the JSON file gets."""

    rows: list[dict[str, Any]]
    summary: dict[str, Any]
    details: Mapping[str, Any] = field(default_factory=dict)
