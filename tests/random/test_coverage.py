# SPDX-License-Identifier: Apache-2.0
"""Line coverage of the RTL by random programs and faults alone."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from openvta.sim.verify.linecoverage import LISTED, measure

LEAST_LINES = 95.0


@pytest.mark.long
def test_lines_and_toggles(seed: int, show_figures: Callable[[str], None]) -> None:
    result, lines, toggles = measure(LISTED, (seed,), 40_000, 500)
    assert not result.failures, "\n".join(map(str, result.failures))
    show_figures(
        f"{LISTED}: lines {lines.covered} of {lines.total} ({lines.percent} %, {lines.excluded} excluded), "
        f"toggles {toggles.covered} of {toggles.total} ({toggles.percent} %)"
    )
    assert lines.percent >= LEAST_LINES, "\n".join(lines.missed)
