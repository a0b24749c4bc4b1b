# SPDX-License-Identifier: Apache-2.0
"""Max pooling on the ALU: 8-bit elements are loaded into acc, then one operation for each kernel position."""

from __future__ import annotations

from dataclasses import dataclass

from openvta.compiler.errors import ModelError
from openvta.compiler.schedule.emitter import Emitter
from openvta.compiler.schedule.image import Plane
from openvta.compiler.schedule.tiling import check_pieces, even_parts
from openvta.spec.config import HardwareConfig
from openvta.spec.isa import AluOpcode, MemId

LEAST = -128
"""Padding that never wins: the smallest int8."""


@dataclass(frozen=True, eq=False)
class MaxLayer:
    """Maximum over windows of ``source`` into ``target``; ``start`` is the padding above and left of the first one."""

    name: str
    source: Plane
    target: Plane
    kernel: tuple[int, int]
    strides: tuple[int, int]
    start: tuple[int, int]


@dataclass(frozen=True)
class MaxTiling:
    """Output ``rows x columns`` of one block at a time; ``kernel`` rows and columns of the window loaded at once."""

    rows: int
    columns: int
    kernel: tuple[int, int]
    window: int
    slots: int


def choose_max_tiling(layer: MaxLayer, config: HardwareConfig) -> MaxTiling:
    """Return the largest tile that fits, with two result slots where it can.

    Raises:
        ModelError: not even one position fits.
    """
    kernels = [(n, layer.kernel[1]) for n in even_parts(layer.kernel[0])]
    kernels += [(1, n) for n in even_parts(layer.kernel[1])[1:]]
    for kernel in kernels:
        found: list[MaxTiling] = []
        for columns in even_parts(layer.target.width):
            for rows in even_parts(layer.target.height):
                window = ((rows - 1) * layer.strides[0] + kernel[0]) * ((columns - 1) * layer.strides[1] + kernel[1])
                for slots in (2, 1):
                    if window + slots * rows * columns <= config.acc_depth:
                        found.append(MaxTiling(rows, columns, kernel, window, slots))
                        break
        if found:
            return max(found, key=lambda t: (t.slots * t.rows * t.columns, t.columns))
    raise ModelError(layer.name, "acc depth", config.acc_depth, "max pooling needs 2 elements; use a larger acc buffer")


def emit_max(emitter: Emitter, layer: MaxLayer, tiling: MaxTiling) -> None:
    """Emit the steps of a max pooling."""
    number = 0
    for block in range(layer.target.blocks):
        for rows in check_pieces(layer.target.height, tiling.rows):
            for columns in check_pieces(layer.target.width, tiling.columns):
                result = tiling.window + number % tiling.slots * tiling.rows * tiling.columns
                _tile(emitter, layer, tiling, block, rows, columns, result)
                number += 1


def _tile(
    emitter: Emitter,
    layer: MaxLayer,
    tiling: MaxTiling,
    block: int,
    rows: tuple[int, int],
    columns: tuple[int, int],
    result: int,
) -> None:
    sh, sw = layer.strides
    written = ((result, result + rows[1] * columns[1]),)
    first = True
    for ky, kernel_rows in check_pieces(layer.kernel[0], tiling.kernel[0]):
        for kx, kernel_columns in check_pieces(layer.kernel[1], tiling.kernel[1]):
            height, width = (rows[1] - 1) * sh + kernel_rows, (columns[1] - 1) * sw + kernel_columns
            emitter.load_window(
                MemId.ACC_INT8,
                0,
                layer.source,
                (block, block + 1),
                (rows[0] * sh - layer.start[0] + ky, height),
                (columns[0] * sw - layer.start[1] + kx, width),
                pitch=height * width,
                pad=LEAST,
            )
            for place in (y * width + x for y in range(kernel_rows) for x in range(kernel_columns)):
                op, imm = (AluOpcode.ADD, 0) if first else (AluOpcode.MAX, None)
                steps = ((columns[1], 1), (sh * width, sw))
                emitter.alu(op, (result, place), (rows[1], columns[1]), *steps, written, imm=imm)
                first = False
    emitter.store_window(result, layer.target, block, rows, columns)
