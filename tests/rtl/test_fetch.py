# SPDX-License-Identifier: Apache-2.0
"""Fetch: order, credit, throughput, faults, halt."""

from __future__ import annotations

import pytest
from rtl_units import run_unit

from conftest import RecordCoverage


@pytest.mark.parametrize("config", ["tiny", "b1x32"])
def test_fetch(config: str, seed: int, record_coverage: RecordCoverage) -> None:
    """Streams on a bus narrower and wider than an instruction."""
    run_unit(config, "Fetch", "tb_fetch", seed=seed)
    record_coverage("rtl fetch", config)
