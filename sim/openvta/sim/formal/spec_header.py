# SPDX-License-Identifier: Apache-2.0
"""The specification's numbers as Verilog macros, for harnesses."""

from __future__ import annotations

from typing import Any

from openvta.spec.config import HardwareConfig
from openvta.spec.resolve import resolve


def macros(config: HardwareConfig) -> str:
    """``define`` lines of a configuration.

    Knobs and derived sizes by name (``AXI_BURST_BEATS``), members of enums (``OPCODE_LOAD``), bits of the fields of layouts
    as a part select (``F_LOAD_X_SIZE`` is ``lo +: width``), masks of the bits that must be zero (``RESERVED_LOAD``), offsets of registers
    (``REG_CONTROL``) and their reset values (``RESET_CONTROL``), and ``HAS_REQUANT`` where the configuration has an extension.
    """
    spec: dict[str, Any] = resolve(config)
    lines = []

    def define(name: str, value: object) -> None:
        lines.append(f"`define {name.upper()} {value}")

    for section in ("knobs", "derived", "constants"):
        for name, value in spec[section].items():
            if isinstance(value, int) and not isinstance(value, bool):
                define(name, value)
    for extension in spec["knobs"]["extensions"]:
        define(f"has_{extension}", 1)
    for kind, members in spec["enums"].items():
        for name, value in members.items():
            define(f"{kind}_{name}", value)
    for name, layout in spec["layouts"].items():
        used = 0
        for field in layout["fields"]:
            define(f"f_{name}_{field['name']}", f"{field['lo']} +: {field['width']}")
            used |= (1 << field["width"]) - 1 << field["lo"]
        for low, width in layout["ignored"]:
            used |= (1 << width) - 1 << low
        bits = layout["bits"]
        define(f"reserved_{name}", f"{bits}'h{((1 << bits) - 1) & ~used:x}")
    for register in spec["registers"]:
        define(f"reg_{register['name']}", f"12'h{register['offset']:x}")
        define(f"reset_{register['name']}", f"32'h{register['reset']:x}")
    define("config_hash", f"64'h{int(spec['hash'], 16):x}")
    offsets = " || ".join(f"((a) & 12'hffc) == 12'h{register['offset']:x}" for register in spec["registers"])
    lines.append(f"`define MAPPED(a) ({offsets})")
    return "\n".join(lines) + "\n"
