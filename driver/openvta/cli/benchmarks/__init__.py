# SPDX-License-Identifier: Apache-2.0
"""Benchmarks, one file each. A benchmark whose outputs are wrong ends with an error, never with a figure."""

from __future__ import annotations


class BenchmarkError(RuntimeError):
    """A benchmark that did not compute what it should have."""
