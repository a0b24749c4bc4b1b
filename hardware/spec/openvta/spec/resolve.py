# SPDX-License-Identifier: Apache-2.0
"""The resolved view: one canonical JSON of a configuration with every layout, register and number, and its hash."""

from __future__ import annotations

import hashlib
import json
from enum import IntEnum
from functools import lru_cache

from openvta.spec import isa as isa_module
from openvta.spec import registers
from openvta.spec.config import HardwareConfig
from openvta.spec.insn import isa_of
from openvta.spec.layout import Layout

SCHEMA = 1


def _layout(layout: Layout) -> dict[str, object]:
    return {
        "bits": layout.bits,
        "fields": [
            {"name": f.name, "lo": f.lo, "width": f.width, "signed": f.signed, "doc": f.doc} for f in layout.fields
        ],
        "ignored": [list(item) for item in layout.ignored],
    }


def _enum(kind: type[IntEnum]) -> dict[str, int]:
    return {member.name: int(member) for member in kind}


def _derived(c: HardwareConfig) -> dict[str, object]:
    names = (
        "out_bits", "lanes", "uop_bytes", "inp_bytes", "wgt_bytes", "acc_bytes", "acc8_bytes", "out_bytes",
        "uop_depth", "inp_depth", "wgt_depth", "acc_depth",
        "uop_index_bits", "inp_index_bits", "wgt_index_bits", "acc_index_bits",
        "axi_data_bytes", "macs_per_cycle", "label",
    )  # fmt: skip
    return {name: getattr(c, name) for name in names}


def _body(config: HardwareConfig) -> dict[str, object]:
    tables = isa_of(config)
    return {
        "schema": SCHEMA,
        "isa_version": isa_module.ISA_VERSION,
        "knobs": config.knobs(),
        "derived": _derived(config),
        "constants": {
            "insn_bytes": isa_module.INSN_BYTES,
            "loop_bits": isa_module.LOOP_BITS,
            "shift_max": isa_module.SHIFT_MAX,
            "id_magic": registers.ID_MAGIC,
            "register_space_bytes": registers.REGISTER_SPACE_BYTES,
        },
        "enums": {
            kind.__name__: _enum(kind)
            for kind in (
                isa_module.Opcode,
                isa_module.MemId,
                isa_module.AluOpcode,
                isa_module.RequantMode,
                isa_module.Unit,
                isa_module.Queue,
                isa_module.Cause,
            )
        },
        "layouts": {layout.name: _layout(layout) for layout in (*tables.layouts(), tables.uop)},
        "features": {name: registers.FEATURE_BITS[name] for name in config.extensions},
        "registers": [
            {"name": r.name, "offset": r.offset, "access": r.access, "reset": r.reset, "doc": r.doc}
            for r in registers.REGISTERS
        ],
        "register_layouts": {
            layout.name: _layout(layout) for layout in (registers.CONTROL, registers.STATUS, registers.ERROR)
        },
        "counters": [name for name, _ in registers.COUNTERS],
    }


def _without_docs(value: object) -> object:
    if isinstance(value, dict):
        return {key: _without_docs(item) for key, item in value.items() if key != "doc"}
    if isinstance(value, list):
        return [_without_docs(item) for item in value]
    return value


def canonical_json(value: object) -> str:
    """JSON with sorted keys and no free choice: equal values give equal bytes."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


@lru_cache(maxsize=64)
def config_hash(config: HardwareConfig) -> int:
    """64-bit hash of everything that decides how hardware reads a stream (name and doc texts are left out)."""
    digest = hashlib.sha256(canonical_json(_without_docs(_body(config))).encode()).digest()
    return int.from_bytes(digest[:8], "little")


def hash_text(config: HardwareConfig) -> str:
    """The hash as 16 hex digits."""
    return f"{config_hash(config):016x}"


def resolve(config: HardwareConfig) -> dict[str, object]:
    """The resolved configuration as JSON-ready values, with ``name`` and ``hash`` (16 hex digits)."""
    return {**_body(config), "name": config.name, "hash": hash_text(config)}


def feature_word(config: HardwareConfig) -> int:
    """The FEATURES register."""
    word = 0
    for name in config.extensions:
        word |= 1 << registers.FEATURE_BITS[name]
    return word
