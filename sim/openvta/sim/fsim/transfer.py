# SPDX-License-Identifier: Apache-2.0
"""LOAD and STORE."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import as_strided

from openvta.sim.errors import BusFault, LockstepError
from openvta.sim.fsim.access import Accesses, Span
from openvta.sim.fsim.op import Core, Op, OpFault, Work
from openvta.sim.fsim.scratchpads import Memory
from openvta.sim.memory import ADDRESS_MASK, Bytes
from openvta.spec import Cause, Insn, MemId
from openvta.spec.dtypes import DType

Array: TypeAlias = npt.NDArray[Any]

WRITE_CHANNEL = 8
CHANNELS = {MemId.UOP: 1, MemId.INP: 2, MemId.WGT: 3, MemId.ACC: 4, MemId.ACC_INT8: 4, MemId.ACC_UINT8: 4}


@lru_cache(maxsize=8)
def _unpack_table(bits: int) -> npt.NDArray[np.int8]:
    """Signed lanes of every byte value: int8 ``[256, 8 / bits]``."""
    lanes = 8 // bits
    values = np.arange(256)[:, None] >> (np.arange(lanes) * bits) & ((1 << bits) - 1)
    return np.where(values >> (bits - 1), values - (1 << bits), values).astype(np.int8)


def unpack_lanes(data: Bytes, bits: int) -> npt.NDArray[np.int8]:
    """Signed lanes of 1, 2, 4 or 8 bits, lane 0 lowest: int8 ``[..., bytes * 8 / bits]``."""
    if bits == 8:
        return data.view(np.int8)
    return _unpack_table(bits)[data].reshape(*data.shape[:-1], -1)


def pack_lanes(values: npt.NDArray[np.int8], bits: int) -> Bytes:
    """Inverse of :func:`unpack_lanes`: only the low bits of a lane count."""
    if bits == 8:
        return np.ascontiguousarray(values).view(np.uint8)
    lanes = 8 // bits
    low = (np.ascontiguousarray(values).view(np.uint8) & np.uint8((1 << bits) - 1)).reshape(
        *values.shape[:-1], -1, lanes
    )
    packed: Bytes = np.bitwise_or.reduce(low << (np.arange(lanes, dtype=np.uint8) * np.uint8(bits)), axis=-1)
    return packed


class Transfer(Op):
    """The common part: a rectangle of elements in device memory, and as many scratchpad elements."""

    base_name: ClassVar[str]
    sram_memory: ClassVar[Memory]

    def __init__(self, core: Core, insn: Insn, element_bytes: int, elements: int) -> None:
        super().__init__(core, insn)
        self.element_bytes = element_bytes
        self.rows, self.columns = insn["y_size"], insn["x_size"]
        self.first = insn["sram_base"]
        self.last = self.first + elements
        self.fits = self.last <= core.pads.depth(self.sram_memory)
        self._bound: tuple[int, int] | None = None

    def span(self) -> Span:
        """The device memory the instruction touches, at the present base address."""
        size = self.element_bytes
        address = (self.core.bases[self.base_name] + self.insn["dram_base"] * size) & ADDRESS_MASK
        return Span(address, self.rows, self.columns * size, self.insn["x_stride"] * size)

    def check_range(self) -> None:
        """Raise OpFault where elements lie beyond the depth."""
        if not self.fits:
            name, depth = self.sram_memory.name.lower(), self.core.pads.depth(self.sram_memory)
            raise OpFault(Cause.INDEX_RANGE, f"{name} elements {self.first}..{self.last - 1}: depth is {depth}")

    def place(self) -> tuple[int, int]:
        """What views of device memory depend on: its layout and the base address."""
        return (self.core.memory.layout, self.core.bases[self.base_name])


class Load(Transfer):
    """LOAD of one memory type: source rows to a padded rectangle of consecutive scratchpad elements."""

    name = "load"

    def __init__(self, core: Core, insn: Insn, element_bytes: int) -> None:
        self.left, self.top = insn["x_pad_0"], insn["y_pad_0"]
        self.width = self.left + insn["x_size"] + insn["x_pad_1"]
        self.height = self.top + insn["y_size"] + insn["y_pad_1"]
        super().__init__(core, insn, element_bytes, self.width * self.height)
        self._source: Bytes | None = None

    def source(self) -> Bytes:
        """The source rows: uint8 ``[1 or images, rows, row bytes]``, a view where they lie in one region.

        Raises:
            OpFault: part of them is not mapped.
        """
        if self._source is not None and self._bound == self.place():
            return self._source
        memory, span = self.core.memory, self.span()
        try:
            view = memory.rows(span.address, span.rows, span.row_bytes, span.pitch, write=False)
            if view is None:
                self._source = None
                return memory.read_rows(span.address, span.rows, span.row_bytes, span.pitch)
        except BusFault as fault:
            channel = CHANNELS[MemId(self.insn["memory_id"])]
            raise OpFault(Cause.BUS_READ, str(fault), channel=channel, address=fault.address) from fault
        self._bound, self._source = self.place(), view
        return view

    def shared_source(self) -> Bytes:
        """The source rows where all images must agree: uint8 ``[rows, row bytes]``."""
        source = self.source()
        if len(source) > 1 and bool((source != source[:1]).any()):
            raise LockstepError(f"{self.sram_memory.name.lower()} load: the images differ; run them one at a time")
        rows: Bytes = source[0]
        return rows

    def split(self, target: Array, axis: int) -> tuple[Array, list[Array]]:
        """The inside of a target whose axes ``axis`` and ``axis + 1`` are height and width, and the pads around it."""
        lead = (slice(None),) * axis
        down = slice(self.top, self.top + self.rows)
        right = slice(self.left, self.left + self.columns)
        around = (
            target[(*lead, slice(0, self.top))],
            target[(*lead, slice(down.stop, None))],
            target[(*lead, down, slice(0, self.left))],
            target[(*lead, down, slice(right.stop, None))],
        )
        return target[(*lead, down, right)], [part for part in around if part.size]

    def fill_value(self, lane: DType) -> int:
        """What a padded lane of a type holds."""
        insn = self.insn
        if insn["pad_min"]:
            return lane.minimum
        raw = insn.pad_value
        if insn["memory_id"] == MemId.ACC_UINT8:
            return raw
        value = raw - 256 if raw & 128 else raw
        if lane.bits >= 8:
            return value
        low = value & ((1 << lane.bits) - 1)
        return low - (1 << lane.bits) if low >> (lane.bits - 1) else low

    def accesses(self) -> Accesses:
        self.check_range()
        elements = np.arange(self.first, self.last, dtype=np.int64)
        return Accesses(writes=((self.sram_memory, elements),), load=self.span())

    def work(self) -> Work:
        counter = {Memory.UOP: "uop", Memory.INP: "inp", Memory.WGT: "wgt", Memory.ACC: "acc"}[self.sram_memory]
        return Work(((f"{counter}_load_bytes", self.rows * self.columns * self.element_bytes),))


class LoadUop(Load):
    """Micro-ops; pads are zero."""

    base_name = "uop"
    sram_memory = Memory.UOP

    def __init__(self, core: Core, insn: Insn) -> None:
        super().__init__(core, insn, core.config.uop_bytes)
        if self.fits:
            target = core.pads.uop[self.first : self.last].reshape(self.height, self.width)
            self._inside, self._pads = self.split(target, 0)

    def execute(self) -> None:
        self.check_range()
        source = self.shared_source()
        for pad in self._pads:
            pad[...] = 0
        self._inside[...] = source.view("<u4")


class LoadRows(Load):
    """inp and acc: lanes of every image, whatever their width in device memory.

    Args:
        core: the core.
        insn: the instruction.
        bits: width of a lane in device memory.
        lane: type of a lane in the scratchpad.
        element_bytes: bytes of an element in device memory.
    """

    unsigned: ClassVar[bool] = False

    def __init__(self, core: Core, insn: Insn, bits: int, lane: DType, element_bytes: int) -> None:
        super().__init__(core, insn, element_bytes)
        self.bits = bits
        self._fill = self.fill_value(lane)
        self._lanes: Array | None = None
        if self.fits:
            pads, config = core.pads, core.config
            store: Array = pads.inp if self.sram_memory is Memory.INP else pads.acc
            shape = (pads.images, config.batch, self.height, self.width, config.block)
            target = store[:, self.first : self.last].reshape(shape)
            self._inside, self._pads = self.split(target, 2)

    def execute(self) -> None:
        if self._lanes is None or self._bound != self.place():
            self._bind()
        for pad in self._pads:
            pad[...] = self._fill
        if self._lanes is not None:
            self._inside[...] = self._lanes
            return
        self._inside[...] = self._as_lanes(self.source())

    def _bind(self) -> None:
        """Keep a view of the source's lanes, where it can be one."""
        self.check_range()
        source = self.source()
        self._lanes = self._as_lanes(source) if self._source is not None and self.bits >= 8 else None

    def _as_lanes(self, source: Bytes) -> Array:
        """Source rows as ``[1 or images, batch, rows, columns, block]``."""
        lanes: Array
        if self.bits == 32:
            lanes = source.view("<i4")
        elif self.unsigned:
            lanes = source
        else:
            lanes = unpack_lanes(source, self.bits)
        config = self.core.config
        steps = lanes.strides
        if self.bits < 8:
            lanes = np.ascontiguousarray(lanes)
            steps = lanes.strides
        shape = (len(source), config.batch, self.rows, self.columns, config.block)
        size = lanes.itemsize
        row = config.block * size
        return as_strided(lanes, shape, (steps[0], row, steps[1], row * config.batch, size), writeable=False)


