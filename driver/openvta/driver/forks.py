# SPDX-License-Identifier: Apache-2.0
"""Passes of one run shared among forked copies of this process, for devices that live in its memory.

A copy inherits the loaded bundle and everything the device has prepared, so it starts at once and nothing is sent to it.
Passes are claimed one after the other from a pipe; a copy writes what it made to a file of its own. Whatever is missing
in the end (a pass that failed, a copy that was killed or too slow) is made here, so errors appear as in a run without copies.
"""

from __future__ import annotations

import os
import pickle
import signal
import struct
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable
from typing import IO, Any, Generic, TypeVar

T = TypeVar("T")

CLAIM = struct.Struct("<I")
MOST_CLAIMS = 8192
"""Claims that fit a pipe whatever its size is (pages of 64 KiB on most systems)."""
PATIENCE_FACTOR, PATIENCE_SECONDS = 10, 30.0
"""A copy may take so many times the slowest pass here, and so many seconds more."""
POLL_SECONDS = 0.002


def jobs_wanted(given: int | None = None) -> int:
    """Processes to use: what is given, else OPENVTA_JOBS, else the processors this process may use.

    Raises:
        ValueError: the number is not a whole one from 1 up.
    """
    if given is not None:
        if given < 1:
            raise ValueError(f"jobs = {given}: must be 1 or more")
        return given
    text = os.environ.get("OPENVTA_JOBS")
    if not text:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if not text.isdecimal() or int(text) < 1:
        raise ValueError(f"OPENVTA_JOBS = '{text}': must be a whole number from 1 up")
    return int(text)


def can_fork() -> bool:
    """Whether copies of this process are safe: on Linux, while it has one Python thread."""
    return sys.platform == "linux" and threading.active_count() == 1


class Shared(Generic[T]):
    """``count`` pieces of work, number 0 up, shared among ``workers`` processes, this one included.

    Args:
        work: makes the result of a piece, which must be picklable. This process always does the last piece.
        prepare: called in every copy before its first piece.
    """

    def __init__(
        self, work: Callable[[int], T], count: int, workers: int, *, prepare: Callable[[], None] = lambda: None
    ) -> None:
        self._work = work
        self._count = count
        self._workers = min(workers, count)
        self._prepare = prepare
        self._step = -(-max(1, count - 1) // MOST_CLAIMS)

    def run(self) -> list[T]:
        """Results in order. Exceptions of ``work`` come from a call in this process."""
        read, write = os.pipe()
        try:
            for first in range(0, self._count - 1, self._step):
                os.write(write, CLAIM.pack(first))
        finally:
            os.close(write)
        files = [tempfile.TemporaryFile() for _ in range(self._workers - 1)]  # noqa: SIM115
        children: list[int] = []
        results: dict[int, T] = {}
        try:
            for file in files:
                children.append(self._fork(read, file))
            slowest = self._take(read, lambda number, result: results.update({number: result}))
            self._wait(children, PATIENCE_FACTOR * slowest * self._step + PATIENCE_SECONDS)
            for file in files:
                results.update(_saved(file))
            for number in range(self._count):
                if number not in results or number == self._count - 1:
                    results[number] = self._work(number)
        finally:
            _stop(children)
            os.close(read)
            for file in files:
                file.close()
        return [results[number] for number in range(self._count)]

    def _fork(self, read: int, file: IO[bytes]) -> int:
        with warnings.catch_warnings():
            # Threads of libraries (BLAS, onnxruntime) do not run in the copy, and it starts none of their work.
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if child:
            return child
        status = 1
        try:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            self._prepare()

            def keep(number: int, result: T) -> None:
                pickle.dump((number, result), file, protocol=pickle.HIGHEST_PROTOCOL)
                file.flush()

            self._take(read, keep)
            status = 0
        finally:
            os._exit(status)  # neither exit handlers nor buffers of the parent

    def _take(self, read: int, keep: Callable[[int, T], None]) -> float:
        """Claim pieces until none is left; the seconds of the slowest."""
        slowest = 0.0
        while claim := os.read(read, CLAIM.size):
            first = CLAIM.unpack(claim)[0]
            for number in range(first, min(first + self._step, self._count - 1)):
                began = time.monotonic()
                keep(number, self._work(number))
                slowest = max(slowest, time.monotonic() - began)
        return slowest

    @staticmethod
    def _wait(children: list[int], patience: float) -> None:
        """Until every child has ended, or patience has."""
        until = time.monotonic() + patience
        while children and time.monotonic() < until:
            children[:] = [child for child in children if os.waitpid(child, os.WNOHANG)[0] == 0]
            if children:
                time.sleep(POLL_SECONDS)


def _saved(file: IO[bytes]) -> dict[int, Any]:
    """What a copy wrote, up to where it stopped."""
    found: dict[int, Any] = {}
    file.seek(0)
    while True:
        try:
            number, result = pickle.load(file)  # written by a copy of this process
        except (EOFError, pickle.UnpicklingError):
            return found
        found[number] = result


def _stop(children: list[int]) -> None:
    for child in children:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    children.clear()
