# SPDX-License-Identifier: Apache-2.0
"""The folder for a vendor's tool: its scripts run to the end on stand-ins that record them, its test bench passes, its wrapper fits."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from openvta.cli.main import main
from openvta.sim.cosim import toolchain
from openvta.sim.hls.build import hls_folder
from openvta.sim.hls.session import Session
from openvta.sim.hls.wrapper import stub
from openvta.spec import hash_text, load_config, named_configs

PART = "xc7z020clg400-1"
HLS_COMMANDS = [
    "open_project",
    "set_top",
    "add_files",
    "open_solution",
    "set_part",
    "create_clock",
    "config_interface",
    "config_dataflow",
    "csim_design",
    "csynth_design",
    "cosim_design",
    "export_design",
    "close_project",
]
VIVADO_COMMANDS = [
    "create_project",
    "set_property",
    "current_project",
    "update_ip_catalog",
    "add_files",
    "update_compile_order",
    "current_fileset",
    "ipx::package_project",
    "ipx::current_core",
    "ipx::associate_bus_interfaces",
    "ipx::create_xgui_files",
    "ipx::update_checksums",
    "ipx::save_core",
    "close_project",
]
FLAGS = ["-std=c++14", "-O1", "-Wall", "-Wextra", "-Werror", "-Wno-unknown-pragmas", "-fno-strict-aliasing"]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hls") / "project"
    assert main(["elaborate", "--hls", "--part", PART, "--clock", "7.5", "--config", "tiny", "--out", str(folder)]) == 0
    return folder


def run_script(folder: Path, script: str, commands: list[str], *arguments: str) -> list[list[str]]:
    """Run a script under tclsh, every command of the tool a stand-in that prints its words; an unknown command is an error."""
    if shutil.which("tclsh") is None:
        pytest.skip("tclsh is not on PATH")
    stand_ins = "\n".join(
        f"proc {name} {{args}} {{ puts [list {name} {{*}}$args]; return {name} }}" for name in commands
    )
    prelude = (
        "namespace eval ipx {}\n" + stand_ins + "\nrename exit real_exit\nproc exit {} { puts finished; real_exit 0 }\n"
    )
    body = f"set argv [list {' '.join(arguments)}]\nsource {folder / script}\nputs stderr {{no exit}}\nreal_exit 1\n"
    done = subprocess.run(
        ["tclsh"], input=prelude + body, cwd=folder, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[-1] == "finished"
    return [re.findall(r"\{[^}]*\}|\S+", line) for line in lines[:-1]]


def test_the_synthesis_script_runs_to_its_end(project: Path) -> None:
    calls = run_script(project, "run_hls.tcl", HLS_COMMANDS)
    names = [call[0] for call in calls]
    assert names[0] == "open_project" and names[-1] == "close_project"
    order = [
        names.index(name)
        for name in ("set_top", "open_solution", "set_part", "csim_design", "csynth_design", "export_design")
    ]
    assert order == sorted(order) and "cosim_design" not in names
    assert ["set_part", PART] in calls and ["create_clock", "-period", "7.5", "-name", "default"] in calls
    added = [next(word for word in call[1:] if word.startswith("/")) for call in calls if call[0] == "add_files"]
    assert all(Path(path).is_file() for path in added), "a file the script names is not there"
    sources = {Path(path).name for path in added if Path(path).parent.name == "src"}
    assert sources == {path.name for path in (hls_folder() / "src").glob("*.cpp")}
    assert {path.name for path in (project / "sessions").iterdir()} <= {Path(path).name for path in added}


@pytest.mark.parametrize("step", ["csim", "csynth", "cosim", "export"])
def test_one_step_alone(step: str, project: Path) -> None:
    names = [call[0] for call in run_script(project, "run_hls.tcl", HLS_COMMANDS, "-f", "run_hls.tcl", step)]
    designs = [name for name in names if name.endswith("_design")]
    assert designs == [f"{step}_design"]


def test_the_packaging_script_runs_to_its_end(project: Path) -> None:
    calls = run_script(project, "package_ip.tcl", VIVADO_COMMANDS)
    buses = [call[2] for call in calls if call[0] == "ipx::associate_bus_interfaces"]
    assert buses == ["s_axil", *(f"m_axi_{name}" for name in ("insn", "uop", "inp", "wgt", "acc", "out"))]
    wrapper = (project / "openvta_hls.v").read_text("utf-8")
    assert all(f"{bus}_" in wrapper for bus in buses)


def test_the_project_names_configuration_part_and_clock(project: Path) -> None:
    config = load_config("tiny")
    readme = (project / "README.md").read_text("utf-8")
    assert hash_text(config) in readme and PART in readme and "7.5 ns" in readme
    assert f"{hash_text(config)}" in (project / "include" / "openvta_spec.hpp").read_text("utf-8")
    text = "".join(path.read_text("utf-8") for path in project.rglob("*.*") if path.suffix in (".tcl", ".md", ".v"))
    assert not re.search(r"@[A-Z_]+@", text)


@pytest.fixture(scope="module")
def bench(project: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project's own test bench, compiled from the project's files and our simulation headers."""
    program = tmp_path_factory.mktemp("bench") / "csim"
    sources = sorted(str(path) for path in [*(project / "src").glob("*.cpp"), project / "tb" / "vta_tb.cpp"])
    unity = program.with_suffix(".cpp")
    unity.write_text("".join(f'#include "{source}"\n' for source in sources), "utf-8")
    includes = [f"-I{project / 'include'}", f"-I{project / 'tb'}", f"-I{hls_folder() / 'sim'}"]
    command = ["g++", *FLAGS, *includes, "-pthread", "-o", str(program), str(unity)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return program


def test_c_simulation_passes(project: Path, bench: Path) -> None:
    sessions = sorted(str(path) for path in (project / "sessions").iterdir())
    assert [Path(path).stem for path in sessions] == ["alu", "gemm", "requant"]
    done = subprocess.run([str(bench), *sessions], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0 and done.stdout.count("as recorded") == len(sessions), done.stdout


def test_c_simulation_fails_where_memory_differs(project: Path, bench: Path, tmp_path: Path) -> None:
    session = Session(0x1000, 4096)
    session.put(0x1000, b"\1")
    session.expect(0x1000, b"\2")
    session.save(tmp_path / "wrong.case")
    done = subprocess.run(
        [str(bench), str(tmp_path / "wrong.case")], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1 and "DIFFERS" in done.stdout
    (tmp_path / "short.case").write_bytes((project / "sessions" / "gemm.case").read_bytes()[:-10])
    done = subprocess.run(
        [str(bench), str(tmp_path / "short.case")], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1 and "cannot be read" in done.stdout


@pytest.mark.parametrize("config_name", named_configs())
def test_the_wrapper_fits_the_synthesized_ports(config_name: str, tmp_path: Path) -> None:
    """Verilator's lint, all warnings on, of the wrapper around a module with the ports the tool makes."""
    from openvta.sim.hls.wrapper import wrapper

    config = load_config(config_name)
    (tmp_path / "openvta_hls.v").write_text(wrapper(config), "utf-8")
    (tmp_path / "vta.v").write_text(stub(config), "utf-8")
    lint = [
        str(toolchain.verilator_root() / "bin" / "verilator"),
        "--lint-only",
        "-Wall",
        "-Wno-UNUSEDSIGNAL",
        "-Wno-UNDRIVEN",
        "-Wno-SYMRSVDWORD",
    ]
    files = [str(tmp_path / "openvta_hls.v"), str(tmp_path / "vta.v")]
    command = [*lint, "-Wno-DECLFILENAME", "--top-module", "openvta_hls", *files]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


def test_bad_requests_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = ["--out", str(tmp_path / "p")]
    assert main(["elaborate", "--hls", *out]) == 2
    assert main(["elaborate", "--part", PART, *out]) == 2
    assert main(["elaborate", "--hls", "--part", "x", *out]) == 2
    assert main(["elaborate", "--hls", "--part", PART, "--clock", "0.1", *out]) == 2
    text = capsys.readouterr().err
    assert "--part" in text and "xc7z020clg400-1" in text and "clock = 0.1 ns" in text
    assert not (tmp_path / "p").exists()


def test_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main(["elaborate", "--hls", "--part", PART, "--config", "batch", "--out", str(tmp_path / "p"), "--json"]) == 0
    )
    facts = json.loads(capsys.readouterr().out)
    assert facts["part"] == PART and all((tmp_path / "p" / name).is_file() for name in facts["files"])


CSYNTH = """<profile><UserAssignments><TopModelName>run_gemm</TopModelName></UserAssignments><PerformanceEstimates>
<SummaryOfTimingAnalysis><EstimatedClockPeriod>6.25</EstimatedClockPeriod></SummaryOfTimingAnalysis>
<SummaryOfOverallLatency><Worst-caseLatency>undef</Worst-caseLatency></SummaryOfOverallLatency><SummaryOfLoopLatency>
<LOOP_1><Name>LOOP_1</Name><PipelineII>1</PipelineII><IterationLatency>9</IterationLatency></LOOP_1></SummaryOfLoopLatency>
</PerformanceEstimates><AreaEstimates><Resources><DSP>256</DSP><LUT>4000</LUT><FF>5000</FF></Resources></AreaEstimates></profile>"""


def test_a_tool_on_the_path_is_run_and_its_reports_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A stand-in writes the report the tool would write."""
    arguments = [
        "elaborate",
        "--hls",
        "--part",
        PART,
        "--config",
        "tiny",
        "--out",
        str(tmp_path / "p"),
        "--synthesize",
        "--json",
    ]
    assert main(arguments) == 2
    assert "vitis_hls not found" in capsys.readouterr().err
    tool = tmp_path / "bin" / "vitis_hls"
    tool.parent.mkdir()
    report = "openvta_hls/solution/syn/report"
    tool.write_text(
        f'#!/bin/sh\n[ "$2" = run_hls.tcl ] && [ -f run_hls.tcl ] || exit 1\nmkdir -p {report}\n'
        f"cat > {report}/run_gemm_csynth.xml <<'END'\n{CSYNTH}\nEND\n"
    )
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tool.parent), prepend=":")
    assert main(arguments) == 0
    (found,) = json.loads(capsys.readouterr().out)["reports"]
    assert found["name"] == "run_gemm" and found["loops"] == [{"name": "LOOP_1", "interval": 1, "latency": "9"}]
    assert found["resources"] == {"DSP": 256, "LUT": 4000, "FF": 5000} and found["clock_ns"] == 6.25