class LoadInp(LoadRows):
    """inp elements."""

    base_name = "inp"
    sram_memory = Memory.INP

    def __init__(self, core: Core, insn: Insn) -> None:
        super().__init__(core, insn, core.config.inp_bits, core.config.inp_type, core.config.inp_bytes)


class LoadAcc(LoadRows):
    """acc elements of 32-bit lanes."""

    base_name = "acc"
    sram_memory = Memory.ACC

    def __init__(self, core: Core, insn: Insn) -> None:
        super().__init__(core, insn, core.config.acc_bits, core.config.acc_type, core.config.acc_bytes)


class LoadAcc8(LoadRows):
    """acc elements of signed 8-bit lanes."""

    base_name = "acc"
    sram_memory = Memory.ACC

    def __init__(self, core: Core, insn: Insn) -> None:
        super().__init__(core, insn, 8, core.config.acc_type, core.config.acc8_bytes)


class LoadAccU8(LoadAcc8):
    """acc elements of unsigned 8-bit lanes."""

    unsigned = True


@dataclass(eq=False)
class KnownTiles:
    """Weights seen before: their bytes (eight at a time where possible), the tiles made of them, and the tiles' tags."""

    raw: Array
    tiles: npt.NDArray[np.float32]
    tags: npt.NDArray[np.int64]


