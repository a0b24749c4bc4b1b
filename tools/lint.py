# SPDX-License-Identifier: Apache-2.0
"""Every static check, one line of result each. `lint.py NAME...` runs some; `--fix` lets scalafmt rewrite."""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from openvta.sim.cosim import build, cache, toolchain
from openvta.spec import load_config, named_configs

ROOT = Path(__file__).resolve().parent.parent
PYTHON_ROOTS = ["hardware/spec", "sim", "compiler", "driver", "tests", "tools"]
CHISEL = ROOT / "hardware" / "chisel"


def run(*command: str, cwd: Path = ROOT, timeout: float = 900) -> tuple[bool, str]:
    """Run a check; (passed, its output)."""
    done = subprocess.run(
        command,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=timeout,
        check=False,
    )
    return done.returncode == 0, done.stdout.decode("utf-8", "replace")


def module(name: str, *arguments: str) -> tuple[bool, str]:
    """Run a Python tool of this environment."""
    return run(sys.executable, "-m", name, *arguments)


def check_names() -> tuple[bool, str]:
    """No package may hide the others of the namespace, and every source names its licence."""
    faults = [f"{path.relative_to(ROOT)} hides the namespace" for path in ROOT.glob("*/openvta/__init__.py")]
    faults += [f"{path.relative_to(ROOT)} hides the namespace" for path in ROOT.glob("*/*/openvta/__init__.py")]
    listed = run("git", "ls-files", "*.py", "*.scala", "*.sv", "*.cpp", "*.h", "*.vlt")[1].split()
    for name in listed:
        path = ROOT / name
        if path.is_file() and "SPDX-License-Identifier: Apache-2.0" not in path.read_text("utf-8")[:400]:
            faults.append(f"{name}: no SPDX line")
    return not faults, "\n".join(faults)


def check_scalafmt(fix: bool) -> tuple[bool, str]:
    """Scala sources in the committed style."""
    task = "scalafmtAll" if fix else "scalafmtCheckAll"
    return run(*toolchain.sbt_command(cache.cache_folder()), task, cwd=CHISEL, timeout=1500)


def check_verilator() -> tuple[bool, str]:
    """The SystemVerilog of every named configuration, all warnings on, with the reasoned waivers of lint/."""
    root = toolchain.verilator_root()
    waivers = sorted((CHISEL / "lint").glob("*.vlt"))
    passed, text = True, ""
    for name in named_configs():
        design = build.elaborate(load_config(name))
        command = [str(root / "bin" / "verilator"), "--lint-only", "-Wall", "--timing", "--top-module", design.top]
        ok, output = run(*command, *map(str, waivers), *map(str, design.files), cwd=design.folder)
        passed &= ok
        text += output if not ok else ""
    return passed, text


def main() -> int:
    """Run the checks and print a line for each; the output of those that fail follows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--fix", action="store_true")
    options = parser.parse_args()
    checks: dict[str, Callable[[], tuple[bool, str]]] = {
        "ruff": lambda: module("ruff", "check", *PYTHON_ROOTS),
        "format": lambda: module("ruff", "format", "--check", *PYTHON_ROOTS),
        "mypy": lambda: module("mypy"),
        "imports": lambda: run(str(Path(sys.executable).parent / "lint-imports")),
        "names": check_names,
        "spec": lambda: run(str(Path(sys.executable).parent / "openvta"), "spec", "check"),
        "hls": lambda: run(sys.executable, "tools/check_hls.py", "--work", str(ROOT / "build" / "check-hls")),
        "scalafmt": lambda: check_scalafmt(options.fix),
        "verilator": check_verilator,
    }
    unknown = [name for name in options.names if name not in checks]
    if unknown:
        sys.stderr.write(f"no such check: {', '.join(unknown)}; checks are {', '.join(checks)}\n")
        return 2
    failed = 0
    for name in options.names or checks:
        started = time.monotonic()
        passed, output = checks[name]()
        sys.stdout.write(f"{'ok  ' if passed else 'FAIL'} {name} ({time.monotonic() - started:.1f} s)\n")
        if not passed:
            sys.stdout.write(output.rstrip() + "\n")
            failed += 1
        sys.stdout.flush()
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
