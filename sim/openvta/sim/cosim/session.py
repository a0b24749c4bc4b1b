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

from openvta.sim.cosim.build import BuiltModel
from openvta.sim.cosim.errors import CosimError, SimulationFailed
from openvta.sim.cosim.runner import cocotb_environment, random_start

START_SECONDS = 120.0


class OpKind(IntEnum):
    """Host operations of the compiled side (``Kind`` in fast.cpp)."""

    WRITE = 0
    READ = 1
    WAIT = 2
    RESET = 3
    DELAY = 4


@dataclass(frozen=True)
class Op:
    """One host operation: addresses are register byte offsets; ``bound`` in cycles (0: none).

    WAIT reads the register every few cycles until ``(value & mask) == data``; its result is 1, or 0 after ``bound``.
    DELAY lets ``bound`` cycles pass.
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
        spread: up to so many cycles more, drawn for every burst.
        stall: chance of 256 that a channel stands still in a cycle.
        inside: the same for every stall point inside a design built with "stalls".
        disorder: beats of different ids come in any order.
        seed: of everything random here.
    """

    read_latency: int = 1
    write_latency: int = 1
    outstanding: int = 64
    closed_every: int = 0
    spread: int = 0
    stall: int = 0
    inside: int = 0
    disorder: bool = False
    seed: int = 1

    def __post_init__(self) -> None:
        for name in ("read_latency", "write_latency", "outstanding"):
            if getattr(self, name) < 1:
                raise CosimError(f"memory model: {name} = {getattr(self, name)}: must be at least 1")
        if self.closed_every < 0 or self.closed_every == 1:
            raise CosimError(f"memory model: closed_every = {self.closed_every}: must be 0 (never) or at least 2")
        if self.spread < 0:
            raise CosimError(f"memory model: spread = {self.spread}: must be at least 0")
        for name in ("stall", "inside"):
            if not 0 <= getattr(self, name) <= 240:
                raise CosimError(f"memory model: {name} = {getattr(self, name)}: must be 0..240 (of 256)")

    def settings(self) -> list[int]:
        """Arguments of ``fast_settings`` in fast.cpp."""
        return [
            self.read_latency, self.write_latency, self.outstanding, self.closed_every,
            self.spread, self.stall, self.inside, int(self.disorder), self.seed,
        ]  # fmt: skip


IDEAL = MemoryModel()
DRAM = MemoryModel(read_latency=60, write_latency=60, outstanding=16, closed_every=10)


@dataclass(frozen=True)
class BusFault:
    """Answer accesses that touch ``bytes`` bytes from ``address`` with ``response`` (2 SLVERR, 3 DECERR).

    Response 4: none comes, and nothing behind it, for as long as the fault is set.
    """

    address: int
    bytes: int
    response: int
    write: bool


@dataclass(frozen=True)
class Answer:
    """What a request gave: one value a READ or WAIT, retire events (cycle, unit, index), the cycle it ended.

    ``gemm_ends``: for each GEMM that has micro-ops, in order, the cycle its last one entered the array.
    ``hashes``: of every event, what the instruction wrote (:mod:`openvta.spec.cellhash`); zeros unless traced.
    """

    results: tuple[int, ...]
    retired: tuple[tuple[int, int, int], ...]
    cycle: int
    gemm_ends: tuple[int, ...] = ()
    hashes: tuple[int, ...] = ()


