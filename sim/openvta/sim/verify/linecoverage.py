# SPDX-License-Identifier: Apache-2.0
"""Line and toggle coverage of the generated SystemVerilog, read from Verilator's own file.

Counted are the points inside the accelerator's design. An exclusion names a module, a piece of the source line, and why
no run can or need reach it; one that excludes nothing is an error, so that the list stays true.
"""

from __future__ import annotations

import fnmatch
import re
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from openvta.sim.cosim import toolchain
from openvta.sim.cosim.build import elaborate
from openvta.sim.cosim.cache import Progress
from openvta.sim.errors import SimError
from openvta.sim.verify.campaign import Result, run_seed
from openvta.sim.verify.configs import configuration
from openvta.sim.verify.faults import FaultCampaign, FaultResult
from openvta.sim.verify.rig import Rig

EXCLUSIONS = Path("hardware") / "chisel" / "lint" / "coverage-exclusions.txt"
LISTED = "tiny"
"""The configuration the list is written for: every exclusion must match something there."""
_POINT = re.compile(r"^C '(.*)' (\d+)$")


class CoverageError(SimError):
    """A coverage file or an exclusion list that cannot be read, or that is not true."""


@dataclass(frozen=True)
class Point:
    """A place that was passed ``count`` times: a line ("line", "branch") or a bit ("toggle", named by ``comment``)."""

    kind: str
    module: str
    file: str
    line: int
    comment: str
    count: int


@dataclass(frozen=True)
class Exclusion:
    """Points that do not count: module and source line (shell patterns), and the reason."""

    kind: str
    module: str
    source: str
    reason: str


@dataclass(frozen=True)
class Figure:
    """Points covered, counted and excluded, and those that were missed (text of the line or signal)."""

    covered: int
    total: int
    excluded: int
    missed: tuple[str, ...]

    @property
    def percent(self) -> float:
        """Share of the points that were passed, rounded down to a hundredth."""
        return 100.0 if not self.total else int(10_000 * self.covered / self.total) / 100

    def as_json(self) -> dict[str, object]:
        """For reports; at most 200 missed points."""
        return {
            "covered": self.covered, "total": self.total, "excluded": self.excluded, "percent": self.percent,
            "missed": list(self.missed[:200]),
        }  # fmt: skip


def read_points(path: Path, file: str) -> list[Point]:
    """Points of one SystemVerilog file in a coverage file; counts of the same point are added.

    Raises:
        CoverageError: the file is not one of Verilator's.
    """
    lines = path.read_text("utf-8", "replace").splitlines()
    if not lines or not lines[0].startswith("# SystemC::Coverage"):
        raise CoverageError(f"{path}: not a coverage file of Verilator")
    found: dict[tuple[str, str, str, int, str], int] = {}
    for number, line in enumerate(lines[1:], 2):
        match = _POINT.match(line)
        if match is None:
            raise CoverageError(f"{path}: line {number} is not a point: {line[:80]}")
        fields = dict(item.split("\x02", 1) for item in match[1].split("\x01")[1:])
        page = fields.get("page", "")
        kind, _, module = page.partition("/")
        name = Path(fields.get("f", "")).name
        if name != file or not kind.startswith("v_"):
            continue
        key = (kind[2:], module, name, int(fields.get("l", "0")), fields.get("o", ""))
        found[key] = found.get(key, 0) + int(match[2])
    return [Point(*key, count) for key, count in found.items()]


def read_exclusions(path: Path) -> list[Exclusion]:
    """The list: ``kind | module | source line | reason``, shell patterns in the two middle columns.

    Raises:
        CoverageError: a line that is not of this form.
    """
    found = []
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        parts = [part.strip() for part in line.split(" | ")]
        if len(parts) != 4 or parts[0] not in ("line", "toggle") or not all(parts):
            raise CoverageError(f"{path}: line {number}: must be 'line or toggle | module | source | reason'")
        found.append(Exclusion(*parts))
    return found


def figure(
    kinds: Sequence[str], points: Iterable[Point], source: Sequence[str], excluded: Sequence[Exclusion]
) -> Figure:
    """Coverage of the points of some kinds, given the lines of the source file."""
    covered = total = left_out = 0
    missed = []
    wanted = "toggle" if "toggle" in kinds else "line"
    rules = [rule for rule in excluded if rule.kind == wanted]
    for point in points:
        if point.kind not in kinds:
            continue
        text = point.comment if wanted == "toggle" else source[point.line - 1].strip()
        if any(fnmatch.fnmatchcase(point.module, r.module) and fnmatch.fnmatchcase(text, r.source) for r in rules):
            left_out += 1
            continue
        total += 1
        if point.count:
            covered += 1
        else:
            missed.append(f"{point.module}:{point.line} {point.comment}: {text}")
    return Figure(covered, total, left_out, tuple(missed))


def unused(points: Sequence[Point], source: Sequence[str], excluded: Sequence[Exclusion]) -> list[Exclusion]:
    """Exclusions that match no point at all."""

    def matches(rule: Exclusion, point: Point) -> bool:
        toggle = point.kind == "toggle"
        text = point.comment if toggle else source[point.line - 1].strip()
        return (
            toggle == (rule.kind == "toggle")
            and fnmatch.fnmatchcase(point.module, rule.module)
            and fnmatch.fnmatchcase(text, rule.source)
        )

    return [rule for rule in excluded if not any(matches(rule, point) for point in points)]


def measure(
    name: str, seeds: Sequence[int], instructions: int, trials: int, *, progress: Progress | None = None
) -> tuple[Result, Figure, Figure]:
    """Random programs and faults on a build with coverage: (the campaign, lines, toggles).

    Raises:
        CoverageError: see there.
        ConfigError, ToolMissing, BuildFailed, SimulationFailed: as the names say.
    """
    config = configuration(name)
    result = Result(name, config.label, tuple(seeds))
    found: dict[tuple[str, str, str, int, str], int] = {}
    with tempfile.TemporaryDirectory(prefix="openvta-coverage-") as folder:
        for seed in seeds:
            file = Path(folder) / f"{seed}.dat"
            with Rig(config, seed=seed, coverage_file=file, progress=progress) as rig:
                run_seed(rig, result, seed, -(-instructions // len(seeds)))
                faults = FaultResult(name, config.label, (seed,))
                if not result.failures:
                    FaultCampaign(rig, seed, faults).run(-(-trials // len(seeds)))
                if faults.failures:
                    raise CoverageError("\n".join(faults.failures))
            for point in read_points(file, "VtaTop.sv"):
                key = (point.kind, point.module, point.file, point.line, point.comment)
                found[key] = found.get(key, 0) + point.count
    points = [Point(*key, count) for key, count in found.items()]
    design = elaborate(config, extras=("trace", "stalls"))
    source = design.files[0].read_text("utf-8").splitlines()
    rules = read_exclusions(toolchain.repository() / EXCLUSIONS)
    stale = unused(points, source, rules) if name == LISTED else []
    if stale:
        raise CoverageError(f"{EXCLUSIONS}: nothing is like '{stale[0].module} | {stale[0].source}': take it out")
    return result, figure(("line", "branch"), points, source, rules), figure(("toggle",), points, source, rules)
