# SPDX-License-Identifier: Apache-2.0
"""Verilator's coverage file is read as it is, and exclusions are precise."""

from __future__ import annotations

from pathlib import Path

import pytest

from openvta.sim.verify.linecoverage import CoverageError, Exclusion, figure, read_exclusions, read_points, unused

SOURCE = ["module A;", "  if (x)", "    y <= 1;", "endmodule"]


def point(kind: str, line: int, comment: str, count: int, file: str = "/a/VtaTop.sv") -> str:
    fields = {"f": file, "l": str(line), "n": "3", "page": f"v_{kind}/A", "o": comment, "h": "top.a"}
    return "C '" + "".join(f"\x01{key}\x02{value}" for key, value in fields.items()) + f"' {count}"


def written(tmp_path: Path, *points: str) -> Path:
    path = tmp_path / "coverage.dat"
    path.write_text("\n".join(["# SystemC::Coverage-3", *points]) + "\n", "utf-8")
    return path


def test_points_of_all_instances_are_added_and_other_files_left_out(tmp_path: Path) -> None:
    path = written(
        tmp_path, point("line", 2, "if", 0), point("line", 2, "if", 3), point("branch", 3, "else", 0),
        point("toggle", 3, "y", 1), point("line", 1, "block", 5, file="/a/fast_top.sv"),
    )  # fmt: skip
    points = read_points(path, "VtaTop.sv")
    assert [(p.kind, p.line, p.count) for p in points] == [("line", 2, 3), ("branch", 3, 0), ("toggle", 3, 1)]
    lines = figure(("line", "branch"), points, SOURCE, [])
    assert (lines.covered, lines.total, lines.percent) == (1, 2, 50.0)
    assert lines.missed == ("A:3 else: y <= 1;",)
    rule = Exclusion("line", "A", "y <= *", "never")
    assert figure(("line", "branch"), points, SOURCE, [rule]).percent == 100.0
    assert figure(("toggle",), points, SOURCE, [rule]).excluded == 0
    stale = Exclusion("line", "B", "*", "no such module")
    assert unused(points, SOURCE, [rule, stale]) == [stale]


def test_damaged_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CoverageError, match="line 2 is not a point"):
        read_points(written(tmp_path, "nonsense"), "VtaTop.sv")
    path = tmp_path / "list.txt"
    path.write_text("other", "utf-8")
    with pytest.raises(CoverageError, match="not a coverage file"):
        read_points(path, "VtaTop.sv")
    path.write_text("# a comment\n\nline | A | y <= *\n", "utf-8")
    with pytest.raises(CoverageError, match="line 3: must be"):
        read_exclusions(path)


def test_nothing_to_cover_is_covered() -> None:
    assert figure(("line",), [], SOURCE, []).percent == 100.0
