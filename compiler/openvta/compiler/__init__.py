# SPDX-License-Identifier: Apache-2.0
"""The compiler: quantized models in, instruction streams out."""

from __future__ import annotations

from openvta.compiler.errors import CompileError, GraphError, ModelError
from openvta.compiler.pipeline import Compiled, compile, compile_graph, compile_model
from openvta.compiler.placement import PlacementError

__all__ = [
    "CompileError",
    "Compiled",
    "GraphError",
    "ModelError",
    "PlacementError",
    "compile",
    "compile_graph",
    "compile_model",
]
