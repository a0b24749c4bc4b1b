# SPDX-License-Identifier: Apache-2.0
"""The scratchpads of one core, laid out for speed: the rows of an element (images x batch) come first.

``inp`` and ``wgt`` hold their small integers as float32, which is exact and feeds the matrix product directly.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from openvta.sim.errors import StateError
from openvta.spec import HardwareConfig, MemId
from openvta.spec.dtypes import DType

IntArray = npt.NDArray[np.integer[Any]]


class Memory(IntEnum):
    """Memories an instruction can read or write: scratchpads by memory id, and device memory."""

    UOP = int(MemId.UOP)
    WGT = int(MemId.WGT)
    INP = int(MemId.INP)
    ACC = int(MemId.ACC)
    OUT = int(MemId.OUT)
    DRAM = 15


SCRATCHPADS = (Memory.UOP, Memory.WGT, Memory.INP, Memory.ACC, Memory.OUT)


class Scratchpads:
    """Contents of every scratchpad, zero at first, with a mark for what was ever written.

    Shapes (R = images * batch): ``uop`` uint32 ``[depth]``; ``inp`` float32 ``[R, depth, block]``; ``wgt`` float32
    ``[depth, block out, block in]``; ``acc`` int32 and ``out`` int8 ``[R, depth, block]``. ``wgt_tags`` int64
    ``[depth]``: equal tags mean equal contents.
    """

    def __init__(self, config: HardwareConfig, images: int = 1) -> None:
        self.config = config
        self.images = images
        rows = images * config.batch
        block = config.block
        self.uop = np.zeros(config.uop_depth, np.uint32)
        self.inp = np.zeros((rows, config.inp_depth, block), np.float32)
        self.wgt = np.zeros((config.wgt_depth, block, block), np.float32)
        self.acc = np.zeros((rows, config.acc_depth, block), np.int32)
        self.out = np.zeros((rows, config.acc_depth, block), np.int8)
        self.wgt_tags = np.zeros(config.wgt_depth, np.int64)
        self.written = {memory: np.zeros(self.depth(memory), np.bool_) for memory in SCRATCHPADS}
        """Elements written by the host or by a checked run; other runs do not keep it up to date."""
        self._tags = 1

    def depth(self, memory: Memory) -> int:
        """Elements a scratchpad holds."""
        config = self.config
        depths = {
            Memory.UOP: config.uop_depth,
            Memory.WGT: config.wgt_depth,
            Memory.INP: config.inp_depth,
            Memory.ACC: config.acc_depth,
            Memory.OUT: config.acc_depth,
        }
        return depths[memory]

    def new_tags(self, count: int) -> npt.NDArray[np.int64]:
        """``count`` tags never given before."""
        tags = np.arange(self._tags, self._tags + count, dtype=np.int64)
        self._tags += count
        return tags

    def read(self, memory: Memory, image: int = 0) -> IntArray:
        """A copy of one image's contents, in element order.

        Returns uop uint32 ``[depth]``; inp and out int8 ``[depth, batch, block]``; acc int32 likewise; wgt int8
        ``[depth, block out, block in]``.
        """
        if memory is Memory.UOP:
            return self.uop.copy()
        if memory is Memory.WGT:
            return self.wgt.astype(np.int8)
        batch = self.config.batch
        lanes = self._lanes(memory)[image * batch : (image + 1) * batch].transpose(1, 0, 2)
        values: IntArray = lanes.astype(np.int32 if memory is Memory.ACC else np.int8)
        return values

    def _lanes(self, memory: Memory) -> npt.NDArray[Any]:
        return self.inp if memory is Memory.INP else self.acc if memory is Memory.ACC else self.out

    def write(self, memory: Memory, first: int, values: npt.ArrayLike) -> None:
        """Set elements from ``first`` on, in every image; shapes as :meth:`read` gives them.

        Raises:
            StateError: a wrong shape, elements beyond the depth, or a value outside the lane's range.
        """
        config = self.config
        array = np.asarray(values)
        shape: tuple[int, ...]
        if memory is Memory.UOP:
            shape, lane = (), DType(32, signed=False)
        elif memory is Memory.WGT:
            shape, lane = (config.block, config.block), config.wgt_type
        else:
            lanes = {Memory.INP: config.inp_type, Memory.ACC: config.acc_type, Memory.OUT: config.out_type}
            shape, lane = (config.batch, config.block), lanes[memory]
        if array.ndim < 1 or array.shape[1:] != shape:
            raise StateError(f"{memory.name.lower()}: shape {array.shape}: must be [elements{_text(shape)}]")
        if first < 0 or first + len(array) > self.depth(memory):
            raise StateError(
                f"{memory.name.lower()}: elements {first}..{first + len(array)}: depth is {self.depth(memory)}"
            )
        if array.size and not lane.minimum <= int(array.min()) <= int(array.max()) <= lane.maximum:
            raise StateError(f"{memory.name.lower()}: values must be {lane.minimum}..{lane.maximum}")
        where = slice(first, first + len(array))
        self.written[memory][where] = True
        if memory is Memory.UOP:
            self.uop[where] = array
        elif memory is Memory.WGT:
            self.wgt[where] = array
            self.wgt_tags[where] = self.new_tags(len(array))
        else:
            view = self._lanes(memory).reshape(self.images, config.batch, -1, config.block)
            view[:, :, where] = array.transpose(1, 0, 2)

    def raw(self, memory: Memory, elements: npt.NDArray[np.int64], image: int = 0) -> npt.NDArray[np.uint8]:
        """Elements as the bytes they have in device memory: uint8 ``[n, element bytes]``."""
        config = self.config
        count = len(elements)
        if memory is Memory.UOP:
            return self.uop[elements].astype("<u4").view(np.uint8).reshape(count, 4)
        if memory is Memory.WGT:
            return config.wgt_type.pack(self.wgt[elements].astype(np.int8).reshape(count, -1))
        batch = self.config.batch
        rows = slice(image * batch, (image + 1) * batch)
        if memory is Memory.ACC:
            lanes = np.ascontiguousarray(self.acc[rows, elements].transpose(1, 0, 2)).reshape(count, -1)
            return lanes.astype("<i4").view(np.uint8).reshape(count, -1)
        source = self.inp if memory is Memory.INP else self.out
        small = np.ascontiguousarray(source[rows, elements].transpose(1, 0, 2)).reshape(count, -1)
        return config.inp_type.pack(small.astype(np.int8))


def _text(shape: tuple[int, ...]) -> str:
    return "".join(f", {size}" for size in shape)
