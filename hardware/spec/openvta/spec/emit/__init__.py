# SPDX-License-Identifier: Apache-2.0
"""Views of the specification for readers that are not Python: resolved JSON, a C++ header, Markdown pages."""

from __future__ import annotations

from openvta.spec.config import HardwareConfig
from openvta.spec.emit.cpp_header import cpp_header
from openvta.spec.emit.markdown import isa_page, registers_page
from openvta.spec.emit.resolved_json import resolved_json

__all__ = ["cpp_header", "isa_page", "registers_page", "resolved_json", "views"]


def views(config: HardwareConfig) -> dict[str, str]:
    """Every view of a configuration: file name to text."""
    return {
        "resolved.json": resolved_json(config),
        "openvta_spec.hpp": cpp_header(config),
        "isa.md": isa_page(config),
        "registers.md": registers_page(),
    }
