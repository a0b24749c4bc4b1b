# SPDX-License-Identifier: Apache-2.0
"""The store unit: packing, windows, strides, back-pressure, faults."""

from __future__ import annotations

import pytest
from rtl_units import run_unit

from conftest import RecordCoverage


@pytest.mark.parametrize("config", ["tiny", "default", "batch"])
def test_store(config: str, seed: int, record_coverage: RecordCoverage) -> None:
    """Elements narrower than a beat (tiny) and wider (default, batch)."""
    run_unit(config, "StoreUnit", "tb_store", seed=seed)
    record_coverage("rtl store", config)
