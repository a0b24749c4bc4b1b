# SPDX-License-Identifier: Apache-2.0
"""Layers that are sums of products: convolution, dense, averages, residual addition, change of scale.

All of them are one scheme: at every output position the GEMM unit sums weight tiles times input elements into acc,
REQUANT narrows the sum and clears it, STORE writes it. Averages and elementwise operators use diagonal tiles.
A residual addition reads two tensors; coefficients wider than a weight lane are written as digits, highest first,
with a shift of the sum between them.
"""

from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from openvta.compiler.pack import ParameterTable, TileBank
from openvta.compiler.schedule.emitter import Emitter, Uops
from openvta.compiler.schedule.image import Plane
from openvta.compiler.schedule.steps import Memory, Span
from openvta.compiler.schedule.tiling import Problem, Tiling, check_pieces, tile_grid
from openvta.spec.arith import PARAMETER_WORDS
from openvta.spec.isa import AluOpcode, MemId

Pair = tuple[int, int]
PARTS = 8
"""Parts a product is cut into at most."""


@dataclass(frozen=True, eq=False)
class Source:
    """An input tensor and the int8 value of its padding."""

    plane: Plane
    pad: int = 0


@dataclass(frozen=True, eq=False)
class Operand:
    """Weights applied to one source."""

    source: int
    bank: TileBank


@dataclass(frozen=True, eq=False)
class Stage:
    """Operands summed together; before them what was summed so far is shifted left by ``shift`` bits."""

    operands: tuple[Operand, ...]
    shift: int = 0


@dataclass(frozen=True, eq=False)
class GemmLayer:
    """A layer for the GEMM unit.

    ``start`` is the padding above and left of the first window. ``classes`` int ``[height, width]`` chooses the
    parameter set of each position; None where there is one set, or one for each output block.
    """

    problem: Problem
    sources: tuple[Source, ...]
    stages: tuple[Stage, ...]
    start: Pair
    table: ParameterTable
    target: Plane
    classes: npt.NDArray[np.integer[Any]] | None = None


class SlotCache:
    """Which content lies in which slot of a scratchpad; the least recently used one gives way.

    Args:
        places: first element of every slot, in the order they are first filled.
    """

    def __init__(self, places: Sequence[int]) -> None:
        self._free = list(reversed(places))
        self._used: OrderedDict[tuple[int, ...], int] = OrderedDict()

    def place(self, key: tuple[int, ...]) -> tuple[int, bool]:
        """Return the first element of the slot for ``key`` and whether the content is there already."""
        there = key in self._used
        if there:
            self._used.move_to_end(key)
        else:
            self._used[key] = self._free.pop() if self._free else self._used.popitem(last=False)[1]
        return self._used[key], there


def slot_places(last_use: npt.NDArray[np.int64], count: int, size: int) -> list[int]:
    """Return the first elements of ``count`` slots of ``size`` elements each, those first whose elements rest longest.

    So what a layer loads first does not have to wait for the layer before.

    Args:
        last_use: for every element of the scratchpad, when it was last used; ``count * size`` of them at least.
    """
    slack = last_use.shape[0] - count * size
    best: tuple[list[int], list[int]] | None = None
    for base in dict.fromkeys((*range(0, slack + 1, size), slack)):
        starts = [base + k * size for k in range(count)]
        ages = [int(last_use[start : start + size].max()) for start in starts]
        order = sorted(range(count), key=ages.__getitem__)
        found = [ages[k] for k in order], [starts[k] for k in order]
        if best is None or found[0] < best[0]:
            best = found
    if best is None:
        raise ValueError(f"{count} slots of {size} elements: the scratchpad has {last_use.shape[0]}")
    return best[1]


