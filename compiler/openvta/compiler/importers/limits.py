# SPDX-License-Identifier: Apache-2.0
"""What a model file may be at most, so that a hostile or broken file ends in one clear message."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Limits of a model; raise them where a model is trusted and larger."""

    file_bytes: int = 1 << 30
    """Size of the file."""
    nodes: int = 20_000
    """Number of nodes."""
    tensor_values: int = 1 << 28
    """Values of one tensor."""
    dimensions: int = 8
    """Dimensions of one tensor."""
    opset_low: int = 10
    """Oldest operator set of the default domain (the first with QuantizeLinear)."""
    opset_high: int = 25
    """Newest operator set of the default domain."""
