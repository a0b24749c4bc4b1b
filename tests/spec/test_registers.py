# SPDX-License-Identifier: Apache-2.0
"""The register map: the original's offsets, no two at one place, and everything inside the window."""

from __future__ import annotations

from openvta.spec import load_config
from openvta.spec.config import EXTENSIONS
from openvta.spec.isa import Cause, Queue, Unit
from openvta.spec.registers import COUNTERS, CYCLE_SPLIT, ERROR, FEATURE_BITS, OFFSETS, REGISTER_SPACE_BYTES, REGISTERS
from openvta.spec.resolve import feature_word


def test_originals_registers_come_first() -> None:
    names = (
        "CONTROL",
        "CYCLES",
        "INSN_COUNT",
        "INSN_BASE_LO",
        "INSN_BASE_HI",
        "UOP_BASE_LO",
        "UOP_BASE_HI",
        "INP_BASE_LO",
    )
    assert [OFFSETS[name] for name in names] == [0x00, 0x04, 0x08, 0x0C, 0x10, 0x14, 0x18, 0x1C]
    assert (OFFSETS["OUT_BASE_HI"], OFFSETS["ACC_WRITES"]) == (0x38, 0x3C)


def test_offsets_are_words_of_their_own() -> None:
    offsets = [register.offset for register in REGISTERS]
    assert len(set(offsets)) == len(offsets) == len(OFFSETS)
    assert all(offset % 4 == 0 and offset < REGISTER_SPACE_BYTES for offset in offsets)
    assert {register.access for register in REGISTERS} == {"rw", "ro", "w1c"}
    assert all(f"COUNTER_{name.upper()}" in OFFSETS for name, _ in COUNTERS)


def test_every_cycle_of_a_unit_is_in_one_counter() -> None:
    names = [name for name, _ in COUNTERS]
    parts = [part for unit in CYCLE_SPLIT.values() for part in unit]
    assert set(CYCLE_SPLIT) == {"fetch", "load", "compute", "store"}
    assert len(set(parts)) == len(parts) and set(parts) <= set(names)
    assert all(part.startswith(f"{unit}_") for unit, group in CYCLE_SPLIT.items() for part in group)


def test_error_holds_every_cause_unit_and_queue() -> None:
    assert max(Cause) <= ERROR.field("cause").maximum
    assert max(Unit) <= ERROR.field("unit").maximum
    assert sum(1 << queue for queue in Queue) <= ERROR.field("wait").maximum


def test_features() -> None:
    config = load_config("default")
    assert feature_word(config) == (1 << len(EXTENSIONS)) - 1
    assert feature_word(config.replace(extensions=["sat"])) == 1 << FEATURE_BITS["sat"]
    assert FEATURE_BITS["bgemm"] == len(EXTENSIONS), "room is kept"
