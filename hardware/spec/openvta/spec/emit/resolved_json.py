# SPDX-License-Identifier: Apache-2.0
"""The resolved configuration as an indented JSON file, the same bytes for the same configuration."""

from __future__ import annotations

import json

from openvta.spec.config import HardwareConfig
from openvta.spec.resolve import resolve


def resolved_json(config: HardwareConfig) -> str:
    """The text, with a final newline."""
    return json.dumps(resolve(config), indent=1, sort_keys=True, ensure_ascii=True) + "\n"
