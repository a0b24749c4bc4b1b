# SPDX-License-Identifier: Apache-2.0
"""Random programs and faults on the RTL: nothing may differ from fsim, and every declared bin is filled."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from openvta.sim.verify.campaign import run_config
from openvta.sim.verify.faults import run_faults
from openvta.spec.bins import bins

Record = Callable[[str, str], None]
INSTRUCTIONS = {"tiny": 15_000, "random-11": 6_000}
LONG = {
    "tiny": 300_000, "default": 60_000, "batch": 60_000, "b1x32": 30_000,
    **{f"random-{seed}": 70_000 for seed in (0, 2, 3, 5, 6, 7, 9, 11)},
}  # fmt: skip
"""1,010,000 instructions on twelve configurations."""


def check(name: str, seeds: tuple[int, ...], instructions: int, record: Record) -> None:
    result = run_config(name, seeds, instructions)
    assert not result.failures, "\n".join(map(str, result.failures))
    assert result.instructions >= instructions
    filled = len(bins_of := bins_names(name)) - len(result.missing())
    print(
        f"{name} ({result.label}): seeds {seeds}, {result.instructions} instructions in {result.programs} programs, "
        f"0 mismatches, {filled} of {len(bins_of)} bins, {result.seconds:.0f} s"
    )
    if name == "tiny":
        assert not result.missing(), "bins that were not filled"
    record("rtl random", name)


def bins_names(name: str) -> tuple[str, ...]:
    from openvta.sim.verify.configs import configuration

    return bins(configuration(name))


@pytest.mark.parametrize("name", INSTRUCTIONS)
def test_random_programs(name: str, seed: int, record_coverage: Record) -> None:
    check(name, (seed,), INSTRUCTIONS[name], record_coverage)


@pytest.mark.long
@pytest.mark.parametrize("name", LONG)
def test_a_million_random_instructions(name: str, seed: int, record_coverage: Record) -> None:
    check(name, (seed + 1, seed + 2), LONG[name], record_coverage)


@pytest.mark.parametrize(("name", "trials"), [("tiny", 300), ("random-11", 60)])
def test_faults(name: str, trials: int, seed: int, record_coverage: Record) -> None:
    result = run_faults(name, (seed,), trials)
    assert not result.failures, "\n".join(result.failures)
    print(f"{name}: {dict(result.trials)}, {dict(result.outcomes)}, {result.seconds:.0f} s")
    record_coverage("rtl faults", name)


@pytest.mark.long
@pytest.mark.parametrize("name", ["tiny", "default", "random-0", "random-5", "random-11"])
def test_thousands_of_faults(name: str, seed: int, record_coverage: Record) -> None:
    result = run_faults(name, (seed + 1,), 4000 if name == "tiny" else 1000)
    assert not result.failures, "\n".join(result.failures)
    print(f"{name}: {dict(result.trials)}, {dict(result.outcomes)}, {result.seconds:.0f} s")
    record_coverage("rtl faults", name)
