# SPDX-License-Identifier: Apache-2.0
"""Runs inside the simulator, as a cocotb test: carries requests from the parent to the compiled host and memory.

Python is called once a request, never per clock cycle: the clock stands still while a request is read.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import socket
from pathlib import Path
from typing import Any

import cocotb
from cocotb.triggers import Timer


def _library() -> Any:
    library = ctypes.CDLL(None)
    u32, u64 = ctypes.c_uint32, ctypes.c_uint64
    library.fast_memory.argtypes = [ctypes.c_void_p, u64, u64]
    library.fast_settings.argtypes = [u64, u64, u32, u32, u64, u32, u32, u32, u64]
    library.fast_fault.argtypes = [u64, u64, u32, u32]
    library.fast_push.argtypes = [u32, u32, u32, u32, u64]
    library.fast_results.argtypes = [ctypes.c_void_p, u64]
    library.fast_results.restype = u64
    library.fast_retired.argtypes = [ctypes.c_void_p]
    library.fast_retired_count.restype = u64
    library.fast_gemm_ends.argtypes = [ctypes.c_void_p]
    library.fast_gemm_count.restype = u64
    library.fast_cycle.restype = u64
    library.fast_stuck.restype = ctypes.c_int64
    library.fast_violations.restype = u64
    library.fast_violation.restype = ctypes.c_char_p
    return library


def _handle(library: Any, request: dict[str, Any]) -> None:
    settings = request.get("settings")
    if settings is not None:
        library.fast_settings(*settings)
    if "faults" in request:
        library.fast_clear_faults()
        for base, size, response, write in request["faults"]:
            library.fast_fault(base, size, response, int(write))
    for kind, address, data, mask, bound in request.get("ops", []):
        library.fast_push(kind, address, data, mask, bound)


def _answer(library: Any, count: int) -> dict[str, Any]:
    values = (ctypes.c_uint32 * max(1, count))()
    got = library.fast_results(ctypes.addressof(values), count)
    events = int(library.fast_retired_count())
    flat = (ctypes.c_uint64 * max(3, 3 * events))()
    library.fast_retired(ctypes.addressof(flat))
    values_of = list(flat[: 3 * events])
    retired = [[at, who >> 32, who & 0xFFFFFFFF] for at, who in zip(values_of[::3], values_of[2::3], strict=True)]
    gemms = int(library.fast_gemm_count())
    ends = (ctypes.c_uint64 * max(1, gemms))()
    library.fast_gemm_ends(ends)
    cycle, stuck = int(library.fast_cycle()), int(library.fast_stuck())
    return {
        "results": list(values[:got]), "retired": retired, "hashes": values_of[1::3], "gemm_ends": list(ends[:gemms]),
        "cycle": cycle, "stuck": stuck,
        "violations": int(library.fast_violations()), "violation": library.fast_violation().decode(),
    }  # fmt: skip


@cocotb.test()
async def session(dut: Any) -> None:
    """Serve requests until the parent says stop or goes away."""
    library = _library()
    size = int(os.environ["OPENVTA_MEMORY_BYTES"])
    with Path(os.environ["OPENVTA_MEMORY"]).open("r+b") as file:
        memory = mmap.mmap(file.fileno(), size)
    anchor = ctypes.c_char.from_buffer(memory)
    library.fast_memory(ctypes.addressof(anchor), int(os.environ["OPENVTA_MEMORY_BASE"]), size)
    connection = socket.socket(fileno=int(os.environ["OPENVTA_SOCKET"]))
    stream = connection.makefile("rwb")
    stream.write(b'{"ready": true}\n')
    stream.flush()
    await Timer(1, "ns")
    for line in stream:
        request = json.loads(line)
        if request.get("stop"):
            break
        _handle(library, request)
        ops = request.get("ops", [])
        if ops:
            await dut.wake.value_change
        stream.write(json.dumps(_answer(library, len(ops))).encode() + b"\n")
        stream.flush()
    connection.close()
