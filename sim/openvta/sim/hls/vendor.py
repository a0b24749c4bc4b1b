# SPDX-License-Identifier: Apache-2.0
"""Run Vitis HLS on a written project, where the machine has it."""

from __future__ import annotations

from pathlib import Path

from openvta.sim.cosim import toolchain
from openvta.sim.cosim.cache import Progress, tell
from openvta.sim.hls.report import Report, read_reports

STEPS = ("csim", "csynth")
SECONDS = 4 * 3600.0


def synthesize(folder: Path, *, progress: Progress | None = None) -> list[Report]:
    """C simulation and synthesis of a project; what the tool reports about every function.

    Raises:
        ToolMissing: no ``vitis_hls`` on PATH.
        BuildFailed: the tool failed.
        SimError: it wrote no report.
    """
    tool = toolchain.require("vitis_hls", "to synthesize the HLS kernel", "vitis-hls (from the vendor)")
    tell(progress, f"{tool}: {', '.join(STEPS)}")
    command = [tool, "-f", "run_hls.tcl", *STEPS]
    toolchain.run_tool(command, cwd=folder, timeout=SECONDS, what="Vitis HLS", log=folder / "vitis_hls.out")
    return read_reports(folder / "openvta_hls" / "solution" / "syn" / "report")
