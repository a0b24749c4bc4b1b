# SPDX-License-Identifier: Apache-2.0
"""Verilog around the synthesized top: its stream ports become an AXI4-Lite slave, everything else passes through.

AXI4-Lite is five channels, each with its own valid and ready, which is what an AXI4-Stream port is; the wrapper only gives the wires
their names, so that block designs see ``s_axil`` and ``m_axi_*``.
"""

from __future__ import annotations

from dataclasses import dataclass

from openvta.sim.hls.ports import CHANNEL_PORTS, memory_ports
from openvta.spec.config import HardwareConfig


@dataclass(frozen=True)
class Port:
    """A port of the wrapper or of the synthesized module; ``core`` is the inner name, or an expression for an output's slice."""

    direction: str
    width: int
    name: str


def _declare(port: Port) -> str:
    bits = "" if port.width == 1 else f"[{port.width - 1}:0] "
    return f"    {port.direction} wire {bits}{port.name}"


def outer_ports(config: HardwareConfig) -> list[Port]:
    """Ports of the wrapper."""
    ports = [Port("input", 1, "aclk"), Port("input", 1, "aresetn")]
    ports += [Port("input", 64, "memory_base"), Port("input", 64, "memory_bytes"), Port("output", 1, "interrupt")]
    ports += [Port(p.direction, p.width, p.outer) for p in CHANNEL_PORTS if p.outer]
    ports += [Port(direction, width, name) for direction, width, name in memory_ports(config)]
    return ports


def wrapper(config: HardwareConfig) -> str:
    """The Verilog text of module ``openvta_hls``."""
    connections = [("ap_clk", "aclk"), ("ap_rst_n", "aresetn")]
    connections += [(name, name) for name in ("memory_base", "memory_bytes", "interrupt")]
    connections += [(p.inner, p.expression) for p in CHANNEL_PORTS if p.inner]
    connections += [(name, name) for _, _, name in memory_ports(config)]
    # Pointers start at the window: the tool adds these to every address.
    connections += [(f"m_axi_{name}", "memory_base") for name in ("insn", "uop", "inp", "wgt", "acc", "out")]
    declared = ",\n".join(_declare(port) for port in outer_ports(config))
    wired = ",\n".join(f"        .{inner}({outer})" for inner, outer in connections)
    return (
        "// SPDX-License-Identifier: Apache-2.0\n"
        f"// Generated for configuration '{config.name}': names for the wires of the synthesized core.\n"
        f"module openvta_hls (\n{declared}\n);\n\n    wire [7:0] unused_b;\n    wire [31:0] unused_r;\n\n"
        f"    assign s_axil_bresp = unused_b[1:0];\n\n    vta core (\n{wired}\n    );\n\nendmodule\n"
    )


def stub(config: HardwareConfig) -> str:
    """The synthesized module's ports and nothing inside, to check the wrapper against."""
    outer = {port.name: port for port in outer_ports(config)}
    ports = [Port("input", 1, "ap_clk"), Port("input", 1, "ap_rst_n")]
    ports += [outer[name] for name in ("memory_base", "memory_bytes", "interrupt")]
    ports += [Port(p.direction, p.inner_width, p.inner) for p in CHANNEL_PORTS if p.inner]
    ports += [outer[name] for _, _, name in memory_ports(config)]
    ports += [Port("input", 64, f"m_axi_{name}") for name in ("insn", "uop", "inp", "wgt", "acc", "out")]
    declared = ",\n".join(_declare(port) for port in ports)
    driven = "".join(f"    assign {port.name} = 0;\n" for port in ports if port.direction == "output")
    return f"// SPDX-License-Identifier: Apache-2.0\nmodule vta (\n{declared}\n);\n{driven}endmodule\n"
