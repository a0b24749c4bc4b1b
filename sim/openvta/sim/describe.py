# SPDX-License-Identifier: Apache-2.0
"""Instructions as text, for messages."""

from __future__ import annotations

from openvta.spec import HardwareConfig
from openvta.spec.asm import disassemble_word


def describe(config: HardwareConfig, word: int) -> str:
    """One line that names the instruction and its fields."""
    return " ".join(disassemble_word(config, word).split())
