# SPDX-License-Identifier: Apache-2.0
"""Elaborated designs and simulator executables, built once per content and cached.

Keys are hashes of everything that goes in (resolved configuration, Scala sources, SystemVerilog, C++, flags), so a
cache entry is never stale. Entries are made in a folder of their own and renamed; a lock keeps two processes from
building the same one.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from openvta.sim.cosim import toolchain
from openvta.sim.cosim.errors import BuildFailed, CosimError
from openvta.spec.config import HardwareConfig
from openvta.spec.resolve import canonical_json, resolve

Progress = Callable[[str], None]

LOCK_SECONDS = 1800.0
HDL = Path(__file__).parent / "hdl"
WARNINGS = ("-Wno-fatal", "-Wno-lint", "-Wno-style")
SPEED = ("-O3", "--x-assign", "fast", "--x-initial", "fast", "--no-assert")
CHECKED = ("-O2", "--x-assign", "unique", "--x-initial", "unique", "--assert")
CXX = "-O2 -march=native -std=c++20 -fcoroutines"
CXX_CHECKED = "-O1 -std=c++20 -fcoroutines"


@dataclass(frozen=True)
class ElaboratedDesign:
    """SystemVerilog of one configuration and top: ``files`` in compile order inside ``folder``."""

    config: HardwareConfig
    top: str
    folder: Path
    key: str
    files: tuple[Path, ...]


@dataclass(frozen=True)
class Harness:
    """How a design is simulated.

    Attributes:
        toplevel: module cocotb sees.
        sources: SystemVerilog and C++ beside the design.
        control: Verilator control files (.vlt).
        public: make every signal of the design readable and writable (needed where Python drives pins).
        checked: random initial state and assertions, instead of speed.
        waves: build with FST tracing.
        coverage: build with line and toggle coverage.
        defines: preprocessor symbols for SystemVerilog and C++.
        flags: further Verilator flags.
    """

    toplevel: str
    sources: tuple[Path, ...] = ()
    control: tuple[Path, ...] = ()
    public: bool = False
    checked: bool = False
    waves: bool = False
    coverage: bool = False
    defines: tuple[tuple[str, str], ...] = ()
    flags: tuple[str, ...] = ()


@dataclass(frozen=True)
class BuiltModel:
    """A simulator executable: the cocotb top level ``toplevel`` of ``design``."""

    design: ElaboratedDesign
    harness: Harness
    folder: Path
    executable: Path
    build_seconds: float


def cache_folder() -> Path:
    """Where builds are kept: OPENVTA_CACHE, else build/cache of the checkout."""
    override = os.environ.get("OPENVTA_CACHE")
    return Path(override).resolve() if override else toolchain.repository() / "build" / "cache"


def fast_harness(config: HardwareConfig, *, waves: bool = False, checked: bool = False) -> Harness:
    """Clock, host and memory compiled; Python acts at start and end only."""
    defines = (("DATA_BITS", str(config.axi_data_bits)), ("ID_BITS", str(config.axi_id_bits)))
    return Harness(
        toplevel="fast_top",
        sources=(HDL / "fast_top.sv", HDL / "fast.cpp"),
        control=(HDL / "fast.vlt",),
        defines=defines,
        waves=waves,
        checked=checked,
        flags=("-LDFLAGS", "-rdynamic"),
    )


def agents_harness(top: str, *, waves: bool = False, coverage: bool = False) -> Harness:
    """The design itself is the cocotb top level; Python drives and watches every pin."""
    return Harness(toplevel=top, public=True, checked=True, waves=waves, coverage=coverage)


def compile_scala(progress: Progress | None = None) -> Path:
    """Compile the Chisel sources if they changed; returns the classpath file.

    Raises:
        ToolMissing, BuildFailed: as the names say.
    """
    root = toolchain.repository() / "hardware" / "chisel"
    toolchain.java()
    inputs = sorted(
        [*root.glob("src/main/scala/**/*.scala"), root / "build.sbt", *root.glob("project/*.sbt"), root / "project" / "build.properties"]
    )
    key = _hash_files(inputs, root)
    target = root / "target"
    classpath, stamp = target / "classpath.txt", target / "openvta.stamp"
    target.mkdir(parents=True, exist_ok=True)
    with _locked(target / "openvta.lock"):
        if classpath.is_file() and stamp.is_file() and stamp.read_text("utf-8") == key:
            return classpath
        _tell(progress, "compiling the Chisel sources with sbt (about a minute the first time)")
        command = [*toolchain.sbt_command(cache_folder()), "writeClasspath"]
        toolchain.run_tool(command, cwd=root, timeout=1500, what="sbt", log=target / "sbt.log")
        stamp.write_text(key, "utf-8")
    return classpath


def elaborate(config: HardwareConfig, *, top: str = "VtaTop", progress: Progress | None = None) -> ElaboratedDesign:
    """SystemVerilog of ``top`` for a configuration.

    Raises:
        ToolMissing, BuildFailed: as the names say.
    """
    classpath_file = compile_scala(progress)
    classpath = classpath_file.read_text("utf-8").strip()
    stamp = (classpath_file.parent / "openvta.stamp").read_text("utf-8")
    resolved = canonical_json(resolve(config.replace(name="any")))
    key = _hash_text("elaborate", stamp, resolved, top)
    folder = cache_folder() / "rtl" / f"{top}-{config.label}-{key}"
    with _entry(folder) as work:
        if work is not None:
            _tell(progress, f"elaborating {top} for {config.name}")
            (work / "resolved.json").write_text(canonical_json(resolve(config)), "utf-8")
            toolchain.run_tool(
                [
                    toolchain.java(), "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", classpath, "openvta.Elaborate",
                    "--config", str(work / "resolved.json"), "--out", str(work), "--top", top,
                ],
                cwd=work,
                timeout=600,
                what=f"elaborating {top} for configuration '{config.name}'",
                log=work / "elaborate.log",
            )  # fmt: skip
            if not (work / "filelist.f").is_file():
                raise BuildFailed(f"elaborating {top}: no filelist.f was written")
    names = [line.strip() for line in (folder / "filelist.f").read_text("utf-8").splitlines() if line.strip()]
    return ElaboratedDesign(config, top, folder, key, tuple(folder / name for name in names))


def verilate(design: ElaboratedDesign, harness: Harness, *, jobs: int = 2, progress: Progress | None = None) -> BuiltModel:
    """The simulator executable of a design in a harness.

    Raises:
        ToolMissing, BuildFailed: as the names say.
    """
    root = toolchain.verilator_root()
    for tool, package in (("g++", "g++"), ("make", "make"), ("perl", "perl")):
        toolchain.require(tool, "to build the simulator", package)
    libs, share = toolchain.cocotb_paths()
    main = share / "lib" / "verilator" / "verilator.cpp"
    extra = [*harness.sources, *harness.control, main]
    key = _hash_text(
        "verilate", design.key, repr(_without_paths(harness)), _hash_files(extra, None), str(root), str(libs), CXX, CXX_CHECKED,
        *SPEED, *CHECKED,
    )  # fmt: skip
    folder = cache_folder() / "sim" / f"{harness.toplevel}-{design.config.label}-{key}"
    executable = folder / harness.toplevel
    with _entry(folder) as work:
        if work is not None:
            started = time.monotonic()
            _tell(progress, f"building the simulator of {design.top} for {design.config.name}")
            _verilate(root, libs, main, design, harness, work, jobs)
            seconds = time.monotonic() - started
            (work / "build.json").write_text(json.dumps({"seconds": round(seconds, 1)}), "utf-8")
            for path in work.iterdir():
                if path.suffix in {".o", ".a", ".gch", ".d"}:
                    path.unlink()
            _tell(progress, f"built in {seconds:.0f} s")
    seconds = float(json.loads((folder / "build.json").read_text("utf-8"))["seconds"])
    return BuiltModel(design, harness, folder, executable, seconds)


def _verilate(
    root: Path, libs: Path, main: Path, design: ElaboratedDesign, harness: Harness, work: Path, jobs: int
) -> None:
    cxx = CXX_CHECKED if harness.checked else CXX
    defines = [f"-D{name}={value}" for name, value in harness.defines]
    command = [
        str(root / "bin" / "verilator"), "--cc", "--exe", "--vpi", "--timing", "--prefix", "Vtop", "-Mdir", str(work),
        "-o", harness.toplevel, "--top-module", harness.toplevel, *WARNINGS,
        *(CHECKED if harness.checked else SPEED), *harness.flags, *defines,
        *(["--public-flat-rw"] if harness.public else []),
        *(["--trace-fst"] if harness.waves else []),
        *(["--coverage-line", "--coverage-toggle"] if harness.coverage else []),
        "-CFLAGS", " ".join([cxx, *defines]),
        "-LDFLAGS", f"-Wl,-rpath,{libs} -L{libs} -lcocotbvpi_verilator",
        "--timescale", "1ns/1ps",
        str(main), *map(str, harness.control), *map(str, design.files), *map(str, harness.sources),
    ]  # fmt: skip
    env = {"VERILATOR_ROOT": str(root)}
    toolchain.run_tool(command, cwd=work, timeout=900, what=f"verilator on {design.top}", env=env, log=work / "verilator.log")
    runtime = _runtime(root, cxx, harness)
    # The wheel's makefile was configured empty: it lacks the include flag of precompiled headers and -pthread.
    settings = ["CFG_CXXFLAGS_PCH_I=-include", "CFG_LDLIBS_THREADS=-pthread", "OPT_FAST=", "OPT_SLOW=", "OPT_GLOBAL="]
    objects = {path.name: path for path in runtime.iterdir() if path.suffix == ".o"}
    for name, path in objects.items():
        shutil.copy2(path, work / name)
    toolchain.run_tool(
        ["make", "-j", str(jobs), "-f", "Vtop.mk", *settings, *[f"-o{name}" for name in objects]],
        cwd=work,
        timeout=1500,
        what=f"compiling the simulator of {design.top}",
        env=env,
        log=work / "make.log",
    )


def _runtime(root: Path, cxx: str, harness: Harness) -> Path:
    """Object files of Verilator's run time, compiled once per flag set and shared by every build."""
    names = ["verilated", "verilated_vpi", "verilated_timing", "verilated_threads", "verilated_dpi"]
    if harness.waves:
        names.append("verilated_fst_c")
    if harness.coverage:
        names.append("verilated_cov")
    include = root / "include"
    flags = [
        *cxx.split(), "-I.", f"-I{include}", f"-I{include / 'vltstd'}",
        f"-DVM_COVERAGE={int(harness.coverage)}", "-DVM_SC=0", "-DVM_TIMING=1", f"-DVM_TRACE={int(harness.waves)}",
        f"-DVM_TRACE_FST={int(harness.waves)}", "-DVM_TRACE_VCD=0", "-DVM_TRACE_SAIF=0", "-w",
    ]  # fmt: skip
    key = _hash_text("runtime", str(root), *flags, *names)
    folder = cache_folder() / "runtime" / key
    with _entry(folder) as work:
        if work is not None:

            def build(name: str) -> None:
                toolchain.run_tool(
                    ["g++", *flags, "-c", "-o", str(work / f"{name}.o"), str(include / f"{name}.cpp")],
                    cwd=work,
                    timeout=300,
                    what=f"compiling Verilator's {name}",
                )

            with ThreadPoolExecutor(2) as pool:
                list(pool.map(build, [name for name in names if (include / f"{name}.cpp").is_file()]))
    return folder


