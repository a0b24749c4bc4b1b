# SPDX-License-Identifier: Apache-2.0
"""The Chisel sources, compiled once per content.

sbt runs only when a source or the build changed. What it made is copied into the cache as one jar, so that elaborating
needs java alone and never sees classes of another state of the sources.
"""

from __future__ import annotations

import os
import shutil
import zipfile
from pathlib import Path

from openvta.sim.cosim import cache, toolchain
from openvta.sim.cosim.cache import Progress
from openvta.sim.cosim.errors import BuildFailed

_ATTEMPTS = 3
_JAR = "openvta.jar"


class _Changed(Exception):
    """A source was edited while sbt ran."""


def compile_scala(progress: Progress | None = None) -> Path:
    """The file with the classpath of the compiled sources, in a folder named after their content.

    Raises:
        ToolMissing: java, or both sbt and Maven, are not there.
        BuildFailed: sbt failed; the message ends with its output.
    """
    root = toolchain.repository() / "hardware" / "chisel"
    toolchain.java()
    for _ in range(_ATTEMPTS):
        key = _key(root)
        folder = cache.cache_folder() / "scala" / key
        file = folder / "classpath.txt"
        if file.is_file() and not _usable(file):
            shutil.rmtree(folder, ignore_errors=True)
        try:
            with cache.entry(folder) as work:
                if work is not None:
                    _compile(root, key, work, folder, progress)
        except _Changed:
            continue
        return file
    raise BuildFailed(f"the Chisel sources in {root} changed while they were compiled, {_ATTEMPTS} times: run again")


def _key(root: Path) -> str:
    build = [root / "build.sbt", root / "project" / "build.properties", *root.glob("project/*.sbt")]
    return cache.hash_text("scala", cache.hash_files(sorted([*root.glob("src/main/**/*.scala"), *build]), root))


def _usable(file: Path) -> bool:
    """Whether every jar is still there (they live in the user's own download cache)."""
    return all(Path(part).is_file() for part in file.read_text("utf-8").split(os.pathsep))


def _compile(root: Path, key: str, work: Path, folder: Path, progress: Progress | None) -> None:
    target = root / "target"
    with cache.locked(target / "openvta.lock"):
        cache.tell(progress, "compiling the Chisel sources with sbt (a minute or two the first time)")
        command = [*toolchain.sbt_command(cache.cache_folder()), "writeClasspath"]
        toolchain.run_tool(command, cwd=root, timeout=1500, what="sbt", log=work / "sbt.log")
        parts = [Path(part) for part in (target / "classpath.txt").read_text("utf-8").strip().split(os.pathsep)]
        with zipfile.ZipFile(work / _JAR, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as jar:
            for part in parts:
                for path in sorted(part.rglob("*")) if part.is_dir() else []:
                    if path.is_file():
                        jar.write(path, path.relative_to(part).as_posix())
    if _key(root) != key:
        raise _Changed
    jars = [folder / _JAR, *(part for part in parts if part.is_file())]
    (work / "classpath.txt").write_text(os.pathsep.join(map(str, jars)), "utf-8")
