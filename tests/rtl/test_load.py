# SPDX-License-Identifier: Apache-2.0
"""Read engine, scratchpads, tensor loaders and load unit against plain Python, in named and odd configurations."""

from __future__ import annotations

from pathlib import Path

import pytest
from rtl_units import run_unit

from conftest import RecordCoverage
from openvta.spec.config import load_config

NAMED = ("tiny", "default", "b1x32", "batch")
ODD = Path(__file__).parent / "configs"
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
@pytest.mark.parametrize("config", NAMED)
def test_unit(config: str, unit: str, seed: int, record_coverage: RecordCoverage) -> None:
    """Elements narrower than a beat (tiny), of several beats (default, batch), and of exactly one (b1x32)."""
    module, env = UNITS[unit]
    run_unit(config, "LoadBench", module, seed=seed, env=env)
    record_coverage("rtl load path", config)


@pytest.mark.long
@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("config", sorted(path.stem for path in ODD.glob("*.toml")))
def test_odd_configurations(config: str, unit: str, seed: int) -> None:
    """Narrow lanes, no extensions, buses narrower than a micro-op or wider than acc elements."""
    module, env = UNITS[unit]
    if unit == "acc-loader" and not load_config(str(ODD / f"{config}.toml")).has("acc8"):
        env = {**env, "OPENVTA_MEMORIES": "ACC"}
    run_unit(str(ODD / f"{config}.toml"), "LoadBench", module, seed=seed, env=env)
