# SPDX-License-Identifier: Apache-2.0
"""The compiler: quantized networks into bundles. `compile` is the way in."""

from __future__ import annotations

from openvta.compiler.errors import CompileError, ModelError
from openvta.compiler.pipeline import compile

__all__ = ["CompileError", "ModelError", "compile"]
