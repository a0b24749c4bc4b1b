# SPDX-License-Identifier: Apache-2.0
"""What LOAD must do, in plain Python, and a device memory whose every byte is known without being stored."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import lru_cache

from openvta.spec.config import HardwareConfig
from openvta.spec.insn import Insn, encode, make
from openvta.spec.isa import MemId, Opcode

CHUNK = 64


@lru_cache(maxsize=1 << 16)
def _chunk(number: int) -> bytes:
    return hashlib.blake2b(number.to_bytes(8, "little"), digest_size=CHUNK).digest()


def memory_bytes(address: int, count: int) -> bytes:
    """``count`` bytes of device memory from ``address`` on (64-bit addresses, wrapping)."""
    address %= 1 << 64
    first, last = address // CHUNK, (address + count - 1) // CHUNK
    data = b"".join(_chunk(number % (1 << 58)) for number in range(first, last + 1))
    start = address - first * CHUNK
    return data[start : start + count]


@dataclass(frozen=True)
class Memory:
    """One scratchpad: element size in device memory and on chip (bytes and bits), lane width, depth."""

    memory_id: MemId
    elem_bytes: int
    elem_bits: int
    lane_bits: int
    depth: int


def memory_of(config: HardwareConfig, memory_id: MemId) -> Memory:
    """The scratchpad a LOAD with this memory id fills."""
    acc_bits = config.acc_bytes * 8
    table = {
        MemId.UOP: Memory(MemId.UOP, config.uop_bytes, 32, 32, config.uop_depth),
        MemId.INP: Memory(MemId.INP, config.inp_bytes, config.inp_bytes * 8, config.inp_bits, config.inp_depth),
        MemId.WGT: Memory(MemId.WGT, config.wgt_bytes, config.wgt_bytes * 8, config.wgt_bits, config.wgt_depth),
        MemId.ACC: Memory(MemId.ACC, config.acc_bytes, acc_bits, config.acc_bits, config.acc_depth),
        MemId.ACC_INT8: Memory(MemId.ACC_INT8, config.acc8_bytes, acc_bits, config.acc_bits, config.acc_depth),
        MemId.ACC_UINT8: Memory(MemId.ACC_UINT8, config.acc8_bytes, acc_bits, config.acc_bits, config.acc_depth),
    }
    return table[memory_id]


@dataclass(frozen=True)
class Load:
    """One LOAD instruction, its base address and its position in the stream."""

    insn: Insn
    base: int
    index: int = 0
    memory: Memory = field(repr=False, default=None)  # type: ignore[assignment]

    def word(self, config: HardwareConfig) -> int:
        """The 128-bit instruction."""
        return encode(config, self.insn)

    @property
    def is_noop(self) -> bool:
        """Whether nothing is read or written."""
        return self.insn.is_noop

    @property
    def bytes_read(self) -> int:
        """Useful bytes read from device memory."""
        return 0 if self.is_noop else self.insn["x_size"] * self.insn["y_size"] * self.memory.elem_bytes

    @property
    def elements(self) -> int:
        """Elements written, pads included."""
        i = self.insn
        width = i["x_pad_0"] + i["x_size"] + i["x_pad_1"]
        return 0 if self.is_noop else (i["y_pad_0"] + i["y_size"] + i["y_pad_1"]) * width

    def row_address(self, y: int) -> int:
        """Byte address of the first element of row ``y``."""
        i = self.insn
        return (self.base + (i["dram_base"] + y * i["x_stride"]) * self.memory.elem_bytes) % (1 << 64)


def load(config: HardwareConfig, memory_id: MemId, *, base: int = 0x1000, index: int = 0, **values: int) -> Load:
    """A LOAD of this memory id from field values."""
    return Load(make(Opcode.LOAD, memory_id=memory_id, **values), base, index, memory_of(config, memory_id))


def fill_element(op: Load) -> int:
    """The pad element of an instruction, as raw bits."""
    memory, lanes = op.memory, op.memory.elem_bits // op.memory.lane_bits
    mask = (1 << memory.lane_bits) - 1
    value = op.insn.pad_value
    if op.insn["pad_min"]:
        lane = 1 << (memory.lane_bits - 1)
    elif memory.memory_id is MemId.ACC_UINT8 or value < 128:
        lane = value & mask
    else:
        lane = (value - 256) & mask
    return sum(lane << (memory.lane_bits * k) for k in range(lanes))


def stored_element(memory: Memory, raw: bytes) -> int:
    """An element of device memory as it is kept on chip, as raw bits."""
    if memory.memory_id is MemId.ACC_INT8:
        return sum(((byte - 256 if byte > 127 else byte) & 0xFFFFFFFF) << (32 * k) for k, byte in enumerate(raw))
    if memory.memory_id is MemId.ACC_UINT8:
        return sum(byte << (32 * k) for k, byte in enumerate(raw))
    return int.from_bytes(raw, "little")


def apply(op: Load, scratchpad: dict[int, int]) -> None:
    """Execute an instruction that stays in range on a scratchpad given as index -> raw bits."""
    if op.is_noop:
        return
    i, memory, place = op.insn, op.memory, op.insn["sram_base"]
    fill = fill_element(op)

    def put(element: int) -> None:
        nonlocal place
        assert place < memory.depth, "the reference handles loads in range only"
        scratchpad[place] = element
        place += 1

    width = i["x_pad_0"] + i["x_size"] + i["x_pad_1"]
    for _ in range(i["y_pad_0"] * width):
        put(fill)
    for y in range(i["y_size"]):
        for _ in range(i["x_pad_0"]):
            put(fill)
        row = memory_bytes(op.row_address(y), i["x_size"] * memory.elem_bytes)
        for x in range(i["x_size"]):
            put(stored_element(memory, row[x * memory.elem_bytes : (x + 1) * memory.elem_bytes]))
        for _ in range(i["x_pad_1"]):
            put(fill)
    for _ in range(i["y_pad_1"] * width):
        put(fill)
