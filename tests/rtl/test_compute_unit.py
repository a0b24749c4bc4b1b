# SPDX-License-Identifier: Apache-2.0
"""The compute unit against the lane-by-lane machine, under Verilator and cocotb."""

from __future__ import annotations

from pathlib import Path

import pytest
from rtl_units import run_unit

WATCHED = (("Scratchpad_*", "io_write_*"),)
ODD = Path(__file__).parent / "configs"


@pytest.mark.parametrize(("config", "seed"), [("tiny", 1), ("tiny", 2), ("default", 1), ("batch", 1)])
def test_compute_unit(config: str, seed: int) -> None:
    """Every test of tb_compute: GEMM, ALU, REQUANT, ranges, tokens, FINISH, halt."""
    run_unit(config, "ComputeUnit", "tb_compute", seed=seed, watched=WATCHED, seconds=900)


@pytest.mark.long
@pytest.mark.parametrize("config", sorted(path.stem for path in ODD.glob("*.toml")))
def test_odd_configurations(config: str) -> None:
    """Narrow lanes, no extensions, one or many cycles a requantized vector, narrow and wide buses."""
    run_unit(str(ODD / f"{config}.toml"), "ComputeUnit", "tb_compute", seed=1, watched=WATCHED, seconds=900)
