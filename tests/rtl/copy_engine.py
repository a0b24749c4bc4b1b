# SPDX-License-Identifier: Apache-2.0
"""The copy engine of hdl/copy_engine.sv in the harnesses of the accelerator."""

from __future__ import annotations

from pathlib import Path

from openvta.sim.cosim.build import BuiltModel, ElaboratedDesign, Harness, verilate
from openvta.sim.cosim.session import Op, OpKind
from openvta.spec.config import HardwareConfig

SOURCE = Path(__file__).parent / "hdl" / "copy_engine.sv"
BEATS = 4
COUNT, RESPONSES, TAIL_STROBES, RUNNING, SILENT = 8, 28, 32, 84, 88


def build(config: HardwareConfig, harness: Harness) -> BuiltModel:
    """Simulator of the copy engine with the bus widths of ``config``."""
    return verilate(ElaboratedDesign(config, "VtaTop", SOURCE.parent, "copy-engine", (SOURCE,)), harness)


def copy(source: int, target: int, bursts: int, *, strobes: int = 0, bound: int = 100_000) -> list[Op]:
    """Copy bursts and wait; the results are: finished, responses, cycles."""
    values = {COUNT: bursts, 12: source, 16: source >> 32, 20: target, 24: target >> 32, TAIL_STROBES: strobes, 0: 1}
    return [
        *(Op(OpKind.WRITE, address, value & 0xFFFFFFFF) for address, value in values.items()),
        Op(OpKind.WAIT, RUNNING, 0, 1, bound),
        Op(OpKind.READ, RESPONSES),
        Op(OpKind.READ, 4),
    ]
