# SPDX-License-Identifier: Apache-2.0
"""Ports of the synthesized core, as the vendor's tool names them."""

from __future__ import annotations

from dataclasses import dataclass

from openvta.spec.config import HardwareConfig
from openvta.spec.isa import INSN_BYTES

REGISTER_ADDRESS_BITS = 12


@dataclass(frozen=True)
class ChannelPort:
    """One wire of the AXI4-Lite channels.

    Attributes:
        direction: seen from the core.
        outer: its AXI4-Lite name; empty where the slave has no such wire.
        width: bits of the outer wire.
        inner: name at the synthesized module; empty where there is none.
        inner_width: bits there.
        expression: what the wrapper connects to the inner port.
    """

    direction: str
    outer: str
    width: int
    inner: str
    inner_width: int
    expression: str


def _same(direction: str, outer: str, inner: str, width: int = 1) -> ChannelPort:
    return ChannelPort(direction, outer, width, inner, width, outer)


def _address(channel: str, inner: str) -> list[ChannelPort]:
    name = f"s_axil_{channel}addr"
    padded = f"{{{16 - REGISTER_ADDRESS_BITS}'b0, {name}}}"
    return [
        ChannelPort("input", name, REGISTER_ADDRESS_BITS, f"{inner}_TDATA", 16, padded),
        ChannelPort("input", f"s_axil_{channel}prot", 3, "", 0, ""),
        _same("input", f"s_axil_{channel}valid", f"{inner}_TVALID"),
        _same("output", f"s_axil_{channel}ready", f"{inner}_TREADY"),
    ]


def _unused(direction: str, inner: str, width: int, expression: str) -> ChannelPort:
    return ChannelPort(direction, "", 0, inner, width, expression)


CHANNEL_PORTS: tuple[ChannelPort, ...] = (
    *_address("aw", "s_axil_aw"),
    _same("input", "s_axil_wdata", "s_axil_w_TDATA", 32),
    _same("input", "s_axil_wstrb", "s_axil_w_TSTRB", 4),
    _unused("input", "s_axil_w_TKEEP", 4, "4'hf"),
    _unused("input", "s_axil_w_TUSER", 2, "2'b0"),
    _unused("input", "s_axil_w_TLAST", 1, "1'b1"),
    _unused("input", "s_axil_w_TID", 1, "1'b0"),
    _unused("input", "s_axil_w_TDEST", 1, "1'b0"),
    _same("input", "s_axil_wvalid", "s_axil_w_TVALID"),
    _same("output", "s_axil_wready", "s_axil_w_TREADY"),
    ChannelPort("output", "s_axil_bresp", 2, "s_axil_b_TDATA", 8, "unused_b"),
    _same("output", "s_axil_bvalid", "s_axil_b_TVALID"),
    _same("input", "s_axil_bready", "s_axil_b_TREADY"),
    *_address("ar", "s_axil_ar"),
    _same("output", "s_axil_rdata", "s_axil_r_TDATA", 32),
    _same("output", "s_axil_rresp", "s_axil_r_TUSER", 2),
    _unused("output", "s_axil_r_TKEEP", 4, "unused_r[3:0]"),
    _unused("output", "s_axil_r_TSTRB", 4, "unused_r[7:4]"),
    _unused("output", "s_axil_r_TLAST", 1, "unused_r[8]"),
    _unused("output", "s_axil_r_TID", 1, "unused_r[9]"),
    _unused("output", "s_axil_r_TDEST", 1, "unused_r[10]"),
    _same("output", "s_axil_rvalid", "s_axil_r_TVALID"),
    _same("input", "s_axil_rready", "s_axil_r_TREADY"),
)

_ADDRESS = (
    ("addr", 64),
    ("len", 8),
    ("size", 3),
    ("burst", 2),
    ("lock", 2),
    ("cache", 4),
    ("prot", 3),
    ("qos", 4),
    ("region", 4),
)


def memory_ports(config: HardwareConfig) -> list[tuple[str, int, str]]:
    """(direction, width, name) of every wire of the memory ports: a bundle a unit and memory type, each a whole AXI4 master."""
    ports: list[tuple[str, int, str]] = []
    elements = {
        "insn": INSN_BYTES,
        "uop": config.uop_bytes,
        "inp": config.inp_bytes,
        "wgt": config.wgt_bytes,
        "acc": config.acc8_bytes,
        "out": config.out_bytes,
    }
    # A port is as wide as the words the kernel reads through it: an element, at most a beat; the tool makes none narrower than 32.
    widths = {name: max(32, min(8 * size, config.axi_data_bits)) for name, size in elements.items()}
    for bundle, width in widths.items():
        prefix = f"m_axi_{bundle}"
        for channel in ("AW", "AR"):
            ports += [("output", 1, f"{prefix}_{channel}VALID"), ("input", 1, f"{prefix}_{channel}READY")]
            ports += [("output", bits, f"{prefix}_{channel}{name.upper()}") for name, bits in _ADDRESS]
            ports += [("output", 1, f"{prefix}_{channel}ID"), ("output", 1, f"{prefix}_{channel}USER")]
        ports += [
            ("output", 1, f"{prefix}_WVALID"),
            ("input", 1, f"{prefix}_WREADY"),
            ("output", width, f"{prefix}_WDATA"),
            ("output", width // 8, f"{prefix}_WSTRB"),
            ("output", 1, f"{prefix}_WLAST"),
            ("output", 1, f"{prefix}_WID"),
            ("output", 1, f"{prefix}_WUSER"),
            ("input", 1, f"{prefix}_RVALID"),
            ("output", 1, f"{prefix}_RREADY"),
            ("input", width, f"{prefix}_RDATA"),
            ("input", 1, f"{prefix}_RLAST"),
            ("input", 1, f"{prefix}_RID"),
            ("input", 1, f"{prefix}_RUSER"),
            ("input", 2, f"{prefix}_RRESP"),
            ("input", 1, f"{prefix}_BVALID"),
            ("output", 1, f"{prefix}_BREADY"),
            ("input", 2, f"{prefix}_BRESP"),
            ("input", 1, f"{prefix}_BID"),
            ("input", 1, f"{prefix}_BUSER"),
        ]
    return ports
