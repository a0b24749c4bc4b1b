# SPDX-License-Identifier: Apache-2.0
"""Shared options and reports: seeds, golden files, the long tier, allowed skips, and what a run covered."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

TESTS = Path(__file__).parent
ALLOWED_SKIPS = TESTS / "skip-allowlist.txt"
COVERED = pytest.StashKey[dict[str, dict[str, int]]]()
FIGURES = pytest.StashKey[list[str]]()
SKIPS = pytest.StashKey[list[tuple[str, str]]]()
RecordCoverage = Callable[[str, str], None]


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("openvta")
    group.addoption("--seed", type=int, default=1, help="seed of every random test (default 1)")
    group.addoption("--update-golden", action="store_true", help="rewrite golden files instead of comparing")
    group.addoption("--long", action="store_true", help="run the long campaigns as well")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "long: a campaign that runs with --long only")
    config.stash[COVERED] = {}
    config.stash[SKIPS] = []
    config.stash[FIGURES] = []


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--long"):
        return
    kept = [item for item in items if "long" not in item.keywords]
    dropped = [item for item in items if "long" in item.keywords]
    if dropped:
        config.hook.pytest_deselected(items=dropped)
        items[:] = kept


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    """The run's seed; a failing test prints it with the command that repeats it."""
    return int(request.config.getoption("--seed"))


@pytest.fixture
def rng(seed: int, request: pytest.FixtureRequest) -> np.random.Generator:
    """A generator that depends on the seed and the test's own name alone."""
    words = [seed, *request.node.nodeid.encode()]
    random.seed(repr(words))
    return np.random.default_rng(words)


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    """Whether golden files are rewritten."""
    return bool(request.config.getoption("--update-golden"))


@pytest.fixture
def record_coverage(request: pytest.FixtureRequest) -> RecordCoverage:
    """Note that a test ran on (backend, configuration); the log ends with the table."""
    covered = request.config.stash[COVERED]

    def record(backend: str, config: str) -> None:
        by_config = covered.setdefault(backend, {})
        by_config[config] = by_config.get(config, 0) + 1

    return record


@pytest.fixture
def show_figures(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Print a line at the end of the log: what a campaign ran and found."""
    return request.config.stash[FIGURES].append


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]):  # type: ignore[no-untyped-def]
    outcome = yield
    report = outcome.get_result()
    if report.failed:
        seed = item.config.getoption("--seed")
        report.sections.append(("repeat with", f"python -m pytest --seed {seed} '{item.nodeid}'"))
    if report.skipped:
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        item.config.stash[SKIPS].append((item.nodeid, reason))


def pytest_report_header(config: pytest.Config) -> str:
    return f"seed: {config.getoption('--seed')} (--seed N repeats a run)"


@pytest.hookimpl(hookwrapper=True)
def pytest_make_collect_report(collector: pytest.Collector):  # type: ignore[no-untyped-def]
    outcome = yield
    report = outcome.get_result()
    if report.skipped:
        collector.config.stash[SKIPS].append((collector.nodeid, str(report.longrepr)))


def _allowed(nodeid: str, reason: str) -> bool:
    lines = ALLOWED_SKIPS.read_text("utf-8").splitlines()
    rules = [line.split("|", 1) for line in lines if line.strip() and not line.startswith("#")]
    return any(nodeid.startswith(where.strip()) and why.strip() in reason for where, why in rules)


def _worker(config: pytest.Config) -> bool:
    """Whether this process is one of several that share the tests."""
    return hasattr(config, "workerinput")


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: object, error: object) -> None:
    """Take over what one of several processes noted."""
    config = node.config  # type: ignore[attr-defined]
    output = getattr(node, "workeroutput", {})
    for nodeid, reason in output.get("skips", []):
        if (str(nodeid), str(reason)) not in config.stash[SKIPS]:
            config.stash[SKIPS].append((str(nodeid), str(reason)))
    config.stash[FIGURES] += [str(line) for line in output.get("figures", [])]
    for backend, counts in output.get("covered", {}).items():
        mine = config.stash[COVERED].setdefault(backend, {})
        for name, count in counts.items():
            mine[name] = mine.get(name, 0) + count


def pytest_sessionfinish(session: pytest.Session) -> None:
    if _worker(session.config):
        output = session.config.workeroutput  # type: ignore[attr-defined]
        output["skips"] = session.config.stash[SKIPS]
        output["covered"] = session.config.stash[COVERED]
        output["figures"] = session.config.stash[FIGURES]
        return
    bad = [(nodeid, reason) for nodeid, reason in session.config.stash[SKIPS] if not _allowed(nodeid, reason)]
    if bad and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    skips = config.stash[SKIPS]
    for nodeid, reason in skips:
        word = "allowed skip" if _allowed(nodeid, reason) else "SKIP NOT ON THE ALLOW-LIST"
        terminalreporter.write_line(f"{word}: {nodeid}: {reason}")
    if config.stash[FIGURES]:
        terminalreporter.section("campaigns")
    for line in sorted(config.stash[FIGURES]):
        terminalreporter.write_line(line)
    covered = config.stash[COVERED]
    if covered:
        terminalreporter.section("backends and configurations covered")
        for backend in sorted(covered):
            row = ", ".join(f"{name} ({count})" for name, count in sorted(covered[backend].items()))
            terminalreporter.write_line(f"{backend}: {row}")
    terminalreporter.write_line(f"seed {config.getoption('--seed')}")
