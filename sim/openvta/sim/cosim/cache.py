# SPDX-License-Identifier: Apache-2.0
"""A cache of things that are slow to build, keyed by a hash of everything that goes into them.

An entry is a folder. It is made under another name and renamed when complete, so there are no half-made entries; a
lock beside it keeps two processes from making the same one.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from openvta.sim.cosim import toolchain
from openvta.sim.cosim.errors import CosimError

Progress = Callable[[str], None]
"""Told about the start and end of long steps, one line at a time."""

LOCK_SECONDS = 1800.0
_UNFINISHED = ".building-"
_UNFINISHED_SECONDS = 24 * 3600.0


def cache_folder() -> Path:
    """Where builds are kept: OPENVTA_CACHE, else build/cache of the checkout."""
    override = os.environ.get("OPENVTA_CACHE")
    return Path(override).resolve() if override else toolchain.repository() / "build" / "cache"


def tell(progress: Progress | None, text: str) -> None:
    """Report a step, where somebody listens."""
    if progress is not None:
        progress(text)


def hash_text(*parts: str) -> str:
    """16 hexadecimal digits that stand for the parts and their order."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part.encode())
    return digest.hexdigest()[:16]


def hash_files(files: Sequence[Path], root: Path | None = None) -> str:
    """Hash of names (relative to ``root``, else bare) and contents."""
    digest = hashlib.sha256()
    for path in files:
        name = str(path.relative_to(root)) if root is not None else path.name
        content = path.read_bytes()
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock on ``path`` against other processes and threads.

    Raises:
        CosimError: somebody else held it for ``LOCK_SECONDS``.
    """
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
def entry(folder: Path) -> Iterator[Path | None]:
    """Yields None when the entry exists, else a work folder that becomes the entry when the body succeeds."""
    if folder.is_dir():
        yield None
        return
    with locked(folder.with_name(folder.name + ".lock")):
        if folder.is_dir():
            yield None
            return
        _sweep(folder.parent)
        work = Path(tempfile.mkdtemp(prefix=_UNFINISHED, dir=folder.parent))
        try:
            yield work
            work.chmod(0o755)
            work.rename(folder)
        finally:
            if work.is_dir():
                shutil.rmtree(work, ignore_errors=True)


def _sweep(parent: Path) -> None:
    """Remove what a build that was killed left behind."""
    now = time.time()
    for path in parent.glob(f"{_UNFINISHED}*"):
        with contextlib.suppress(OSError):
            if now - path.stat().st_mtime > _UNFINISHED_SECONDS:
                shutil.rmtree(path, ignore_errors=True)
