# SPDX-License-Identifier: Apache-2.0
"""Read engine, scratchpads, tensor loaders and load unit against plain Python, on four configurations."""

from __future__ import annotations

import pytest
from rtl_units import run_unit

from conftest import RecordCoverage

CONFIGS = ("tiny", "default", "b1x32", "batch")
UNITS = {
    "uop-loader": ("tb_tensor_loader", {"OPENVTA_UNIT": "uop", "OPENVTA_MEMORIES": "UOP", "OPENVTA_CHANNEL": "1"}),
    "acc-loader": (
        "tb_tensor_loader",
        {"OPENVTA_UNIT": "acc", "OPENVTA_MEMORIES": "ACC,ACC_INT8,ACC_UINT8", "OPENVTA_CHANNEL": "4"},
    ),
    "load-unit": ("tb_load_unit", {}),
    "read-engine": ("tb_read_engine", {}),
    "scratchpad": ("tb_scratchpad", {}),
}


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("config", CONFIGS)
def test_unit(config: str, unit: str, seed: int, record_coverage: RecordCoverage) -> None:
    module, env = UNITS[unit]
    run_unit(config, "LoadBench", module, seed=seed, env=env)
    record_coverage("rtl load path", config)
