# SPDX-License-Identifier: Apache-2.0
"""Builds the steps of a program: loads with padding, micro-op residency, accumulators known to be zero, stores."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from openvta.compiler.schedule.image import Image, Plane
from openvta.compiler.schedule.steps import Memory, Span, Step
from openvta.spec.config import HardwareConfig
from openvta.spec.insn import Insn, make
from openvta.spec.isa import AluOpcode, MemId, Opcode

Uops = npt.NDArray[np.uint32]
SIZE_MAX = (1 << 16) - 1
"""Largest x_size, y_size and x_stride."""
PIECE_CYCLES = 1024
"""Bus cycles of one LOAD of weights at most: more urgent loads go in between."""
PAD_MAX = 15
"""Largest padding count of a LOAD."""


class UopMemory:
    """The micro-op scratchpad as a ring: a sequence stays until its place is needed again."""

    def __init__(self, depth: int) -> None:
        self.depth = depth
        self._head = 0
        self._where: dict[bytes, tuple[int, int]] = {}

    def find(self, key: bytes) -> int | None:
        """Return where a sequence is, or None."""
        place = self._where.get(key)
        return None if place is None else place[0]

    def place(self, key: bytes, count: int) -> int:
        """Return where to put a new sequence of ``count`` micro-ops; what was there is forgotten."""
        start = self._head if self._head + count <= self.depth else 0
        stop = start + count
        self._where = {k: (lo, hi) for k, (lo, hi) in self._where.items() if hi <= start or lo >= stop}
        self._where[key] = (start, stop)
        self._head = stop
        return start


@dataclass(frozen=True)
class _UopLoad:
    """A micro-op load still to be emitted in place of step number ``step``."""

    step: int
    place: int
    count: int
    key: bytes


_AWAITED = Step(make(Opcode.FINISH), -1)


class Emitter:
    """Collects the steps of one program. Tensors and constants live in the bundle's image."""

    def __init__(self, config: HardwareConfig, image: Image) -> None:
        self.config = config
        self.image = image
        self.steps: list[Step] = []
        self.layer = 0
        self._uops = UopMemory(config.uop_depth)
        self._awaited: list[_UopLoad] = []
        self._kept: list[tuple[int, int]] = []
        self._zero = np.zeros(config.acc_depth, np.bool_)
        self.last_use = {
            Memory.INP: np.full(config.inp_depth, -1, np.int64),
            Memory.WGT: np.full(config.wgt_depth, -1, np.int64),
        }
        a, i = config.acc_index_bits, config.inp_index_bits
        self._src_shift, self._wgt_shift = a, a + max(a, i)

    # micro-ops -----------------------------------------------------------------------------------

    def encode_uops(self, dst: npt.ArrayLike, src: npt.ArrayLike = 0, wgt: npt.ArrayLike = 0) -> Uops:
        """Return micro-ops from index arrays that broadcast to one dimension."""
        d, s, w = (np.asarray(x, np.int64) for x in (dst, src, wgt))
        packed = d | (s << self._src_shift) | (w << self._wgt_shift)
        return np.atleast_1d(packed).astype(np.uint32)

    def uop_range(self, uops: Uops) -> tuple[int, int]:
        """Make a sequence resident and return uop_begin and uop_end; see :meth:`end_layer` for its LOAD."""
        key = uops.astype("<u4").tobytes()
        count = int(uops.shape[0])
        place = self._uops.find(key)
        if place is None:
            place = self._uops.place(key, count)
            self._awaited.append(_UopLoad(len(self.steps), place, count, key))
            self.steps.append(_AWAITED)
        elif all(load.key != key for load in self._awaited):
            self._kept.append((place, place + count))
        return place, place + count

    def end_layer(self) -> None:
        """Load the layer's micro-ops: all at once before their first use where they lie side by side, else one by one.

        They cannot be loaded early over a sequence of an earlier layer that this one still used.
        """
        loads, kept = self._awaited, self._kept
        self._awaited, self._kept = [], []
        if not loads:
            return
        low, high = loads[0].place, loads[-1].place + loads[-1].count
        adjacent = all(b.place == a.place + a.count for a, b in itertools.pairwise(loads))
        if adjacent and not any(lo < high and hi > low for lo, hi in kept):
            loads = [_UopLoad(loads[0].step, low, high - low, b"".join(load.key for load in loads))]
        at = {load.step: self._uop_load(load) for load in loads}
        self.steps = [at.get(k, step) for k, step in enumerate(self.steps) if step is not _AWAITED or k in at]

    def _uop_load(self, load: _UopLoad) -> Step:
        fields = {"sram_base": load.place, "dram_base": self.image.uop.store(load.key)}
        fields |= {"y_size": 1, "x_size": load.count, "x_stride": load.count}
        insn = make(Opcode.LOAD, memory_id=MemId.UOP, **fields)
        return Step(insn, self.layer, moved=load.count * self.config.uop_bytes)

    # load unit and acc loads ---------------------------------------------------------------------

    def load_window(
        self,
        memory: MemId,
        sram: int,
        plane: Plane,
        blocks: tuple[int, int],
        rows: tuple[int, int],
        columns: tuple[int, int],
        *,
        pitch: int,
        pad: int = 0,
        row_step: int = 1,
    ) -> None:
        """Load a window of some blocks of a tensor, a dense ``rows x columns`` plane each, planes ``pitch`` apart.

        Args:
            memory: INP, or ACC_INT8 for the compute unit.
            sram: first scratchpad element.
            plane: the tensor.
            blocks: half-open range of channel blocks.
            rows: first row and number of rows; rows outside the tensor are padding.
            columns: first column and number of columns, likewise.
            pitch: scratchpad elements from block to block.
            pad: int8 value of padding.
            row_step: tensor rows from one loaded row to the next (rows then start inside the tensor).
        """
        low, high = blocks
        count = rows[1] * columns[1]
        whole_rows = (
            columns == (0, plane.width) and row_step == 1 and rows[0] >= 0 and rows[0] + rows[1] <= plane.height
        )
        area = plane.height * plane.width
        if whole_rows and pitch == count and (area <= SIZE_MAX or high - low == 1):
            first = plane.base + low * area + rows[0] * plane.width
            self._load(memory, sram, first, high - low, count, area)
            return
        for block in range(low, high):
            self._load_plane(memory, sram + (block - low) * pitch, plane, block, rows, columns, pad, row_step)

    def _load_plane(
        self,
        memory: MemId,
        sram: int,
        plane: Plane,
        block: int,
        rows: tuple[int, int],
        columns: tuple[int, int],
        pad: int,
        row_step: int,
    ) -> None:
        top = min(max(0, -rows[0]), rows[1])
        bottom = max(0, rows[0] + (rows[1] - 1) * row_step + 1 - plane.height) if row_step == 1 else 0
        left = min(max(0, -columns[0]), columns[1])
        right = max(0, columns[0] + columns[1] - plane.width)
        height, width = rows[1] - top - bottom, columns[1] - left - right
        first = plane.base + (block * plane.height + rows[0] + top) * plane.width + columns[0] + left
        stride = plane.width * row_step
        padded = bool(top or bottom or left or right)
        encodable = max(top, bottom, left, right) <= PAD_MAX and height > 0 and width > 0
        if encodable and (not padded or pad == 0 or self.config.has("padv")) and (stride <= SIZE_MAX or height == 1):
            self._load(memory, sram, first, height, width, stride, (top, bottom, left, right), pad)
            return
        if padded:
            self.fill(memory, sram, rows[1] * columns[1], pad)
        for row in range(max(height, 0) if width > 0 else 0):
            self._load(memory, sram + (top + row) * columns[1] + left, first + row * stride, 1, width, width)

    def fill(self, memory: MemId, sram: int, count: int, value: int) -> None:
        """Fill elements with an int8 value by loading one constant element again and again."""
        self._load(memory, sram, self.image.constant_element(value), count, 1, 0)

    def _load(
        self,
        memory: MemId,
        sram: int,
        dram: int,
        height: int,
        width: int,
        stride: int,
        pads: tuple[int, int, int, int] = (0, 0, 0, 0),
        pad: int = 0,
    ) -> None:
        top, bottom, left, right = pads
        span = (height - 1) * stride + width
        if height == 1:
            stride = width
        fields = {"y_pad_0": top, "y_pad_1": bottom, "x_pad_0": left, "x_pad_1": right}
        fields |= {"memory_id": memory, "sram_base": sram, "dram_base": dram}
        fields |= {"y_size": height, "x_size": width, "x_stride": stride}
        insn = make(Opcode.LOAD, **fields, **({"pad_value": pad} if pad and any(pads) else {}))
        size = (top + height + bottom) * (left + width + right)
        reads = (Span(Memory.DATA, dram, dram + span),)
        moved = height * width * self.config.inp_bytes
        if memory is MemId.INP:
            self._add(insn, reads, (Span(Memory.INP, sram, sram + size),), moved)
        else:
            self._zero[sram : sram + size] = False
            self._add(insn, reads, (), moved)

    def load_weights(self, sram: int, tiles: npt.NDArray[np.int8]) -> None:
        """Load weight tiles ``[n, block, block]`` (stored in the image) to wgt elements from ``sram`` on."""
        data = self.config.wgt_type.pack(tiles.reshape(tiles.shape[0], -1)).tobytes()
        count = int(tiles.shape[0])
        dram = self.image.wgt.store(data)
        size = self.config.wgt_bytes
        piece = max(1, PIECE_CYCLES * self.config.axi_data_bytes // size)
        for start in range(0, count, piece):
            part = min(piece, count - start)
            low = sram + start
            self._line(MemId.WGT, low, dram + start, part, (Span(Memory.WGT, low, low + part),), part * size)

    def load_words(self, sram: int, words: npt.NDArray[np.int32]) -> None:
        """Load acc elements ``[n, batch * block]`` of int32 constants from the image to acc from ``sram`` on."""
        data = np.ascontiguousarray(words.astype("<i4")).tobytes()
        count = int(words.shape[0])
        dram = self.image.data.store(data, self.config.acc_bytes)
        self._zero[sram : sram + count] = False
        self._line(MemId.ACC, sram, dram, count, moved=len(data))

    def _line(
        self, memory: MemId, sram: int, dram: int, count: int, writes: tuple[Span, ...] = (), moved: int = 0
    ) -> None:
        """Emit a load of ``count`` consecutive elements."""
        fields = {"sram_base": sram, "dram_base": dram, "y_size": 1, "x_size": count, "x_stride": count}
        self._add(make(Opcode.LOAD, memory_id=memory, **fields), (), writes, moved)

    # compute unit --------------------------------------------------------------------------------

    def ensure_zero(self, low: int, high: int) -> None:
        """Make acc elements ``low .. high - 1`` zero, with a reset where they are not known to be."""
        dirty = np.flatnonzero(~self._zero[low:high])
        if not dirty.size:
            return
        start, stop = low + int(dirty[0]), low + int(dirty[-1]) + 1
        begin, end = self.uop_range(self.encode_uops(start))
        insn = make(
            Opcode.GEMM, reset=1, uop_begin=begin, uop_end=end, iter_out=1, iter_in=stop - start, dst_factor_in=1
        )
        self._zero[start:stop] = True
        self._add(insn, uops=stop - start)

    def gemm(
        self,
        uops: Uops,
        loops: tuple[int, int],
        dst: tuple[int, int],
        src: tuple[int, int],
        touched: tuple[Sequence[Span], Sequence[tuple[int, int]]],
        cut: tuple[int, int] | None = None,
    ) -> None:
        """Emit GEMM instructions (more than one where the micro-ops exceed the scratchpad).

        Args:
            uops: micro-ops, run for every iteration.
            loops: outer and inner count.
            dst: outer and inner step of the acc index.
            src: outer and inner step of the inp index.
            touched: what inp and wgt are read, and the half-open acc ranges written.
            cut: the half-open part of the micro-ops to run; the sequence becomes resident as a whole if it fits.
        """
        reads, written = touched
        writes = tuple(Span(Memory.OUT, low, high) for low, high in written)
        for low, high in written:
            self._zero[low:high] = False
        if cut is not None and uops.shape[0] > self.config.uop_depth:
            uops, cut = uops[cut[0] : cut[1]], None
        for start in range(0, uops.shape[0], self.config.uop_depth):
            part = uops[start : start + self.config.uop_depth]
            begin, end = self.uop_range(part)
            if cut is not None:
                begin, end = begin + cut[0], begin + cut[1]
            fields = {"uop_begin": begin, "uop_end": end, "iter_out": loops[0], "iter_in": loops[1]}
            if loops[0] > 1:
                fields |= {"dst_factor_out": dst[0], "src_factor_out": src[0]}
            if loops[1] > 1:
                fields |= {"dst_factor_in": dst[1], "src_factor_in": src[1]}
            insn = make(Opcode.GEMM, **fields)
            self._add(insn, tuple(reads), writes, uops=(end - begin) * loops[0] * loops[1])

    def alu(
        self,
        op: AluOpcode,
        first: tuple[int, int],
        loops: tuple[int, int],
        dst: tuple[int, int],
        src: tuple[int, int],
        written: Sequence[tuple[int, int]],
        *,
        imm: int | None = None,
    ) -> None:
        """Emit one ALU operation over two loops.

        Args:
            op: the operation.
            first: acc index of the first dst and src.
            loops: outer and inner count.
            dst: outer and inner step of dst.
            src: outer and inner step of src.
            written: half-open acc ranges that are written.
            imm: the immediate, or None for a tensor operand.
        """
        begin, end = self.uop_range(self.encode_uops(first[0], first[1]))
        fields = {"uop_begin": begin, "uop_end": end, "iter_out": loops[0], "iter_in": loops[1], "alu_opcode": int(op)}
        if loops[0] > 1:
            fields |= {"dst_factor_out": dst[0], "src_factor_out": src[0]}
        if loops[1] > 1:
            fields |= {"dst_factor_in": dst[1], "src_factor_in": src[1]}
        if imm is not None:
            fields |= {"use_imm": 1, "imm": imm}
        for low, high in written:
            self._zero[low:high] = False
        writes = tuple(Span(Memory.OUT, low, high) for low, high in written)
        self._add(make(Opcode.ALU, **fields), (), writes, uops=loops[0] * loops[1])

    def requant(
        self,
        data: tuple[int, int, int],
        param: tuple[int, int],
        loops: tuple[int, int],
        mode: int,
        *,
        unsigned: bool,
    ) -> None:
        """Requantize acc elements to out, clearing them.

        Args:
            data: first acc element, outer and inner step.
            param: acc element of the first parameter set, and its outer step.
            loops: outer and inner count.
            mode: rounding mode.
            unsigned: the result is uint8.
        """
        fields = {
            "clear": 1, "data_base": data[0], "param_base": param[0], "iter_out": loops[0], "iter_in": loops[1],
            "mode": mode, "unsigned_out": int(unsigned),
        }  # fmt: skip
        if loops[0] > 1:
            fields |= {"data_factor_out": data[1], "param_factor_out": param[1]}
        if loops[1] > 1:
            fields["data_factor_in"] = data[2]
        index = data[0] + np.arange(loops[0])[:, None] * data[1] + np.arange(loops[1])[None, :] * data[2]
        self._zero[index] = True
        spans = (
            Span(Memory.OUT, data[0] + o * data[1], data[0] + o * data[1] + (loops[1] - 1) * data[2] + 1)
            for o in range(loops[0])
        )
        self._add(make(Opcode.REQUANT, **fields), (), tuple(spans))

    # store unit ----------------------------------------------------------------------------------

    def store_window(
        self, sram: int, plane: Plane, block: int, rows: tuple[int, int], columns: tuple[int, int], count: int = 1
    ) -> None:
        """Store dense out elements to a window of ``count`` blocks of a tensor (more than one: whole planes only)."""
        first = plane.base + (block * plane.height + rows[0]) * plane.width + columns[0]
        height, width, stride = rows[1], columns[1], plane.width
        if width == plane.width and count * height * width <= SIZE_MAX:
            height, width = 1, count * height * width
        if height > 1 and stride > SIZE_MAX:
            for row in range(height):
                self._store(sram + row * width, first + row * stride, 1, width, width)
            return
        self._store(sram, first, height, width, stride)

    def _store(self, sram: int, dram: int, height: int, width: int, stride: int) -> None:
        span = (height - 1) * stride + width
        insn = make(
            Opcode.STORE,
            memory_id=MemId.OUT,
            sram_base=sram,
            dram_base=dram,
            y_size=height,
            x_size=width,
            x_stride=width if height == 1 else stride,
        )
        reads = (Span(Memory.OUT, sram, sram + height * width),)
        self._add(insn, reads, (Span(Memory.DATA, dram, dram + span),), height * width * self.config.out_bytes)

    def _add(
        self, insn: Insn, reads: tuple[Span, ...] = (), writes: tuple[Span, ...] = (), moved: int = 0, uops: int = 0
    ) -> None:
        for span in (*reads, *writes):
            if span.memory in self.last_use:
                self.last_use[span.memory][span.low : span.high] = len(self.steps)
        self.steps.append(Step(insn, self.layer, reads, writes, moved, uops))
