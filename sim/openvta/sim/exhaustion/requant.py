# SPDX-License-Identifier: Apache-2.0
"""The requantizer lane in RTL on its corner grid and on random points, against the written rule in big integers.

Random points are compared in compiled code with a rule written there in 128-bit integers; that rule, and the RTL, are
compared with the specification's scalar arithmetic on the grid and on the first points of every run.
"""

from __future__ import annotations

import itertools
import re
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from openvta.sim.cosim.build import HDL, BuiltModel, Harness, elaborate, verilate
from openvta.sim.cosim.cache import Progress, tell
from openvta.sim.exhaustion.errors import ExhaustionError
from openvta.spec import HardwareConfig, RequantMode

Points = npt.NDArray[np.uint32]
"""Points [n, 7]: mode, unsigned, acc, the three parameter words, unused."""
Reference = Callable[[Points], npt.NDArray[np.int32]]
"""Results of points by the specification's scalar arithmetic; a simulator never calls it, so it is handed in."""
WORDS = 7
STAGES = 7
"""Edges from a value at the lane's input to its result (RequantLane.stages)."""
POINTS_A_SECOND = 100_000
"""Slowest bench that is waited for."""

X = (
    0,
    1,
    -1,
    2,
    3,
    5,
    -5,
    127,
    -128,
    2**23 - 1,
    2**24,
    2**24 + 1,
    -(2**24) - 3,
    2**25 + 2,
    2**30,
    -(2**30) - 1,
    2**31 - 1,
    -(2**31),
)
BIAS = (0, 1, -(2**31), 2**31 - 1)
MULTIPLIERS = (0, 1, 2, 3, 2**23, 2**30, 2**30 + 1, 2**31 - 1, 2**31, 2**32 - 1)
FLOATS = tuple(
    exponent << 23 | mantissa
    for exponent in (0, 1, 95, 103, 111, 119, 120, 125, 126, 127, 128, 134, 135, 143, 150, 151, 200, 254, 255)
    for mantissa in (0, 1, 2**22, 2**23 - 1)
)
SHIFTS = tuple(range(64))
LIMITS = ((0, 128, 127), (0, 0, 255), (7, 130, 120), (249, 10, 3))
"""Zero point, low and high as raw bytes; in the last low is above high."""


@dataclass(frozen=True)
class Requantizations:
    """What was tried: points of the grid, random points, points also compared with the specification, and what differed."""

    grid: int
    random: int
    against_spec: int
    failures: tuple[str, ...]


def grid(mode: RequantMode, unsigned: bool, *, every: int = 1) -> Points:
    """Corner points of a mode, uint32 [n, 7]; only each ``every``-th."""
    float_mode = mode is RequantMode.FLOAT32
    axes = (X, BIAS, FLOATS if float_mode else MULTIPLIERS, (0, 63) if float_mode else SHIFTS, LIMITS)
    rows = [
        (int(mode), int(unsigned), (x - bias) & 0xFFFFFFFF, bias & 0xFFFFFFFF, multiplier,
         shift | zero << 8 | low << 16 | high << 24, 0)
        for x, bias, multiplier, shift, (zero, low, high) in itertools.islice(itertools.product(*axes), 0, None, every)
    ]  # fmt: skip
    return np.array(rows, np.uint32)


def bench(config: HardwareConfig, progress: Progress | None = None) -> BuiltModel:
    """The bench of a configuration's lane.

    Raises:
        ExhaustionError: the configuration has no requantizer, or its lane is not as the bench expects.
        ToolMissing, BuildFailed: as the names say.
    """
    if not config.has("requant"):
        raise ExhaustionError(
            f"configuration '{config.name}' has no extension 'requant'; take one that has, such as 'tiny'"
        )
    design = elaborate(config, progress=progress)
    text = "".join(path.read_text("utf-8") for path in design.files)
    bank = re.search(r"^module (MultiplierBank_\d+)\(", text, re.MULTILINE)
    lane = re.search(r"^module RequantLane\(.*?^endmodule", text, re.DOTALL | re.MULTILINE)
    if bank is None or lane is None or f"io_enable_{STAGES - 1}," not in lane[0] or f"io_enable_{STAGES}," in lane[0]:
        raise ExhaustionError(
            f"the RTL has no RequantLane of {STAGES} stages with a MultiplierBank; adapt requant_bench.sv"
        )
    defines = (
        ("BANK", bank[1]),
        ("LATENCY", str(STAGES)),
        *((f"MODE_{mode.name}", str(int(mode))) for mode in RequantMode),
    )
    harness = Harness(
        toplevel="requant_bench",
        sources=(HDL / "requant_bench.sv", HDL / "requant_bench.cpp"),
        defines=defines,
        clocked=True,
        plain=True,
    )
    return verilate(design, harness, progress=progress)


