# SPDX-License-Identifier: Apache-2.0
"""From logical arrays to the bytes the accelerator reads: activations, weight tiles, requantization parameters."""

from __future__ import annotations

from openvta.compiler.pack.parameters import ParameterTable, parameter_table
from openvta.compiler.pack.weights import TileBank, dense_bank, diagonal_tile, grouped_bank, uniform_bank

__all__ = [
    "ParameterTable",
    "TileBank",
    "dense_bank",
    "diagonal_tile",
    "grouped_bank",
    "parameter_table",
    "uniform_bank",
]