class LoadWgt(Load):
    """Weights: converted once per contents; tags tell GEMM whether its packed weights still hold."""

    base_name = "wgt"
    sram_memory = Memory.WGT
    keep: ClassVar[int] = 4

    def __init__(self, core: Core, insn: Insn) -> None:
        super().__init__(core, insn, core.config.wgt_bytes)
        self._known: list[KnownTiles] = []
        self._word = np.uint64 if self.columns * self.element_bytes % 8 == 0 else np.uint8

    def execute(self) -> None:
        self.check_range()
        source = self.shared_source()
        pads = self.core.pads
        words = source.view(self._word)
        known = next((tiles for tiles in self._known if bool((tiles.raw == words).all())), None)
        if known is None:
            known = self._convert(source)
            self._known.insert(0, known)
            del self._known[self.keep :]
        elif known is not self._known[0]:
            self._known.remove(known)
            self._known.insert(0, known)
        here = pads.wgt_tags[self.first : self.last]
        if not (here == known.tags).all():
            pads.wgt[self.first : self.last] = known.tiles
            here[...] = known.tags

    def _convert(self, source: Bytes) -> KnownTiles:
        config = self.core.config
        block = config.block
        tiles = np.empty((self.height, self.width, block, block), np.float32)
        inside, pads = self.split(tiles, 0)
        for pad in pads:
            pad[...] = self.fill_value(config.wgt_type)
        inside[...] = unpack_lanes(source, config.wgt_bits).reshape(inside.shape)
        return KnownTiles(
            source.view(self._word).copy(),
            tiles.reshape(-1, block, block),
            self.core.pads.new_tags(len(tiles) * self.width),
        )


