# SPDX-License-Identifier: Apache-2.0
"""A folder for a vendor's HLS tool: sources, header, recorded sessions, Tcl, and a wrapper with plain AXI ports."""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from openvta.sim.errors import SimError
from openvta.sim.hls.build import headers, hls_folder, kernel_sources
from openvta.sim.hls.samples import sample_sessions
from openvta.sim.hls.wrapper import wrapper
from openvta.spec.config import HardwareConfig
from openvta.spec.emit import cpp_header
from openvta.spec.resolve import hash_text

TOP = "vta"
PART = re.compile(r"^[a-zA-Z][a-zA-Z0-9_\-]{3,63}$")
CLOCK_NS = (1.0, 100.0)
SCRIPTS = ("run_hls.tcl", "package_ip.tcl", "README.md")


@dataclass(frozen=True)
class Project:
    """What was written: the folder and its files, relative to it."""

    folder: Path
    files: tuple[str, ...]


def write_project(config: HardwareConfig, folder: Path, *, part: str, clock_ns: float = 10.0) -> Project:
    """Write the project of a configuration for a device and a clock.

    Args:
        config: hardware configuration.
        folder: where; made if it is not there.
        part: the device as the vendor's tool names it, such as ``xc7z020clg400-1``.
        clock_ns: clock period in nanoseconds.

    Raises:
        SimError: a part that cannot be one, or a clock out of range.
    """
    if not PART.match(part):
        raise SimError(f"part = '{part}': must be the device's full name, such as xc7z020clg400-1")
    if not CLOCK_NS[0] <= clock_ns <= CLOCK_NS[1]:
        raise SimError(f"clock = {clock_ns} ns: must be {CLOCK_NS[0]:g} to {CLOCK_NS[1]:g} ns")
    source = hls_folder()
    for name in ("src", "include", "tb", "sessions"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    written: list[str] = []

    def copy(path: Path, name: str) -> None:
        shutil.copyfile(path, folder / name)
        written.append(name)

    def write(text: str, name: str) -> None:
        (folder / name).write_text(text, "utf-8")
        written.append(name)

    for path in kernel_sources():
        copy(path, f"src/{path.name}")
    for path in headers():
        if path.parent.name in ("include", "tb"):
            copy(path, f"{path.parent.name}/{path.name}")
    copy(source / "tb" / "vta_tb.cpp", "tb/vta_tb.cpp")
    write(cpp_header(config), "include/openvta_spec.hpp")
    sessions = []
    for name, session in sample_sessions(config).items():
        session.save(folder / "sessions" / f"{name}.case")
        sessions.append(f"{name}.case")
    written += [f"sessions/{name}" for name in sessions]
    write(wrapper(config), "openvta_hls.v")
    values = {
        "TOP": TOP,
        "PART": part,
        "CLOCK": f"{clock_ns:g}",
        "CONFIG": config.name,
        "HASH": hash_text(config),
        "SOURCES": " ".join(path.name for path in kernel_sources()),
        "SESSIONS": " ".join(sessions),
    }
    for script in SCRIPTS:
        text = (source / "scripts" / script).read_text("utf-8")
        for key, value in values.items():
            text = text.replace(f"@{key}@", value)
        left = re.search(r"@[A-Z_]+@", text)
        if left is not None:
            raise SimError(f"{script}: nothing to put for {left.group()}")
        write(text, script)
    return Project(folder, tuple(written))
