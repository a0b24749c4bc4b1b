# SPDX-License-Identifier: Apache-2.0
"""Run cocotb test modules on a built model, as a bounded child process."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from openvta.sim.cosim import toolchain
from openvta.sim.cosim.build import BuiltModel
from openvta.sim.cosim.errors import SimulationFailed


def cocotb_environment(model: BuiltModel, module: str, seed: int, results: Path) -> dict[str, str]:
    """Environment in which a model's executable runs the cocotb tests of ``module``.

    Raises:
        ToolMissing: cocotb or a shared libpython is not there.
    """
    toolchain.cocotb_paths()
    from cocotb_tools import config

    return {
        **os.environ,
        "GPI_USERS": ";".join((str(toolchain.libpython()), str(config.pygpi_entry_point()))),
        "PYGPI_PYTHON_BIN": sys.executable,
        "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry),
        "COCOTB_TOPLEVEL": model.harness.toplevel,
        "COCOTB_TEST_MODULES": module,
        "TOPLEVEL_LANG": "verilog",
        "COCOTB_TRUST_INERTIAL_WRITES": "1",
        "COCOTB_RANDOM_SEED": str(seed),
        "COCOTB_RESULTS_FILE": str(results),
    }


def random_start(model: BuiltModel, seed: int) -> list[str]:
    """Arguments that make a checked model start with random registers and memories."""
    return [f"+verilator+seed+{max(1, seed)}", "+verilator+rand+reset+2"] if model.harness.checked else []


def run_tests(
    model: BuiltModel,
    module: str,
    *,
    env: Mapping[str, str] | None = None,
    seed: int = 1,
    seconds: float = 300.0,
    waves: Path | None = None,
    test_filter: str | None = None,
) -> int:
    """Run every cocotb test of ``module`` (or those matching ``test_filter``) and return how many passed.

    The module must be importable from the parent's ``sys.path``.

    Raises:
        SimulationFailed: a test failed, none ran, or the run took longer than ``seconds``.
    """
    from cocotb_tools.check_results import get_results

    with tempfile.TemporaryDirectory(prefix="openvta-cocotb-") as name:
        folder = Path(name)
        results = folder / "results.xml"
        environment = {**cocotb_environment(model, module, seed, results), **(env or {})}
        if test_filter is not None:
            environment["COCOTB_TEST_FILTER"] = test_filter
        command = [str(model.executable), *random_start(model, seed)]
        if waves is not None:
            command += ["--trace", "--trace-file", str(waves.resolve())]
        try:
            done = subprocess.run(
                command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, timeout=seconds, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired as error:
            raise SimulationFailed(f"{module}: no end after {seconds:.0f} s\n{_tail(error.output)}") from error
        text = done.stdout.decode("utf-8", "replace")
        if not results.is_file():
            raise SimulationFailed(f"{module}: the simulator ended with status {done.returncode}\n{_tail(done.stdout)}")
        count, failures = get_results(results)
        if failures or not count:
            raise SimulationFailed(f"{module}: {failures} of {count} cocotb tests failed (seed {seed})\n{text[-6000:]}")
        return int(count)


def _tail(output: bytes | None) -> str:
    return "" if output is None else output.decode("utf-8", "replace")[-4000:]
