# SPDX-License-Identifier: Apache-2.0
"""The register file on its AXI4-Lite port."""

from __future__ import annotations

from rtl_units import run_unit

from conftest import RecordCoverage


def test_registers(seed: int, record_coverage: RecordCoverage) -> None:
    """Any order and delay of the channels, strobes, commands, interrupts."""
    run_unit("tiny", "Registers", "tb_registers", seed=seed)
    record_coverage("rtl registers", "tiny")