class Store(Transfer):
    """STORE: consecutive out elements to strided rows of device memory."""

    name = "store"
    base_name = "out"
    sram_memory = Memory.OUT

    def __init__(self, core: Core, insn: Insn) -> None:
        super().__init__(core, insn, core.config.out_bytes, insn["y_size"] * insn["x_size"])
        self._target: Bytes | None = None
        if self.fits:
            pads, config = core.pads, core.config
            shape = (pads.images, config.batch, self.rows, self.columns, config.block)
            values = pads.out[:, self.first : self.last].reshape(shape)
            self._lanes = values.transpose(0, 2, 3, 1, 4)
        self._direct: Array | None = None

    def execute(self) -> None:
        if self._direct is not None and self._bound == self.place():
            self._direct[...] = self._lanes
            return
        self.check_range()
        span = self.span()
        target = self._rows(span)
        pads = self.core.pads
        data = pack_lanes(self._lanes.reshape(pads.images, self.rows, -1), self.core.config.out_bits)
        if target is None:
            self.core.memory.write_rows(span.address, data, span.pitch)
        elif span.pitch < span.row_bytes and span.rows > 1:
            for row in range(span.rows):
                target[:, row] = data[:, row]
        else:
            target[...] = data

    def _rows(self, span: Span) -> Bytes | None:
        """A view of the rows in device memory, marked as written; None where they span several regions."""
        memory = self.core.memory
        if self._bound == self.place():
            return self._target
        try:
            target = memory.rows(span.address, span.rows, span.row_bytes, span.pitch, write=True)
        except BusFault as fault:
            raise OpFault(Cause.BUS_WRITE, str(fault), channel=WRITE_CHANNEL, address=fault.address) from fault
        memory.mark_rows(span.address, span.rows, span.row_bytes, span.pitch)
        self._bound, self._target, self._direct = self.place(), target, None
        config = self.core.config
        if target is not None and config.out_bits == 8 and (span.pitch >= span.row_bytes or span.rows == 1):
            element = config.lanes
            steps = (target.strides[0], target.strides[1], element, config.block, 1)
            self._direct = as_strided(target.view(np.int8), self._lanes.shape, steps)
        return target

    def accesses(self) -> Accesses:
        self.check_range()
        elements = np.arange(self.first, self.last, dtype=np.int64)
        return Accesses(reads=((Memory.OUT, elements),), store=self.span())

    def work(self) -> Work:
        return Work((("out_store_bytes", self.rows * self.columns * self.element_bytes),))


LOADS: dict[MemId, Callable[[Core, Insn], Load]] = {
    MemId.UOP: LoadUop,
    MemId.INP: LoadInp,
    MemId.WGT: LoadWgt,
    MemId.ACC: LoadAcc,
    MemId.ACC_INT8: LoadAcc8,
    MemId.ACC_UINT8: LoadAccU8,
}
