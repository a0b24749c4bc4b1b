# SPDX-License-Identifier: Apache-2.0
"""Build one unit for one configuration and run a cocotb module on it."""

from __future__ import annotations

from collections.abc import Mapping

from openvta.sim.cosim.build import agents_harness, elaborate, verilate
from openvta.sim.cosim.runner import run_tests
from openvta.spec.config import load_config


def run_unit(
    config_name: str,
    top: str,
    module: str,
    *,
    seed: int,
    watched: tuple[tuple[str, str], ...] = (),
    env: Mapping[str, str] | None = None,
    seconds: float = 600.0,
) -> None:
    """Run every cocotb test of ``module`` on ``top``; the module finds the configuration's name in OPENVTA_CONFIG.

    ``watched`` lists (module, signal) patterns inside the design that the test bench reads.
    """
    model = verilate(elaborate(load_config(config_name), top=top), agents_harness(top, watched=watched))
    run_tests(model, module, env={"OPENVTA_CONFIG": config_name, **(env or {})}, seed=seed, seconds=seconds)
