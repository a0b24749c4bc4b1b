# SPDX-License-Identifier: Apache-2.0
"""One thread for numpy's matrix products while a stream runs.

The products of a simulated layer are small; on few or busy cores a threaded product waits longer for its helpers than it
computes. The limit is taken back when the run ends. Without a library that can be asked nothing happens.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

import numpy as np

NAMES = (
    "scipy_openblas_{}_num_threads64_",
    "scipy_openblas_{}_num_threads",
    "openblas_{}_num_threads64_",
    "openblas_{}_num_threads",
)


def _libraries() -> list[Path]:
    """OpenBLAS as numpy's wheels carry it."""
    package = Path(np.__file__).parent
    folders = (package.parent / "numpy.libs", package / ".libs", package / ".dylibs")
    return sorted(path for folder in folders if folder.is_dir() for path in folder.glob("*openblas*"))


@lru_cache(maxsize=1)
def _controls() -> tuple[Callable[[], int], Callable[[int], None]] | None:
    """Functions that read and set the number of threads, or None."""
    for path in _libraries():
        try:
            library = ctypes.CDLL(str(path))
        except OSError:
            continue
        for name in NAMES:
            get, put = getattr(library, name.format("get"), None), getattr(library, name.format("set"), None)
            if get is not None and put is not None:
                get.restype, get.argtypes = ctypes.c_int, []
                put.restype, put.argtypes = None, [ctypes.c_int]
                return get, put
    return None


@contextmanager
def one_thread() -> Iterator[None]:
    """Matrix products run on the calling thread inside the block."""
    controls = _controls()
    if controls is None:
        yield
        return
    get, put = controls
    before = get()
    put(1)
    try:
        yield
    finally:
        put(before)
