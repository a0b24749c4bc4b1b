# SPDX-License-Identifier: Apache-2.0
"""The catalogue of conformance programs: importing this package fills it."""

from __future__ import annotations

from conformance.programs import alus, gemms, loads, requants, stores, tokens
from conformance.programs.builder import CATALOGUE, Case, build, names

__all__ = ["CATALOGUE", "Case", "alus", "build", "gemms", "loads", "names", "requants", "stores", "tokens"]