class FastSession:
    """A simulator process with compiled clock, host and memory.

    Args:
        model: built with :func:`openvta.sim.cosim.build.fast_harness`.
        memory_bytes: size of device memory, shared with the process.
        memory_base: device address of its first byte.
        memory_model: timing of the memory.
        waves: file for the waveform (the model must be built with waves).
        coverage_file: file for coverage (the model must be built with it).
        seed: cocotb's seed, and that of a checked model's initial state.
        arguments: more arguments of the simulator, such as plusargs.
    """

    def __init__(
        self,
        model: BuiltModel,
        memory_bytes: int,
        *,
        memory_base: int = 0,
        memory_model: MemoryModel = IDEAL,
        waves: Path | None = None,
        coverage_file: Path | None = None,
        seed: int = 1,
        arguments: Sequence[str] = (),
    ) -> None:
        shared = cocotb_environment(model, "openvta.sim.cosim.agent", seed, Path("results.xml"))
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
        self._buffer = b""
        self._connection, theirs = socket.socketpair()
        environment = {
            **shared,
            "COCOTB_LOG_LEVEL": "WARNING",
            "OPENVTA_SOCKET": str(theirs.fileno()),
            "OPENVTA_MEMORY": str(self._memory_file),
            "OPENVTA_MEMORY_BASE": str(memory_base),
            "OPENVTA_MEMORY_BYTES": str(memory_bytes),
        }
        command = [str(model.executable), *random_start(model, seed), *arguments]
        if coverage_file is not None:
            command.append(f"+verilator+coverage+file+{coverage_file.resolve()}")
        if waves is not None:
            command += ["--trace", "--trace-file", str(waves.resolve())]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                command, cwd=self._folder, env=environment, stdin=subprocess.DEVNULL, stdout=log,
                stderr=subprocess.STDOUT, start_new_session=True, pass_fds=(theirs.fileno(),),
            )  # fmt: skip
        theirs.close()
        try:
            self._receive(START_SECONDS, "start")
        except BaseException:
            self.close()
            raise

    def set_memory_model(self, model: MemoryModel, faults: Sequence[BusFault] = ()) -> None:
        """Change memory timing and injected faults from the next request on."""
        self._model, self._faults, self._fresh = model, tuple(faults), True

    def request(self, ops: Sequence[Op], *, seconds: float) -> Answer:
        """Carry out operations in order.

        Raises:
            SimulationFailed: the simulator ended, did not answer within ``seconds``, the registers did not answer, or the
                accelerator broke a rule of the bus.
        """
        if self._closed:
            raise SimulationFailed("the session is closed")
        message: dict[str, Any] = {"ops": [[int(op.kind), op.address, op.data, op.mask, op.bound] for op in ops]}
        if self._fresh:
            message["settings"] = self._model.settings()
            message["faults"] = [[f.address, f.bytes, f.response, f.write] for f in self._faults]
            self._fresh = False
        answer = self._exchange(message, seconds)
        if answer["stuck"] >= 0:
            op = ops[answer["stuck"]]
            raise SimulationFailed(f"the registers did not answer: {op.kind.name} of register {op.address:#05x}")
        if answer["violations"]:
            raise SimulationFailed(f"bus rules broken {answer['violations']} times, first {answer['violation']}")
        retired = tuple((cycle, unit, index) for cycle, unit, index in answer["retired"])
        ends, hashes = tuple(answer["gemm_ends"]), tuple(answer["hashes"])
        return Answer(tuple(answer["results"]), retired, answer["cycle"], ends, hashes)

    def close(self) -> None:
        """Stop the simulator and remove its files."""
        if self._closed:
            return
        self._closed = True
        with contextlib.suppress(OSError):
            self._connection.sendall(b'{"stop": true}\n')
        self._connection.close()
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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _kill(self) -> None:
        """End the process if it does not end at once by itself."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(2)
        if self._process.poll() is None:
            with contextlib.suppress(OSError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(20)

    def _tail(self) -> str:
        with contextlib.suppress(OSError):
            return "\n".join(self._log.read_text("utf-8", "replace").splitlines()[-20:])
        return ""

    def _exchange(self, message: dict[str, Any], seconds: float) -> dict[str, Any]:
        try:
            self._connection.sendall(json.dumps(message).encode() + b"\n")
        except OSError as error:
            raise SimulationFailed(f"lost the simulator: {error}\n{self._tail()}") from error
        return self._receive(seconds, "answer")

    def _receive(self, seconds: float, what: str) -> dict[str, Any]:
        """The next line from the simulator."""
        deadline = time.monotonic() + seconds
        while b"\n" not in self._buffer:
            left = deadline - time.monotonic()
            if left <= 0:
                self._kill()
                raise SimulationFailed(f"the simulator did not {what} within {seconds:.0f} s\n{self._tail()}")
            ready, _, _ = select.select([self._connection], [], [], min(left, 1.0))
            if not ready:
                continue
            try:
                data = self._connection.recv(1 << 20)
            except OSError as error:
                raise SimulationFailed(f"lost the simulator: {error}\n{self._tail()}") from error
            if not data:
                self._kill()
                status = self._process.returncode
                raise SimulationFailed(
                    f"the simulator ended with status {status} before it could {what}\n{self._tail()}"
                )
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        answer: dict[str, Any] = json.loads(line)
        return answer