def _without_paths(harness: Harness) -> Harness:
    names = tuple(Path(path.name) for path in harness.sources)
    control = tuple(Path(path.name) for path in harness.control)
    return Harness(
        harness.toplevel, names, control, harness.public, harness.checked, harness.waves, harness.coverage, harness.defines, harness.flags
    )


def _tell(progress: Progress | None, text: str) -> None:
    if progress is not None:
        progress(text)


def _hash_text(*parts: str) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part.encode())
    return digest.hexdigest()[:16]


def _hash_files(files: Sequence[Path], root: Path | None) -> str:
    digest = hashlib.sha256()
    for path in files:
        if path.is_file():
            name = str(path.relative_to(root)) if root is not None else path.name
            digest.update(name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as handle:
        deadline = time.monotonic() + LOCK_SECONDS
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError as error:
                if time.monotonic() > deadline:
                    raise CosimError(f"waited {LOCK_SECONDS:.0f} s for another build to release {path}") from error
                time.sleep(0.1)
        yield


@contextlib.contextmanager
def _entry(folder: Path) -> Iterator[Path | None]:
    """Yields None when the cache entry exists, else a work folder that becomes the entry when the body succeeds."""
    if folder.is_dir():
        yield None
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    with _locked(folder.with_name(folder.name + ".lock")):
        if folder.is_dir():
            yield None
            return
        work = Path(tempfile.mkdtemp(prefix=".building-", dir=folder.parent))
        try:
            yield work
            work.rename(folder)
        finally:
            if work.is_dir():
                shutil.rmtree(work, ignore_errors=True)
