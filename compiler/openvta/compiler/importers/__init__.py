# SPDX-License-Identifier: Apache-2.0
"""Importers: model files to the typed integer graph."""

from __future__ import annotations

from openvta.compiler.importers._convert import HostPart
from openvta.compiler.importers.limits import Limits
from openvta.compiler.importers.onnx import ImportResult, import_onnx

__all__ = ["HostPart", "ImportResult", "Limits", "import_onnx"]
