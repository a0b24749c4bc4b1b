# SPDX-License-Identifier: Apache-2.0
"""Make the virtual environment. Standard library only: it runs before anything is installed."""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NEEDED = (
    ("java", "JDK 17", "openjdk-17-jdk-headless"),
    ("g++", "a C++20 compiler", "g++"),
    ("make", "make", "make"),
    ("perl", "perl", "perl"),
)


def say(text: str) -> None:
    """One line for the person who waits."""
    sys.stdout.write(f"setup: {text}\n")
    sys.stdout.flush()


def suitable(python: str) -> bool:
    """Whether a Python is recent enough, can make environments and has the shared library that cocotb loads."""
    test = (
        "import sys, sysconfig, importlib.util as u;"
        "shared = sysconfig.get_config_var('Py_ENABLE_SHARED');"
        "ok = sys.version_info >= (3, 10) and u.find_spec('ensurepip') and shared;"
        "sys.exit(0 if ok else 1)"
    )
    try:
        return subprocess.run([python, "-c", test], stderr=subprocess.DEVNULL, check=False, timeout=60).returncode == 0
    except (OSError, subprocess.SubprocessError):
        return False


def find_python() -> str:
    """This Python if it will do, else another on PATH; else this one, and the checks say what it lacks."""
    others = ["python3", *(f"python3.{minor}" for minor in (12, 13, 11, 10, 14))]
    found = [path for path in map(shutil.which, others) if path is not None]
    return next((python for python in [sys.executable, *found] if suitable(python)), sys.executable)


def check_machine() -> None:
    """Stop with one line for each thing that is missing."""
    missing = [
        f"{what} ('{tool}'; Debian package {package})" for tool, what, package in NEEDED if shutil.which(tool) is None
    ]
    if shutil.which("sbt") is None and shutil.which("mvn") is None:
        missing.append("sbt or Maven ('sbt' or 'mvn'; Debian package maven)")
    if sys.version_info < (3, 10):  # noqa: UP036 - whatever Python there is runs this
        missing.append(f"Python 3.10 or later (this is {sys.version.split()[0]}; set PYTHON=)")
    if importlib.util.find_spec("ensurepip") is None:
        missing.append("Python's venv module (Debian package python3-venv)")
    for line in missing:
        say(f"missing: {line}")
    if missing:
        raise SystemExit(1)
    if not sysconfig.get_config_var("Py_ENABLE_SHARED"):
        say(f"warning: {sys.executable} has no shared libpython; co-simulation needs one (set PYTHON= to another)")


def run(command: list[str]) -> None:
    """Run a command; on failure stop with its status."""
    done = subprocess.run(command, cwd=ROOT, check=False)
    if done.returncode != 0:
        say(f"failed: {' '.join(command)}")
        raise SystemExit(done.returncode)


def main() -> None:
    """Create or refresh the environment unless its stamp says that nothing changed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--venv", type=Path, required=True)
    parser.add_argument("--stamp", type=Path, required=True)
    options = parser.parse_args()
    folder, stamp = (ROOT / options.venv), (ROOT / options.stamp)
    package = (ROOT / "pyproject.toml").read_text("utf-8").split("[tool.mypy]")[0]  # the rest configures tools only
    key = hashlib.sha256(package.encode() + Path(__file__).read_bytes()).hexdigest()
    if stamp.is_file() and stamp.read_text("utf-8") == key:
        stamp.touch()
        return
    chosen = find_python()
    if chosen != sys.executable and not (folder / "bin" / "python").is_file():
        say(f"{sys.executable} will not do; taking {chosen}")
        os.execv(chosen, [chosen, *sys.argv])
    check_machine()
    python = folder / "bin" / "python"
    if not python.is_file():
        say(f"making {options.venv}")
        venv.create(folder, with_pip=True, symlinks=True)
    say("installing packages (about a minute the first time)")
    run([str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-e", ".[cosim,formal,dev]"])
    stamp.write_text(key, "utf-8")
    say("done")


if __name__ == "__main__":
    main()
