# SPDX-License-Identifier: Apache-2.0
"""The plain C++ loop as a bounded child process: the yardstick for what cocotb adds."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from openvta.sim.cosim.build import BuiltModel
from openvta.sim.cosim.errors import CosimError, SimulationFailed
from openvta.sim.cosim.session import MemoryModel, Op


@dataclass(frozen=True)
class PlainRun:
    """One request: clock cycles, seconds of the loop alone, a value for each READ or WAIT."""

    cycles: int
    seconds: float
    results: tuple[int, ...]


def run_plain(
    model: BuiltModel,
    memory: npt.NDArray[np.uint8],
    base: int,
    timing: MemoryModel,
    requests: Sequence[Sequence[Op]],
    *,
    cycles: int,
    seconds: float,
) -> list[PlainRun]:
    """Run requests one after the other in one process; ``memory`` is updated in place.

    Args:
        model: built with :func:`openvta.sim.cosim.build.plain_harness`.
        memory: content of device memory, uint8.
        base: device address of its first byte.
        timing: memory model.
        requests: host operations of each run.
        cycles: bound of each run.
        seconds: bound of the process.

    Raises:
        SimulationFailed: a run did not end within its bound, or the process failed.
    """
    if not model.harness.plain:
        raise CosimError(f"model '{model.harness.toplevel}': not built for the plain loop; use plain_harness")
    text = ""
    for ops in requests:
        lines = [f"{int(op.kind)} {op.address} {op.data} {op.mask} {op.bound}" for op in ops]
        text += "\n".join([*lines, "run\n"])
    with tempfile.TemporaryDirectory(prefix="openvta-plain-") as name:
        file = Path(name) / "memory"
        memory.tofile(file)
        settings = (timing.read_latency, timing.write_latency, timing.outstanding, timing.closed_every)
        command = [str(model.executable), str(file), *map(str, (base, memory.size, *settings, cycles))]
        try:
            done = subprocess.run(
                command, input=text.encode(), capture_output=True, timeout=seconds,
                cwd=name, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired as error:
            raise SimulationFailed(f"the plain loop did not end within {seconds:.0f} s") from error
        if done.returncode:
            raise SimulationFailed(f"the plain loop ended with status {done.returncode}: {done.stderr.decode()[-500:]}")
        memory[:] = np.fromfile(file, np.uint8)
    runs = []
    for line in done.stdout.decode().splitlines():
        count, time, *values = (int(word) for word in line.split())
        runs.append(PlainRun(count, time / 1e9, tuple(values)))
    if len(runs) != len(requests):
        raise SimulationFailed(f"the plain loop answered {len(runs)} of {len(requests)} requests")
    return runs
