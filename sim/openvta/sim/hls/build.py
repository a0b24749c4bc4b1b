# SPDX-License-Identifier: Apache-2.0
"""Build the HLS kernel for a configuration, once per content: sources, generated header, flags and compiler."""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from openvta.sim.cosim import cache, toolchain
from openvta.sim.cosim.build import processor
from openvta.sim.cosim.cache import Progress
from openvta.spec.config import HardwareConfig
from openvta.spec.emit import cpp_header

BUILD_SECONDS = 600.0
STRICT = ("-std=c++17", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-Wno-unknown-pragmas", "-fno-strict-aliasing")
LINK = ("-pthread",)
LIBRARY = ("-fPIC", "-fvisibility=hidden")
WIDE = ("-O1", "-g1")
NATIVE = ("-O2", "-march=native", "-ftree-vectorize", "-DOPENVTA_NATIVE")
GNU_NATIVE = (
    "-fvect-cost-model=dynamic",
    *(("-mprefer-vector-width=512",) if platform.machine() == "x86_64" else ()),
)
"""With -O3 g++ unrolls the loops over lanes before it sees that they are vectors: six times slower. Left to itself it takes
half the vector where the processor has 512 bits."""


@dataclass(frozen=True)
class Flavour:
    """One way to build the kernel.

    Attributes:
        native: lanes as C++ integers, for speed; else fixed-width integers, as synthesized.
        compiler: C++ compiler, a name on PATH or a path.
        flags: further flags, such as sanitizers.
    """

    native: bool = False
    compiler: str = "g++"
    flags: tuple[str, ...] = ()


def hls_folder() -> Path:
    """The kernel's sources.

    Raises:
        ToolMissing: the package was installed without them.
    """
    return toolchain.repository() / "hardware" / "hls"


def kernel_sources() -> list[Path]:
    """The files that are synthesized, by name."""
    return sorted((hls_folder() / "src").glob("*.cpp"))


def headers() -> list[Path]:
    """Every header of the kernel and of its simulation."""
    folder = hls_folder()
    return sorted(path for part in ("include", "sim", "tb") for path in (folder / part).glob("*.h"))


def build_library(config: HardwareConfig, flavour: Flavour = Flavour(), *, progress: Progress | None = None) -> Path:
    """The kernel and its host side as a shared library.

    Raises:
        ToolMissing, BuildFailed: as the names say.
    """
    sources = [*kernel_sources(), hls_folder() / "sim" / "harness.cpp"]
    return _build(config, flavour, sources, LIBRARY, ("-shared",), "libvta.so", progress)


def build_program(config: HardwareConfig, flavour: Flavour = Flavour(), *, progress: Progress | None = None) -> Path:
    """The kernel and the player of recorded sessions as an executable.

    Raises:
        ToolMissing, BuildFailed: as the names say.
    """
    folder = hls_folder() / "sim"
    sources = [*kernel_sources(), folder / "harness.cpp", folder / "replay.cpp"]
    return _build(config, flavour, sources, (), (), "vta_replay", progress)


def _build(
    config: HardwareConfig,
    flavour: Flavour,
    sources: Sequence[Path],
    compile_flags: tuple[str, ...],
    link_flags: tuple[str, ...],
    name: str,
    progress: Progress | None,
) -> Path:
    compiler = toolchain.require(flavour.compiler, "to run the HLS kernel", "g++")
    header = cpp_header(config.replace(name="any"))
    identity = toolchain.run_tool([compiler, "--version"], cwd=hls_folder(), timeout=60, what="asking the compiler")
    speed = (*NATIVE, *(() if "clang" in identity else GNU_NATIVE)) if flavour.native else WIDE
    flags = (*STRICT, *speed, *compile_flags, *flavour.flags)
    content = cache.hash_files([*sources, *headers()], hls_folder())
    key = cache.hash_text(header, content, identity, *flags, *link_flags, processor() if flavour.native else "")
    kind = "native" if flavour.native else "wide"
    folder = cache.cache_folder() / "hls" / f"{kind}-{config.label}-{key}"
    with cache.entry(folder) as work:
        if work is not None:
            cache.tell(progress, f"compiling the HLS kernel for {config.name} ({kind} integers)")
            (work / "openvta_spec.hpp").write_text(header, "utf-8")
            if flavour.native:
                units = list(sources)  # apart: optimising all of it as one takes minutes
            else:
                unity = work / "kernel.cpp"
                unity.write_text("".join(f'#include "{source}"\n' for source in sources), "utf-8")
                units = [unity]
            _compile(compiler, flags, units, work)
            objects = [f"{unit.stem}.o" for unit in units]
            command = [compiler, *flavour.flags, *link_flags, "-o", name, *objects, *LINK]
            toolchain.run_tool(command, cwd=work, timeout=BUILD_SECONDS, what=f"linking {name}")
    return folder / name


def _compile(compiler: str, flags: Sequence[str], units: Sequence[Path], work: Path) -> None:
    includes = [f"-I{work}", f"-I{hls_folder() / 'include'}", f"-I{hls_folder() / 'sim'}"]

    def one(unit: Path) -> None:
        command = [compiler, *flags, *LINK, *includes, "-c", "-o", f"{unit.stem}.o", str(unit)]
        toolchain.run_tool(command, cwd=work, timeout=BUILD_SECONDS, what=f"compiling {unit.name}")

    jobs = max(1, int(os.environ.get("OPENVTA_JOBS") or os.cpu_count() or 1))
    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(one, units))


def compilers() -> tuple[str, ...]:
    """C++ compilers of this machine that the kernel is tested with."""
    return tuple(name for name in ("g++", "clang++") if shutil.which(name) is not None)
