# SPDX-License-Identifier: Apache-2.0
"""The source of truth: configuration, instruction set, registers, program and bundle formats, arithmetic."""

from __future__ import annotations

from openvta.spec.config import HardwareConfig, config_from_mapping, load_config, named_configs
from openvta.spec.errors import ConfigError, EncodingError, FormatError, SpecError
from openvta.spec.insn import Insn, decode, encode, make, static_fault
from openvta.spec.isa import AluOpcode, Cause, MemId, Opcode, Queue, RequantMode, Unit
from openvta.spec.program import Program
from openvta.spec.resolve import config_hash, hash_text, resolve

__all__ = [
    "AluOpcode",
    "Cause",
    "ConfigError",
    "EncodingError",
    "FormatError",
    "HardwareConfig",
    "Insn",
    "MemId",
    "Opcode",
    "Program",
    "Queue",
    "RequantMode",
    "SpecError",
    "Unit",
    "config_from_mapping",
    "config_hash",
    "decode",
    "encode",
    "hash_text",
    "load_config",
    "make",
    "named_configs",
    "resolve",
    "static_fault",
]