@dataclass(frozen=True)
class _Tile:
    outs: Pair
    rows: Pair
    columns: Pair
    acc: int
    pitch: int

    @property
    def positions(self) -> int:
        return self.rows[1] * self.columns[1]

    def split(self, most: int) -> tuple[_Tile, ...]:
        """The tile in up to ``most`` parts of whole blocks."""
        first, count = self.outs
        return tuple(
            replace(self, outs=(first + start, blocks), acc=self.acc + start * self.pitch)
            for start, blocks in check_pieces(count, -(-count // most))
        )

    @property
    def ranges(self) -> tuple[Pair, ...]:
        """The acc elements of the tile as half-open ranges."""
        if self.pitch == self.positions:
            return ((self.acc, self.acc + self.outs[1] * self.positions),)
        starts = (self.acc + co * self.pitch for co in range(self.outs[1]))
        return tuple((start, start + self.positions) for start in starts)


@dataclass(frozen=True)
class _Chunk:
    blocks: Pair
    rows: Pair
    columns: Pair


class GemmEmitter:
    """Emits the steps of one layer with one tiling."""

    def __init__(self, emitter: Emitter, layer: GemmLayer, tiling: Tiling) -> None:
        self.emitter = emitter
        self.layer = layer
        self.tiling = tiling
        self.problem = layer.problem
        self.inp = SlotCache(slot_places(emitter.last_use[Memory.INP], tiling.inp_slots, tiling.inp_slot))
        self.wgt = SlotCache(slot_places(emitter.last_use[Memory.WGT], tiling.wgt_slots, tiling.wgt_slot))
        self._parameters = emitter.config.acc_depth - tiling.parameters
        self._loaded: Pair = (0, 0)
        self._uops: dict[tuple[object, ...], tuple[Uops, list[int]]] = {}

    def run(self) -> None:
        """Emit all tiles.

        The last product of a layer's last tile, and of every tile where acc holds only one, is cut by output block:
        each part is requantized and stored while the next one is summed, and the first product of the tile after it is
        cut likewise, so that it can begin where acc is clear already.
        """
        tiling = self.tiling
        grid = tile_grid(self.problem, tiling)
        self.emitter.ensure_zero(0, tiling.acc_slots * tiling.acc_slot)
        for number, (outs, rows, columns) in enumerate(grid):
            acc = number % tiling.acc_slots * tiling.acc_slot
            tile = _Tile(outs, rows, columns, acc, tiling.rows * tiling.columns)
            alone = tiling.acc_slots == 1
            self._sum(tile, cut_first=alone, cut_last=alone or number == len(grid) - 1)

    def _finish(self, tile: _Tile) -> None:
        self._requantize(tile)
        self._store(tile)

    def _sum(self, tile: _Tile, *, cut_first: bool, cut_last: bool) -> None:
        emitter = self.emitter
        if self.layer.classes is None:
            self._parameter_sets(tile.outs if self.layer.table.per_block else (0, 1))
        for low, high in tile.ranges:
            emitter.ensure_zero(low, high)
        work = [
            (number, chunk, operand)
            for number, stage in enumerate(self.layer.stages)
            for chunk in self._chunks(tile, stage)
            for operand in stage.operands
        ]
        stage = 0
        for place, (number, chunk, operand) in enumerate(work):
            while stage < number:
                stage += 1
                self._shift(tile, stage)
            first, last = place == 0 and cut_first, place == len(work) - 1 and cut_last
            if not first and not last:
                self._product(tile, chunk, operand, number)
                continue
            for part in self._product_parts(tile, chunk, operand, number):
                if last:
                    self._finish(part)
        while stage < len(self.layer.stages) - 1:
            stage += 1
            self._shift(tile, stage)
        if not (work and cut_last):
            self._finish(tile)

    def _shift(self, tile: _Tile, stage: int) -> None:
        """Shift what was summed so far to the left, before a further stage."""
        loops, step, first = (tile.outs[1], tile.positions), (tile.pitch, 1), (tile.acc, tile.acc)
        shift = self.layer.stages[stage].shift
        self.emitter.alu(AluOpcode.SHR, first, loops, step, step, tile.ranges, imm=-shift)

    def _chunks(self, tile: _Tile, stage: Stage) -> list[_Chunk]:
        if not stage.operands:
            return []
        low, high = stage.operands[0].bank.span(tile.outs[0], sum(tile.outs))
        kernel = self.problem.kernel
        return [
            _Chunk((low + start, count), rows, columns)
            for start, count in check_pieces(high - low, self.tiling.ins)
            for rows in check_pieces(kernel[0], self.tiling.kernel[0])
            for columns in check_pieces(kernel[1], self.tiling.kernel[1])
        ]

    # one product ---------------------------------------------------------------------------------

    def _product(self, tile: _Tile, chunk: _Chunk, operand: Operand, stage: int) -> None:
        for _ in self._emit_product(tile, (tile,), chunk, operand, stage):
            pass

    def _product_parts(self, tile: _Tile, chunk: _Chunk, operand: Operand, stage: int) -> Iterator[_Tile]:
        """Emit a product part by part; each is yielded when it has been emitted."""
        yield from self._emit_product(tile, tile.split(PARTS), chunk, operand, stage)

    def _emit_product(
        self, tile: _Tile, parts: Sequence[_Tile], chunk: _Chunk, operand: Operand, stage: int
    ) -> Iterator[_Tile]:
        weights, count = self._weights(tile, chunk, operand, stage)
        inputs = self._inputs(tile, chunk, operand.source)
        pitch = self.tiling.inp_slot // self.tiling.ins
        sh, sw = self.problem.strides
        width = (tile.columns[1] - 1) * sw + chunk.columns[1]
        reads = (
            Span(Memory.INP, inputs, inputs + chunk.blocks[1] * pitch),
            Span(Memory.WGT, weights, weights + count),
        )
        src = (width if self.problem.row_skip else sh * width, sw)
        dst = (tile.columns[1], 1)
        loops = (tile.rows[1], tile.columns[1])
        if operand.bank.uniform and tile.positions == 1 and chunk.rows[1] * chunk.columns[1] > 1:
            for co in range(tile.outs[1]):
                block = tile.outs[0] + co - chunk.blocks[0]
                if 0 <= block < chunk.blocks[1]:
                    acc = tile.acc + co * tile.pitch
                    uops = self.emitter.encode_uops(acc, inputs + block * pitch, weights)
                    self.emitter.gemm(
                        uops, (chunk.rows[1], chunk.columns[1]), (0, 0), (width, 1), (reads, ((acc, acc + 1),))
                    )
            yield from parts
            return
        key = (tile.acc, tile.outs, inputs, weights, chunk, width, id(operand.bank))
        known = self._uops.get(key)
        if known is None:
            known = self._micro_ops(tile, chunk, operand.bank, inputs, weights, width)
            self._uops[key] = known
        uops, edges = known
        for part in parts:
            first = part.outs[0] - tile.outs[0]
            cut = edges[first], edges[first + part.outs[1]]
            if cut[0] < cut[1]:
                self.emitter.gemm(uops, loops, dst, src, (reads, part.ranges), cut)
            yield part

    def _micro_ops(
        self, tile: _Tile, chunk: _Chunk, bank: TileBank, inputs: int, weights: int, width: int
    ) -> tuple[Uops, list[int]]:
        """Output blocks outside, so that all micro-ops of one dst follow each other; and where each block begins."""
        pitch = self.tiling.inp_slot // self.tiling.ins
        low = chunk.blocks[0]
        position = (np.arange(chunk.rows[1])[:, None] * width + np.arange(chunk.columns[1])[None, :]).reshape(-1)
        parts, used, edges = [], 0, [0]
        for co in range(tile.outs[1]):
            start, stop = bank.reads(tile.outs[0] + co, low, low + chunk.blocks[1])
            edges.append(edges[-1] + max(0, stop - start) * position.shape[0])
            if start >= stop:
                continue
            src = (inputs + (np.arange(start, stop) - low)[:, None] * pitch + position[None, :]).reshape(-1)
            wgt = np.full(src.shape, weights) if bank.uniform else weights + used + np.arange(src.shape[0])
            used += src.shape[0]
            parts.append(self.emitter.encode_uops(np.full(src.shape, tile.acc + co * tile.pitch), src, wgt))
        return (np.concatenate(parts) if parts else np.zeros(0, np.uint32)), edges

    def _inputs(self, tile: _Tile, chunk: _Chunk, source: int) -> int:
        key = (source, tile.rows[0], tile.columns[0], *chunk.blocks, chunk.rows[0], chunk.columns[0])
        place, there = self.inp.place(key)
        if there:
            return place
        sh, sw = self.problem.strides
        skip = self.problem.row_skip
        origin = self.layer.sources[source]
        height = tile.rows[1] if skip else (tile.rows[1] - 1) * sh + chunk.rows[1]
        width = (tile.columns[1] - 1) * sw + chunk.columns[1]
        self.emitter.load_window(
            MemId.INP,
            place,
            origin.plane,
            (chunk.blocks[0], sum(chunk.blocks)),
            (tile.rows[0] * sh - self.layer.start[0] + chunk.rows[0], height),
            (tile.columns[0] * sw - self.layer.start[1] + chunk.columns[0], width),
            pitch=self.tiling.inp_slot // self.tiling.ins,
            pad=origin.pad,
            row_step=sh if skip else 1,
        )
        return place

    def _weights(self, tile: _Tile, chunk: _Chunk, operand: Operand, stage: int) -> tuple[int, int]:
        bank = operand.bank
        index = self.layer.stages[stage].operands.index(operand)
        if bank.uniform:
            place, there = self.wgt.place((stage, index))
            if not there:
                self.emitter.load_weights(place, bank.tiles.reshape(1, *bank.tiles.shape[-2:]))
            return place, 1
        tiles = self._chunk_tiles(tile, chunk, bank)
        key = (stage, index, *tile.outs, *chunk.blocks, chunk.rows[0], chunk.columns[0])
        place, there = self.wgt.place(key)
        if not there and tiles.shape[0]:
            self.emitter.load_weights(place, tiles)
        return place, int(tiles.shape[0])

    def _chunk_tiles(self, tile: _Tile, chunk: _Chunk, bank: TileBank) -> npt.NDArray[np.int8]:
        """Weight tiles of a chunk in the order of its micro-ops, ``[n, block, block]``."""
        rows = slice(chunk.rows[0], sum(chunk.rows))
        columns = slice(chunk.columns[0], sum(chunk.columns))
        parts = []
        for co in range(tile.outs[0], sum(tile.outs)):
            start, stop = bank.reads(co, chunk.blocks[0], sum(chunk.blocks))
            if start < stop:
                first = bank.first[co]
                piece = bank.tiles[co, start - first : stop - first, rows, columns]
                parts.append(piece.reshape(-1, *piece.shape[-2:]))
        return np.concatenate(parts) if parts else np.zeros((0, *bank.tiles.shape[-2:]), np.int8)

    # results -------------------------------------------------------------------------------------

    def _parameter_sets(self, wanted: Pair) -> int:
        """Make parameter sets ``wanted`` (first, count) present; return the acc element of the first."""
        low, count = self._loaded
        if not low <= wanted[0] <= sum(wanted) <= low + count:
            low, count = (0, self.layer.table.sets) if self.tiling.resident_parameters else wanted
            words = self.layer.table.elements(low, low + count, self.emitter.config.batch)
            self.emitter.load_words(self._parameters, words)
            self._loaded = low, count
        return self._parameters + PARAMETER_WORDS * (wanted[0] - low)

    def _requantize(self, tile: _Tile) -> None:
        table, emitter, classes = self.layer.table, self.emitter, self.layer.classes
        if classes is None:
            base = self._parameter_sets(tile.outs if table.per_block else (0, 1))
            data = (tile.acc, tile.pitch, 1)
            step = PARAMETER_WORDS if table.per_block else 0
            loops = (tile.outs[1], tile.positions)
            emitter.requant(data, (base, step), loops, int(table.modes[0]), unsigned=table.unsigned)
            return
        local = classes[tile.rows[0] : sum(tile.rows), tile.columns[0] : sum(tile.columns)]
        for kind, (row, height), (column, width) in rectangles(local):
            base = self._parameter_sets((kind, 1))
            mode = int(table.modes[kind])
            first = tile.acc + row * tile.columns[1] + column
            if width == tile.columns[1]:
                loops = (tile.outs[1], height * width)
                emitter.requant((first, tile.pitch, 1), (base, 0), loops, mode, unsigned=table.unsigned)
                continue
            for co in range(tile.outs[1]):
                data = (first + co * tile.pitch, tile.columns[1], 1)
                emitter.requant(data, (base, 0), (height, width), mode, unsigned=table.unsigned)

    def _store(self, tile: _Tile) -> None:
        target = self.layer.target
        whole = tile.positions == target.height * target.width == tile.pitch
        if whole and tile.outs[1] * tile.positions < 1 << 16:
            self.emitter.store_window(tile.acc, target, tile.outs[0], tile.rows, tile.columns, tile.outs[1])
            return
        for co in range(tile.outs[1]):
            self.emitter.store_window(tile.acc + co * tile.pitch, target, tile.outs[0] + co, tile.rows, tile.columns)


def rectangles(classes: npt.NDArray[np.integer[Any]]) -> list[tuple[int, Pair, Pair]]:
    """Cut a table of classes into rectangles of one class: (class, (row, rows), (column, columns)), sorted by class."""
    found: list[tuple[int, Pair, Pair]] = []
    row = 0
    height = classes.shape[0]
    while row < height:
        stop = row + 1
        while stop < height and (classes[stop] == classes[row]).all():
            stop += 1
        line = classes[row]
        edges = [0, *(int(k) + 1 for k in np.flatnonzero(np.diff(line))), int(line.shape[0])]
        for left, right in itertools.pairwise(edges):
            found.append((int(line[left]), (row, stop - row), (left, right - left)))
        row = stop
    return sorted(found)