def _call(model: BuiltModel, arguments: list[str], points: int, folder: Path) -> tuple[int, str]:
    """Mismatches, and the lines that show the first."""
    seconds = 60.0 + points / POINTS_A_SECOND
    try:
        done = subprocess.run(
            [str(model.executable), *arguments], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=seconds, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise ExhaustionError(f"the requantizer bench did not end within {seconds:.0f} s") from error
    lines = done.stdout.splitlines()
    counts = re.fullmatch(r"(\d+) (\d+)", lines[-1]) if lines else None
    if done.returncode or counts is None or int(counts[1]) != points:
        raise ExhaustionError(f"the requantizer bench ended with status {done.returncode}: {done.stderr[-500:]}")
    return int(counts[2]), "\n".join(lines[:-1])


def run_requant(
    config: HardwareConfig, count: int, reference: Reference, *, seed: int = 1, every: int = 1, sample: int = 100_000, upset: int = 0,
    progress: Progress | None = None,
) -> Requantizations:  # fmt: skip
    """The grid (each ``every``-th point), and ``count`` random points of which ``sample`` are also compared with the specification.

    ``upset``: bits of the product that are inverted on their way to the lane, to see that the comparison can fail.

    Raises:
        ExhaustionError: no requantizer, or a bench that fails.
        ToolMissing, BuildFailed: as the names say.
    """
    model = bench(config, progress)
    failures: list[str] = []
    corners = np.concatenate([grid(mode, unsigned, every=every) for mode in RequantMode for unsigned in (False, True)])
    with tempfile.TemporaryDirectory(prefix="openvta-requant-") as name:
        folder = Path(name)
        compared = _against_spec(model, reference, corners, folder, upset, failures)
        tell(progress, f"corner grid: {len(corners)} points, {len(failures)} failures")
        mismatches, shown = _call(model, ["random", str(seed), str(count), "kept", f"{upset:x}"], count, folder)
        if mismatches:
            failures.append(f"{mismatches} of {count} random points of seed {seed} differ from the rule:\n{shown}")
        kept = np.fromfile(folder / "kept", np.uint32).reshape(-1, WORDS)[:sample]
        compared += _against_spec(model, reference, kept, folder, upset, failures)
        tell(
            progress,
            f"random: {count} points, {len(failures)} failures; {compared} points compared with the specification",
        )
    return Requantizations(len(corners), count, compared, tuple(failures))


def _against_spec(
    model: BuiltModel, reference: Reference, points: Points, folder: Path, upset: int, failures: list[str]
) -> int:
    """Compare RTL and compiled rule with the specification; returns the number of points."""
    points.tofile(folder / "points")
    _call(model, ["file", "points", "results", f"{upset:x}"], len(points), folder)
    results = np.fromfile(folder / "results", np.int32).reshape(-1, 2)
    want = reference(points)
    for column, who in enumerate(("RTL", "compiled rule")):
        wrong = np.flatnonzero(results[:, column] != want)
        if wrong.size:
            mode, unsigned, acc, *words, _ = points[wrong[0]].tolist()
            shown = " ".join(f"{word:08x}" for word in words)
            failures.append(
                f"{who}: {wrong.size} of {len(points)} points differ from openvta.spec.arith; first {RequantMode(mode).name}, "
                f"unsigned {unsigned}, acc {acc:08x}, words {shown}: {results[wrong[0], column]}, must be {want[wrong[0]]}"
            )
    return len(points)
