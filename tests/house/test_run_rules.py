# SPDX-License-Identifier: Apache-2.0
"""What the shared conftest promises: no silent skips, a way to repeat a failure, a table of what was covered."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent.parent


def run(folder: Path, source: str, *options: str, allowed: str = "") -> tuple[int, str]:
    """Exit status and output of pytest on one module beside a copy of the shared conftest."""
    shutil.copy(TESTS / "conftest.py", folder / "conftest.py")
    (folder / "skip-allowlist.txt").write_text(allowed, "utf-8")
    (folder / "test_it.py").write_text(source, "utf-8")
    (folder / "pytest.ini").write_text("[pytest]\naddopts = -p no:cacheprovider --strict-markers\n", "utf-8")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *options], cwd=folder, env=environment, capture_output=True, text=True,
        timeout=120, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize(
    "source",
    [
        "import pytest\ndef test_a():\n    pytest.skip('no tool')\n",
        "import pytest\n@pytest.mark.skip(reason='no tool')\ndef test_a():\n    pass\n",
        "import pytest\npytest.importorskip('no_such_module', reason='no tool')\ndef test_a():\n    pass\n",
        "import pytest\n@pytest.mark.xfail(reason='no tool', strict=False)\ndef test_a():\n    assert False\n",
    ],
)
@pytest.mark.parametrize("spread", [(), ("-n", "2")], ids=["one process", "two"])
def test_a_skip_fails_the_run_unless_listed(tmp_path: Path, source: str, spread: tuple[str, ...]) -> None:
    passing = "\ndef test_b():\n    pass\n" if "importorskip" not in source else ""
    status, output = run(tmp_path, source + passing, *spread)
    assert status != 0
    assert "SKIP NOT ON THE ALLOW-LIST: test_it.py" in output
    assert output.count("SKIP NOT ON") == 1
    if passing:
        status, output = run(tmp_path, source + passing, *spread, allowed="# why\ntest_it.py | no tool\n")
        assert status == 0, output
        assert "allowed skip: test_it.py" in output


def test_a_failure_prints_seed_and_command(tmp_path: Path) -> None:
    status, output = run(tmp_path, "def test_a(rng):\n    assert rng.integers(5) == 9\n", "--seed", "77")
    assert status == 1
    assert "python -m pytest --seed 77 'test_it.py::test_a'" in output


def test_randomness_depends_on_seed_and_test_alone(tmp_path: Path) -> None:
    source = "def test_{}(rng):\n    print('drew', rng.integers(1 << 60))\n"
    both = source.format("a") + source.format("b")

    def drawn(*options: str) -> list[str]:
        return [line for line in run(tmp_path, both, "-s", *options)[1].splitlines() if "drew" in line]

    first = drawn("--seed", "3")
    assert first == drawn("--seed", "3") and len(set(first)) == 2
    assert drawn("--seed", "3", "-k", "test_b")[0].split()[-1] == first[1].split()[-1]
    assert drawn("--seed", "4")[0].split()[-1] != first[0].split()[-1]


def test_the_long_tier_needs_its_option(tmp_path: Path) -> None:
    source = "import pytest\ndef test_a():\n    pass\n@pytest.mark.long\ndef test_b():\n    pass\n"
    assert "1 passed, 1 deselected" in run(tmp_path, source)[1]
    assert "2 passed" in run(tmp_path, source, "--long")[1]


@pytest.mark.parametrize("spread", [(), ("-n", "2")], ids=["one process", "two"])
def test_the_log_names_what_was_covered(tmp_path: Path, spread: tuple[str, ...]) -> None:
    source = (
        "def test_a(record_coverage):\n    record_coverage('rtl', 'tiny')\n    record_coverage('fsim', 'default')\n"
        "def test_b(record_coverage):\n    record_coverage('rtl', 'tiny')\n"
    )
    output = run(tmp_path, source, *spread)[1]
    assert "rtl: tiny (2)" in output and "fsim: default (1)" in output
    assert output.rstrip().splitlines()[-1].startswith("2 passed")


def test_the_allow_list_excuses_no_tool() -> None:
    lines = (TESTS / "skip-allowlist.txt").read_text("utf-8").splitlines()
    rules = [line.lower() for line in lines if line.strip() and not line.startswith("#")]
    assert not [rule for rule in rules for tool in ("verilator", "java", "cocotb", "sbt") if tool in rule]
