# SPDX-License-Identifier: Apache-2.0
"""LOAD and STORE."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from openvta.sim.errors import BusFault, LockstepError
from openvta.sim.fsim.access import Accesses, Span
from openvta.sim.fsim.op import Core, Op, OpFault, Work
from openvta.sim.fsim.scratchpads import Memory
from openvta.sim.memory import ADDRESS_MASK, Bytes
from openvta.spec import Cause, Insn, MemId
from openvta.spec.dtypes import DType

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
    """The common part: a rectangle of elements in device memory."""

    element_bytes: int
    base_name: str
    sram_memory: Memory

    def __init__(self, core: Core, insn: Insn) -> None:
        super().__init__(core, insn)
        self.rows, self.columns = insn["y_size"], insn["x_size"]

    def span(self) -> Span:
        """The device memory the instruction touches, at the present base address."""
        size = self.element_bytes
        address = (self.core.bases[self.base_name] + self.insn["dram_base"] * size) & ADDRESS_MASK
        return Span(address, self.rows, self.columns * size, self.insn["x_stride"] * size)

    def _check_range(self, elements: int) -> None:
        first, depth = self.insn["sram_base"], self.core.pads.depth(self.sram_memory)
        if first + elements > depth:
            raise OpFault(
                Cause.INDEX_RANGE,
                f"{self.sram_memory.name.lower()} elements {first}..{first + elements - 1}: depth is {depth}",
            )


class Load(Transfer):
    """LOAD of one memory type: source rows to a padded rectangle of consecutive scratchpad elements."""

    name = "load"
    channel: int

    def __init__(self, core: Core, insn: Insn) -> None:
        super().__init__(core, insn)
        self.channel = CHANNELS[MemId(insn["memory_id"])]
        self.left, self.top = insn["x_pad_0"], insn["y_pad_0"]
        self.width = self.left + self.columns + insn["x_pad_1"]
        self.height = self.top + self.rows + insn["y_pad_1"]
        self.elements = self.width * self.height
        self.padded = self.elements != self.rows * self.columns
        self._bound: tuple[int, int] | None = None
        self._source: Bytes | None = None
        self._span = Span(0, 0, 0, 0)

    def source(self) -> Bytes:
        """The source rows: uint8 ``[1 or images, rows, row bytes]``, a view where they lie in one region.

        Raises:
            OpFault: part of them is not mapped.
        """
        memory = self.core.memory
        key = (memory.layout, self.core.bases[self.base_name])
        if key == self._bound and self._source is not None:
            return self._source
        span = self.span()
        try:
            view = memory.rows(span.address, span.rows, span.row_bytes, span.pitch, write=False)
            if view is None:
                return memory.read_rows(span.address, span.rows, span.row_bytes, span.pitch)
        except BusFault as fault:
            raise OpFault(Cause.BUS_READ, str(fault), channel=self.channel, address=fault.address) from fault
        self._bound, self._source = (memory.layout, key[1]), view
        return view

    def shared_source(self) -> Bytes:
        """The source rows where all images must agree: uint8 ``[rows, row bytes]``."""
        source = self.source()
        if len(source) > 1 and bool((source != source[:1]).any()):
            raise LockstepError(f"{self.sram_memory.name.lower()} load: the images differ; run them one at a time")
        rows: Bytes = source[0]
        return rows

    def _fill_borders(self, target: npt.NDArray[Any], fill: int, axis: int) -> None:
        """Pads of a target whose axes ``axis`` and ``axis + 1`` are height and width."""
        lead = (slice(None),) * axis
        low, high = self.top, self.top + self.rows
        target[(*lead, slice(0, low))] = fill
        target[(*lead, slice(high, None))] = fill
        inside = slice(low, high)
        target[(*lead, inside, slice(0, self.left))] = fill
        target[(*lead, inside, slice(self.left + self.columns, None))] = fill

    def _fill_value(self, lane: DType) -> int:
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
        self._check_range(self.elements)
        first = self.insn["sram_base"]
        elements = np.arange(first, first + self.elements, dtype=np.int64)
        return Accesses(writes=((self.sram_memory, elements),), load=self.span())

    def work(self) -> Work:
        counter = {Memory.UOP: "uop", Memory.INP: "inp", Memory.WGT: "wgt", Memory.ACC: "acc"}[self.sram_memory]
        return Work(((f"{counter}_load_bytes", self.rows * self.columns * self.element_bytes),))


class LoadUop(Load):
    """Micro-ops; pads are zero."""

    base_name = "uop"
    sram_memory = Memory.UOP

    def __init__(self, core: Core, insn: Insn) -> None:
        super().__init__(core, insn)
        self.element_bytes = core.config.uop_bytes

    def execute(self) -> None:
        self._check_range(self.elements)
        source = self.shared_source()
        first = self.insn["sram_base"]
        target = self.core.pads.uop[first : first + self.elements].reshape(self.height, self.width)
        if self.padded:
            self._fill_borders(target, 0, 0)
            target = target[self.top : self.top + self.rows, self.left : self.left + self.columns]
        target[...] = source.view("<u4")


class LoadRows(Load):
    """inp and acc: lanes of every image, whatever their width in device memory."""

    bits: int
    lane: DType
    unsigned: ClassVar[bool] = False

    def execute(self) -> None:
        self._check_range(self.elements)
        source = self.source()
        config = self.core.config
        first = self.insn["sram_base"]
        pads = self.core.pads
        store: npt.NDArray[Any] = pads.inp if self.sram_memory is Memory.INP else pads.acc
        target = store[:, first : first + self.elements].reshape(
            pads.images, config.batch, self.height, self.width, config.block
        )
        if self.padded:
            self._fill_borders(target, self._fill_value(self.lane), 2)
            target = target[:, :, self.top : self.top + self.rows, self.left : self.left + self.columns]
        lanes: npt.NDArray[Any]
        if self.bits == 32:
            lanes = source.view("<i4")
        elif self.unsigned:
            lanes = source
        else:
            lanes = unpack_lanes(source, self.bits)
        shape = (len(source), self.rows, self.columns, config.batch, config.block)
        target[...] = lanes.reshape(shape).transpose(0, 3, 1, 2, 4)


class LoadInp(LoadRows):
    """inp elements."""

    base_name = "inp"
    sram_memory = Memory.INP

    def __init__(self, core: Core, insn: Insn) -> None:
        super().__init__(core, insn)
        self.element_bytes = core.config.inp_bytes
        self.bits, self.lane = core.config.inp_bits, core.config.inp_type


class LoadAcc(LoadRows):
    """acc elements of 32-bit lanes."""

    base_name = "acc"
    sram_memory = Memory.ACC

    def __init__(self, core: Core, insn: Insn) -> None:
        super().__init__(core, insn)
        self.element_bytes = core.config.acc_bytes
        self.bits, self.lane = 32, core.config.acc_type


class LoadAcc8(LoadAcc):
    """acc elements of signed 8-bit lanes."""

    def __init__(self, core: Core, insn: Insn) -> None:
        super().__init__(core, insn)
        self.element_bytes = core.config.acc8_bytes
        self.bits = 8


class LoadAccU8(LoadAcc8):
    """acc elements of unsigned 8-bit lanes."""

    unsigned = True


class LoadWgt(Load):
    """Weights: converted once per contents; tags tell GEMM whether its packed weights still hold."""

    base_name = "wgt"
    sram_memory = Memory.WGT
    keep: ClassVar[int] = 4

    def __init__(self, core: Core, insn: Insn) -> None:
        super().__init__(core, insn)
        self.element_bytes = core.config.wgt_bytes
        self._known: list[tuple[Bytes, npt.NDArray[np.float32], npt.NDArray[np.int64]]] = []

    def execute(self) -> None:
        self._check_range(self.elements)
        source = self.shared_source()
        pads = self.core.pads
        where = slice(self.insn["sram_base"], self.insn["sram_base"] + self.elements)
        for position, (raw, tiles, tags) in enumerate(self._known):
            if np.array_equal(raw, source):
                if not np.array_equal(pads.wgt_tags[where], tags):
                    pads.wgt[where] = tiles
                    pads.wgt_tags[where] = tags
                if position:
                    self._known.insert(0, self._known.pop(position))
                return
        config = self.core.config
        block = config.block
        tiles = np.empty((self.height, self.width, block, block), np.float32)
        if self.padded:
            self._fill_borders(tiles, self._fill_value(config.wgt_type), 0)
        inside = tiles[self.top : self.top + self.rows, self.left : self.left + self.columns]
        inside[...] = unpack_lanes(source, config.wgt_bits).reshape(inside.shape)
        tiles = tiles.reshape(-1, block, block)
        tags = pads.new_tags(self.elements)
        self._known.insert(0, (source.copy(), tiles, tags))
        del self._known[self.keep :]
        pads.wgt[where] = tiles
        pads.wgt_tags[where] = tags


class Store(Transfer):
    """STORE: consecutive out elements to strided rows of device memory."""

    name = "store"
    base_name = "out"
    sram_memory = Memory.OUT

    def __init__(self, core: Core, insn: Insn) -> None:
        super().__init__(core, insn)
        self.element_bytes = core.config.out_bytes
        self._bound: tuple[int, int] | None = None
        self._target: Bytes | None = None

    def execute(self) -> None:
        count = self.rows * self.columns
        self._check_range(count)
        span = self.span()
        target = self._rows(span)
        config, pads = self.core.config, self.core.pads
        first = self.insn["sram_base"]
        values = pads.out[:, first : first + count].reshape(
            pads.images, config.batch, self.rows, self.columns, config.block
        )
        lanes = values.transpose(0, 2, 3, 1, 4).reshape(pads.images, self.rows, -1)
        data = pack_lanes(lanes, config.out_bits)
        if target is None:
            self.core.memory.write_rows(span.address, data, span.pitch)
        elif span.pitch < span.row_bytes and span.rows > 1:
            for row in range(span.rows):
                target[:, row] = data[:, row]
        else:
            target[...] = data

    def _rows(self, span: Span) -> Bytes | None:
        memory = self.core.memory
        key = (memory.layout, span.address)
        if key == self._bound:
            return self._target
        try:
            target = memory.rows(span.address, span.rows, span.row_bytes, span.pitch, write=True)
        except BusFault as fault:
            raise OpFault(Cause.BUS_WRITE, str(fault), channel=WRITE_CHANNEL, address=fault.address) from fault
        memory.mark_rows(span.address, span.rows, span.row_bytes, span.pitch)
        self._bound, self._target = (memory.layout, span.address), target
        return target

    def accesses(self) -> Accesses:
        count = self.rows * self.columns
        self._check_range(count)
        first = self.insn["sram_base"]
        return Accesses(reads=((Memory.OUT, np.arange(first, first + count, dtype=np.int64)),), store=self.span())

    def work(self) -> Work:
        return Work((("out_store_bytes", self.rows * self.columns * self.element_bytes),))


LOADS: dict[MemId, type[Load]] = {
    MemId.UOP: LoadUop,
    MemId.INP: LoadInp,
    MemId.WGT: LoadWgt,
    MemId.ACC: LoadAcc,
    MemId.ACC_INT8: LoadAcc8,
    MemId.ACC_UINT8: LoadAccU8,
}
