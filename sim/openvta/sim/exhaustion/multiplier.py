# SPDX-License-Identifier: Apache-2.0
"""Every pair of 8-bit operands through every multiplier cell of the GEMM array, in RTL, one cell of a sum at a time.

The input vectors of a launch are zero but for one lane, so each accumulator takes exactly one product. The hash of all cells
a GEMM wrote is compared with that of products formed here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from openvta.sim.cosim.cache import Progress, tell
from openvta.sim.cosim.transport import CosimTransport
from openvta.sim.exhaustion.errors import ExhaustionError
from openvta.sim.fsim.scratchpads import Memory
from openvta.spec import HardwareConfig, Insn, MemId, Opcode, Program, Unit, cellhash, make
from openvta.spec.insn import isa_of
from openvta.spec.registers import CONTROL, ERROR, OFFSETS

VALUES = 256
CYCLES = 400_000
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Pairs:
    """What was tried: pairs of each cell, cells, products compared, and what differed (empty if nothing)."""

    pairs: int
    cells: int
    products: int
    failures: tuple[str, ...]


def _operands(config: HardwareConfig) -> None:
    """Refuse a configuration whose array does not multiply 8-bit numbers or whose buffers are too small."""
    limits = {
        "inp_bits": (config.inp_bits, 8), "wgt_bits": (config.wgt_bits, 8),
        "wgt_depth": (config.wgt_depth, VALUES // config.block), "acc_depth": (config.acc_depth, VALUES // config.block),
    }  # fmt: skip
    for name, (value, least) in limits.items():
        if value < least:
            raise ExhaustionError(
                f"configuration '{config.name}': {name} = {value}: must be at least {least}; take 'tiny'"
            )


def _launches(config: HardwareConfig) -> Iterator[tuple[int, int, Ints]]:
    """(lane, rotation, values of a): with all of them every cell meets every pair."""
    group = min(config.inp_depth, config.uop_depth, VALUES)
    values = np.arange(-128, 128)
    for lane in range(config.block):
        for rotation in range(config.block):
            for start in range(0, VALUES, group):
                yield lane, rotation, values[start : start + group]


def _weights(config: HardwareConfig, rotation: int) -> Ints:
    """b of (block, row): over all rotations every row meets every value."""
    blocks, rows = VALUES // config.block, np.arange(config.block)
    return np.arange(blocks)[:, None] * config.block + (rows + rotation) % config.block - 128


def _program(config: HardwareConfig, count: int) -> Program:
    blocks = VALUES // config.block
    loop: dict[str, int] = {"iter_out": 1, "iter_in": blocks, "dst_factor_in": 1}

    def load(memory: MemId, size: int, **tokens: int) -> Insn:
        return make(Opcode.LOAD, memory_id=int(memory), y_size=1, x_size=size, x_stride=size, **tokens)

    insns = [
        load(MemId.INP, count),
        load(MemId.WGT, blocks, push_next=1),
        load(MemId.UOP, count),
        make(Opcode.GEMM, reset=1, uop_begin=0, uop_end=1, pop_prev=1, **loop),
        *(make(Opcode.GEMM, uop_begin=k, uop_end=k + 1, wgt_factor_in=1, **loop) for k in range(count)),
        make(Opcode.FINISH),
    ]
    return Program.assemble(config, insns)


def _expected(config: HardwareConfig, values: Ints, weights: Ints) -> list[int]:
    """Hash of what each GEMM writes: sums of the products so far, and their low bits in out."""
    blocks = weights.shape[0]
    cells = np.arange(blocks, dtype=np.uint64)
    hashes = []
    for total in np.cumsum(values[:, None, None] * weights[None], axis=0):
        rows = np.repeat(total[:, None, :], config.batch, axis=1).reshape(blocks, -1)
        acc = rows.astype("<i4").view(np.uint8).reshape(blocks, -1)
        out = rows.astype(np.int8).view(np.uint8)
        hashed = cellhash.cells_hash(int(Memory.ACC), cells, acc) + cellhash.cells_hash(int(Memory.OUT), cells, out)
        hashes.append(hashed & (1 << 64) - 1)
    return hashes


def run_pairs(config: HardwareConfig, *, seed: int = 1, progress: Progress | None = None) -> Pairs:
    """All pairs on every cell of the array.

    Raises:
        ExhaustionError: the configuration has other operands, or too small buffers.
        ToolMissing, BuildFailed, SimulationFailed: as the names say.
    """
    _operands(config)
    failures: list[str] = []
    products = 0
    device = CosimTransport(
        config, memory_bytes=1 << 20, checked=True, trace=True, stalls=True, seed=seed, progress=progress
    )
    try:
        base = {name: device.allocate(1 << 16) for name in ("insn", "uop", "inp", "wgt", "acc", "out")}
        for name, address in base.items():
            device.write_register(OFFSETS[f"{name.upper()}_BASE_LO"], address & 0xFFFFFFFF)
            device.write_register(OFFSETS[f"{name.upper()}_BASE_HI"], address >> 32)
        for number, (lane, rotation, values) in enumerate(_launches(config)):
            weights = _weights(config, rotation)
            program = _program(config, len(values))
            _place(device, config, base, program, lane, values, weights)
            device.write_register(OFFSETS["INSN_COUNT"], len(program.words))
            device.write_register(OFFSETS["CONTROL"], CONTROL.field("launch").mask)
            where = f"lane {lane}, rotation {rotation}, a from {values[0]} to {values[-1]}"
            if not device.wait(cycles=CYCLES) or (error := device.read_register(OFFSETS["ERROR"])):
                failures.append(f"{where}: no end, or {ERROR.decode(error)}")
                break
            got = [(index, found) for _, unit, index, found in device.trace_hashes() if unit == Unit.COMPUTE]
            expected = _expected(config, values, weights)
            gemms = [found for index, found in got if 4 <= index < 4 + len(values)]
            wrong = [int(a) for a, one, other in zip(values, expected, gemms, strict=False) if one != other]
            if len(gemms) != len(expected) or wrong:
                failures.append(
                    f"{where}: {len(gemms)} of {len(expected)} GEMMs; first wrong product with a = {wrong[:1]}"
                )
                break
            products += len(values) * weights.size * config.batch
            if number % 16 == 15:
                tell(progress, f"{products} products compared")
    finally:
        device.close()
    cells = config.batch * config.block * config.block
    return Pairs(VALUES * VALUES, cells, products, tuple(failures))


def _place(
    device: CosimTransport, config: HardwareConfig, base: dict[str, int], program: Program, lane: int, values: Ints, weights: Ints
) -> None:  # fmt: skip
    inp = np.zeros((len(values), config.batch, config.block), np.int8)
    inp[:, :, lane] = values[:, None]
    wgt = np.zeros((weights.shape[0], config.block, config.block), np.int8)
    wgt[:, :, lane] = weights
    uops = np.array([isa_of(config).uop.encode({"src": k}) for k in range(len(values))], "<u4")
    for name, data in (("inp", inp), ("wgt", wgt), ("uop", uops)):
        device.write(base[name], np.frombuffer(data.tobytes(), np.uint8))
    device.write(base["insn"], program.to_bytes())
