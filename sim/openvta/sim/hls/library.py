# SPDX-License-Identifier: Apache-2.0
"""A loaded kernel: one core with its own state, whatever else is loaded in this process."""

from __future__ import annotations

import _ctypes
import contextlib
import ctypes
import os
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path

from openvta.sim.errors import SimError
from openvta.sim.memory import Refusal


class HlsError(SimError):
    """The kernel did not answer or could not go on; the message has the fill of every stream."""


class Library:
    """A private copy of a built kernel. Its state is static, as hardware's is, so each core needs a library of its own.

    Args:
        path: what :func:`openvta.sim.hls.build.build_library` made.
    """

    def __init__(self, path: Path) -> None:
        handle, name = tempfile.mkstemp(prefix="openvta-hls-", suffix=".so")
        os.close(handle)
        try:
            shutil.copyfile(path, name)
            self._library = ctypes.CDLL(name)
        finally:
            with contextlib.suppress(OSError):
                Path(name).unlink()
        self._open = True
        library = self._library
        library.ovta_start.argtypes = [
            ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_int, ctypes.c_uint32, ctypes.c_uint32,
        ]  # fmt: skip
        library.ovta_refuse.argtypes = [ctypes.c_uint64, ctypes.c_uint64, ctypes.c_int]
        library.ovta_write.argtypes = [ctypes.c_uint32, ctypes.c_uint32]
        library.ovta_read.argtypes = [ctypes.c_uint32, ctypes.POINTER(ctypes.c_uint32)]
        library.ovta_wait.argtypes = [ctypes.c_uint64, ctypes.c_double]
        library.ovta_error.restype = ctypes.c_char_p
        library.ovta_fills.restype = ctypes.c_char_p
        library.ovta_stop.restype = None

    def start(self, memory: int, base: int, nbytes: int, *, threaded: bool, depth_limit: int, seconds: float) -> None:
        """Give the core its memory (a pointer to ``nbytes`` at device address ``base``), and start its threads."""
        milliseconds = max(1, round(1000 * seconds))
        self._check(self._library.ovta_start(memory, base, nbytes, int(threaded), depth_limit, milliseconds))

    def refuse(self, refused: Iterable[Refusal]) -> None:
        """The ranges that memory answers with an error from now on; the core must not run."""
        self._check(self._library.ovta_refuse(0, 0, 0))
        for each in refused:
            self._check(self._library.ovta_refuse(each.address, each.nbytes, int(each.write)))

    def write(self, offset: int, value: int) -> None:
        """Write a register over AXI4-Lite."""
        self._check(self._library.ovta_write(offset, value))

    def read(self, offset: int) -> int:
        """Read a register over AXI4-Lite."""
        value = ctypes.c_uint32()
        self._check(self._library.ovta_read(offset, ctypes.byref(value)))
        return value.value

    def wait(self, steps: int, seconds: float) -> bool:
        """Run until the core stops; False where it still runs after ``steps`` (with threads: ``seconds``)."""
        return bool(self._check(self._library.ovta_wait(steps, seconds)))

    def interrupt(self) -> bool:
        """Level of the interrupt line."""
        return bool(self._library.ovta_interrupt())

    def fills(self) -> str:
        """Every stream with its fill and its depth."""
        return str(self._library.ovta_fills().decode())

    def close(self) -> None:
        """End its threads and unload it."""
        if not self._open:
            return
        self._open = False
        self._library.ovta_stop()
        _ctypes.dlclose(self._library._handle)

    def _check(self, result: int) -> int:
        if result < 0:
            raise HlsError(f"HLS kernel: {self._library.ovta_error().decode()}")
        return int(result)
