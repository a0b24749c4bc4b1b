# SPDX-License-Identifier: Apache-2.0
"""Parent side of a running simulator: shared memory, register requests, bounded waits."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt

from openvta.sim.cosim import toolchain
from openvta.sim.cosim.build import BuiltModel
from openvta.sim.cosim.errors import CosimError, SimulationFailed

START_SECONDS = 120.0


class OpKind(IntEnum):
    """Host operations of the compiled side (``Kind`` in fast.cpp)."""

    WRITE = 0
    READ = 1
    WAIT = 2
    RESET = 3


@dataclass(frozen=True)
class Op:
    """One host operation: addresses are register byte offsets; ``bound`` in cycles (0: none).

    WAIT reads the register every few cycles until ``(value & mask) == data``; its result is 1, or 0 after ``bound``.
    """

    kind: OpKind
    address: int = 0
    data: int = 0
    mask: int = 0
    bound: int = 0


@dataclass(frozen=True)
class MemoryModel:
    """Timing of the memory, in cycles.

    Attributes:
        read_latency: AR handshake to first beat (1: the cycle after).
        write_latency: last W beat to B.
        outstanding: bursts accepted in each direction.
        closed_every: every n-th cycle R and W are closed; 0: never.
    """

    read_latency: int = 1
    write_latency: int = 1
    outstanding: int = 64
    closed_every: int = 0

    def __post_init__(self) -> None:
        for name in ("read_latency", "write_latency", "outstanding"):
            if getattr(self, name) < 1:
                raise CosimError(f"memory model: {name} = {getattr(self, name)}: must be at least 1")
        if self.closed_every < 0 or self.closed_every == 1:
            raise CosimError(f"memory model: closed_every = {self.closed_every}: must be 0 (never) or at least 2")


IDEAL = MemoryModel()
DRAM = MemoryModel(read_latency=60, write_latency=60, outstanding=16, closed_every=10)


@dataclass(frozen=True)
class BusFault:
    """Answer accesses that touch ``bytes`` bytes from ``address`` with ``response`` (2 SLVERR, 3 DECERR)."""

    address: int
    bytes: int
    response: int
    write: bool


@dataclass(frozen=True)
class Answer:
    """What a request gave: one value a READ or WAIT, retire events (cycle, unit, index), the cycle it ended."""

    results: tuple[int, ...]
    retired: tuple[tuple[int, int, int], ...]
    cycle: int


class FastSession:
    """A simulator process with compiled clock, host and memory.

    Args:
        model: built with :func:`openvta.sim.cosim.build.fast_harness`.
        memory_bytes: size of device memory, shared with the process.
        memory_base: device address of its first byte.
        memory_model: timing of the memory.
        waves: file for the waveform (the model must be built with waves).
        seed: cocotb's seed.
    """

    def __init__(
        self,
        model: BuiltModel,
        memory_bytes: int,
        *,
        memory_base: int = 0,
        memory_model: MemoryModel = IDEAL,
        waves: Path | None = None,
        seed: int = 1,
    ) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="openvta-cosim-"))
        self._log = self._folder / "simulator.log"
        self._memory_file = self._folder / "memory"
        with self._memory_file.open("wb") as file:
            file.truncate(memory_bytes)
        self.memory: npt.NDArray[np.uint8] = np.memmap(self._memory_file, np.uint8, "r+", shape=(memory_bytes,))
        self.memory_base = memory_base
        self._model = memory_model
        self._faults: tuple[BusFault, ...] = ()
        self._fresh = True
        self._closed = False
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        path = str(self._folder / "socket")
        listener.bind(path)
        listener.listen(1)
        environment = _cocotb_environment(model, path, self._memory_file, memory_base, memory_bytes, seed, self._folder)
        command = [str(model.executable)]
        if waves is not None:
            command += ["--trace", "--trace-file", str(waves.resolve())]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                command, cwd=self._folder, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                start_new_session=True,
            )  # fmt: skip
        try:
            self._connection = self._accept(listener)
        except BaseException:
            self.close()
            raise
        finally:
            listener.close()
        self._buffer = b""

    def set_memory_model(self, model: MemoryModel, faults: Sequence[BusFault] = ()) -> None:
        """Change memory timing and injected faults from the next request on."""
        self._model, self._faults, self._fresh = model, tuple(faults), True

    def request(self, ops: Sequence[Op], *, seconds: float) -> Answer:
        """Carry out operations in order.

        Raises:
            SimulationFailed: the simulator ended, or did not answer within ``seconds``.
        """
        message: dict[str, Any] = {"ops": [[int(op.kind), op.address, op.data, op.mask, op.bound] for op in ops]}
        if self._fresh:
            m = self._model
            message["settings"] = [m.read_latency, m.write_latency, m.outstanding, m.closed_every]
            message["faults"] = [[f.address, f.bytes, f.response, f.write] for f in self._faults]
            self._fresh = False
        answer = self._exchange(message, seconds)
        retired = tuple((cycle, unit, index) for cycle, unit, index in answer["retired"])
        return Answer(tuple(answer["results"]), retired, answer["cycle"])

    def close(self) -> None:
        """Stop the simulator and remove its files."""
        if self._closed:
            return
        self._closed = True
        connection = getattr(self, "_connection", None)
        if connection is not None:
            with contextlib.suppress(OSError):
                connection.sendall(b'{"stop": true}\n')
            connection.close()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._kill()
        del self.memory
        for path in sorted(self._folder.rglob("*"), reverse=True):
            with contextlib.suppress(OSError):
                path.unlink()
        with contextlib.suppress(OSError):
            self._folder.rmdir()

    def __enter__(self) -> FastSession:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _kill(self) -> None:
        with contextlib.suppress(OSError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(20)

    def _tail(self) -> str:
        with contextlib.suppress(OSError):
            return "\n".join(self._log.read_text("utf-8", "replace").splitlines()[-20:])
        return ""

    def _accept(self, listener: socket.socket) -> socket.socket:
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            ready, _, _ = select.select([listener], [], [], 0.05)
            if ready:
                return listener.accept()[0]
            if self._process.poll() is not None:
                raise SimulationFailed(f"the simulator ended with status {self._process.returncode} at start\n{self._tail()}")
        self._kill()
        raise SimulationFailed(f"the simulator did not start within {START_SECONDS:.0f} s\n{self._tail()}")

    def _exchange(self, message: dict[str, Any], seconds: float) -> dict[str, Any]:
        deadline = time.monotonic() + seconds
        try:
            self._connection.sendall(json.dumps(message).encode() + b"\n")
            while b"\n" not in self._buffer:
                left = deadline - time.monotonic()
                if left <= 0:
                    self._kill()
                    raise SimulationFailed(f"the simulator did not answer within {seconds:.0f} s\n{self._tail()}")
                ready, _, _ = select.select([self._connection], [], [], min(left, 1.0))
                if ready:
                    data = self._connection.recv(1 << 20)
                    if not data:
                        self._process.wait(20)
                        raise SimulationFailed(f"the simulator ended with status {self._process.returncode}\n{self._tail()}")
                    self._buffer += data
        except OSError as error:
            raise SimulationFailed(f"lost the simulator: {error}\n{self._tail()}") from error
        line, _, self._buffer = self._buffer.partition(b"\n")
        answer: dict[str, Any] = json.loads(line)
        return answer


def _cocotb_environment(
    model: BuiltModel, path: str, memory: Path, base: int, size: int, seed: int, folder: Path
) -> dict[str, str]:
    from cocotb_tools import config

    return {
        **os.environ,
        "GPI_USERS": ";".join((str(toolchain.libpython()), str(config.pygpi_entry_point()))),
        "PYGPI_PYTHON_BIN": sys.executable,
        "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry),
        "COCOTB_TOPLEVEL": model.harness.toplevel,
        "COCOTB_TEST_MODULES": "openvta.sim.cosim.agent",
        "TOPLEVEL_LANG": "verilog",
        "COCOTB_TRUST_INERTIAL_WRITES": "1",
        "COCOTB_RANDOM_SEED": str(seed),
        "COCOTB_RESULTS_FILE": str(folder / "results.xml"),
        "COCOTB_LOG_LEVEL": "WARNING",
        "OPENVTA_SOCKET": path,
        "OPENVTA_MEMORY": str(memory),
        "OPENVTA_MEMORY_BASE": str(base),
        "OPENVTA_MEMORY_BYTES": str(size),
    }
