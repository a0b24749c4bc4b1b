# SPDX-License-Identifier: Apache-2.0
"""The tiler: enumerate tile shapes that fit the scratchpads, score them with a small cost model, take the best.

A tile is ``rows x columns`` output positions of ``outs`` output blocks; its sum over input blocks and kernel positions
is cut into chunks of ``ins`` blocks and ``kernel`` positions, and stays in acc. Input windows and weight chunks
live in slots of their scratchpads: all of them where they fit (then each is loaded once), else two that alternate,
else one. Nothing that does not fit is ever proposed, so a schedule is legal by construction.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace

from openvta.compiler.errors import ModelError
from openvta.spec.arith import PARAMETER_WORDS
from openvta.spec.config import HardwareConfig
from openvta.spec.isa import INSN_BYTES

GEMM_OVERHEAD = 2
"""Cycles charged for a GEMM beside its micro-ops."""
REQUANT_OVERHEAD = 24
"""Cycles a REQUANT takes beside its vectors."""
LOAD_OVERHEAD = 40
"""Cycles a load of the compute unit takes beside its data, on a bus that others use too."""
LOAD_INSTRUCTION = 4
"""Cycles of the bus charged for every LOAD of inp and wgt beside its data."""
ROW_GAP = 1
"""Cycles of the bus charged for every row of a LOAD: a burst of its own, seldom aligned to a beat."""
FREE_RUN = 2
"""Micro-ops on one dst that leave the requantizer enough reads of acc; in runs of one it gets none."""
BUS_SHARE = 1 / 16
"""Share of the read time charged even where compute hides it: bursts of a slow memory, waits for a place."""
START_SHARE = 0.5
"""Share of a layer's first loads and last results that the layers around it do not hide."""


@dataclass(frozen=True)
class Problem:
    """What the tiler needs to know of a layer.

    ``outs`` and ``ins`` are blocks; ``banded`` says that an output block reads ``band`` input blocks around its own
    place instead of all; ``operands`` is the number of weight banks summed at each position, ``sources`` the number of
    input tensors; ``shared_weights`` that one tile serves every position; ``row_skip`` that only needed rows are loaded
    (kernel height 1); ``parameter_sets`` how many sets the layer has; ``spread_parameters`` that each output block has
    its own.
    """

    name: str
    outs: int
    ins: int
    height: int
    width: int
    kernel: tuple[int, int]
    strides: tuple[int, int]
    banded: bool = False
    band: int = 1
    operands: int = 1
    sources: int = 1
    shared_weights: bool = False
    row_skip: bool = False
    parameter_sets: int = 1
    spread_parameters: bool = True


@dataclass(frozen=True)
class Tiling:
    """A tile shape with its slots, and the predicted cycles.

    ``outer_channels``: the loop over output blocks is outside the loop over positions. ``resident_parameters``: all
    parameter sets stay in acc, else those of one tile.
    """

    rows: int
    columns: int
    outs: int
    ins: int
    kernel: tuple[int, int]
    inp_slots: int
    wgt_slots: int
    acc_slots: int
    inp_slot: int
    wgt_slot: int
    acc_slot: int
    parameters: int
    resident_parameters: bool
    outer_channels: bool
    cycles: int = 0

    def text(self) -> str:
        """Return the tiling in one line."""
        order = "channels outside" if self.outer_channels else "positions outside"
        return (
            f"tile {self.outs} blocks x {self.rows} x {self.columns}, chunks of {self.ins} blocks x {self.kernel[0]} x "
            f"{self.kernel[1]}, {order}, slots inp {self.inp_slots} x {self.inp_slot}, "
            f"wgt {self.wgt_slots} x {self.wgt_slot}, acc {self.acc_slots} x {self.acc_slot}, "
            f"parameters {self.parameters}"
        )


def even_parts(size: int, most: int | None = None) -> list[int]:
    """Return the distinct sizes ceil(size / k), largest first, none above ``most``."""
    found = sorted({-(-size // k) for k in range(1, size + 1)}, reverse=True)
    return [n for n in found if most is None or n <= most]


def _ceil(a: int, b: int) -> int:
    return -(-a // b)


def choose_tiling(problem: Problem, config: HardwareConfig) -> Tiling:
    """Return the tiling with the fewest predicted cycles.

    Raises:
        ModelError: no tile fits, with the buffer that is too small.
    """
    for kernel in _kernel_chunks(problem.kernel):
        best = _search(problem, config, kernel)
        if best is not None:
            return best
    need = PARAMETER_WORDS + 1
    raise ModelError(
        problem.name,
        "tile",
        "1 x 1 position of 1 block",
        f"does not fit: needs {need} acc elements of {config.acc_depth}, 1 inp element of {config.inp_depth}, "
        f"1 wgt element of {config.wgt_depth}; use a configuration with larger buffers",
    )


def _kernel_chunks(kernel: tuple[int, int]) -> list[tuple[int, int]]:
    """Kernel chunks from whole to single positions: whole rows first, then parts of a row."""
    rows = [(n, kernel[1]) for n in even_parts(kernel[0])]
    return rows + [(1, n) for n in even_parts(kernel[1])[1:]]


def _search(p: Problem, config: HardwareConfig, kernel: tuple[int, int]) -> Tiling | None:
    best: Tiling | None = None
    parameters_all = PARAMETER_WORDS * p.parameter_sets
    resident = parameters_all * 4 <= config.acc_depth or parameters_all <= PARAMETER_WORDS
    floor = max(_work(p), p.height * p.width * p.outs * config.requant_cycles)
    kernel_chunks = _ceil(p.kernel[0], kernel[0]) * _ceil(p.kernel[1], kernel[1])
    for outs in even_parts(p.outs):
        parameters = parameters_all if resident else PARAMETER_WORDS * (outs if p.spread_parameters else 1)
        room = config.acc_depth - parameters
        if room < outs:
            continue
        blocks = min(p.ins, outs + p.band - 1) if p.banded else p.ins
        for columns, rows in _positions(p, room // outs):
            tiles = _ceil(p.height, rows) * _ceil(p.width, columns) * _ceil(p.outs, outs)
            acc_slot = rows * columns * outs
            acc_slots = min(2, tiles, room // acc_slot)
            window = _window(p, kernel, rows, columns)
            for ins in even_parts(blocks, config.inp_depth // window):
                weights = _weights(p, kernel, outs, ins)
                gemms = _ceil(blocks, ins) * kernel_chunks * p.operands
                least = floor + tiles * gemms * GEMM_OVERHEAD
                hopeless = best is not None and least >= best.cycles
                if weights > config.wgt_depth or hopeless:
                    continue
                shape = Tiling(
                    rows, columns, outs, ins, kernel, 1, 1, acc_slots, window * ins, weights, acc_slot,
                    parameters, resident, True,
                )  # fmt: skip
                best = _better(p, config, shape, best)
    return best


def _positions(p: Problem, room: int) -> list[tuple[int, int]]:
    """(columns, rows) that fit ``room`` acc elements: whole rows where possible, else parts of one row or more."""
    found = []
    for columns in even_parts(p.width, room)[:3] if p.width > room else even_parts(p.width)[:4]:
        found += [(columns, rows) for rows in even_parts(p.height, room // columns)]
    if (1, 1) not in found:
        found += [(c, 1) for c in even_parts(p.width, room)]
    return list(dict.fromkeys(found))


def _window(p: Problem, kernel: tuple[int, int], rows: int, columns: int) -> int:
    height = rows if p.row_skip else (rows - 1) * p.strides[0] + kernel[0]
    return height * ((columns - 1) * p.strides[1] + kernel[1])


def _weights(p: Problem, kernel: tuple[int, int], outs: int, ins: int) -> int:
    """Weight elements of one chunk of one operand, at most."""
    if p.shared_weights:
        return 1
    return outs * (min(ins, p.band) if p.banded else ins) * kernel[0] * kernel[1]


def _better(p: Problem, config: HardwareConfig, t: Tiling, best: Tiling | None) -> Tiling | None:
    """Return ``best`` or, if it costs less, the shape ``t`` with its slots in the better loop order."""
    row_tiles, column_tiles, groups = _ceil(p.height, t.rows), _ceil(p.width, t.columns), _ceil(p.outs, t.outs)
    per_group = min(p.ins, t.outs + p.band - 1) if p.banded else p.ins
    kernel_chunks = _ceil(p.kernel[0], t.kernel[0]) * _ceil(p.kernel[1], t.kernel[1])
    chunks = _ceil(per_group, t.ins) * kernel_chunks
    input_keys = row_tiles * column_tiles * chunks * p.sources * (groups if p.banded else 1)
    weight_keys = p.operands if p.shared_weights else groups * chunks * p.operands
    inp_all = input_keys * t.inp_slot <= config.inp_depth
    wgt_all = weight_keys * t.wgt_slot <= config.wgt_depth
    inp_slots = input_keys if inp_all else _alternating(config.inp_depth, t.inp_slot, p.sources)
    wgt_slots = weight_keys if wgt_all else _alternating(config.wgt_depth, t.wgt_slot, p.operands)
    for outer in (True, False) if groups > 1 else (True,):
        cycles = _cost(p, config, t, (inp_slots, wgt_slots, outer), (inp_all, wgt_all), chunks)
        if best is None or cycles < best.cycles:
            best = replace(t, inp_slots=inp_slots, wgt_slots=wgt_slots, outer_channels=outer, cycles=cycles)
    return best


def _alternating(depth: int, slot: int, streams: int) -> int:
    """Two slots a stream where they fit, else as many as do."""
    return max(1, min(2 * streams, depth // slot))


def _work(p: Problem) -> int:
    """GEMM micro-ops of the layer."""
    reads = min(p.band, p.ins) if p.banded else p.ins
    return p.height * p.width * p.outs * reads * p.kernel[0] * p.kernel[1] * p.operands


def _cost(
    p: Problem, config: HardwareConfig, t: Tiling, slots: tuple[int, int, bool], whole: tuple[bool, bool], chunks: int
) -> int:
    """Predicted cycles: the busiest of the array, the requantizer and the two directions of the bus, plus what cannot
    overlap.

    ``slots`` are inp slots, wgt slots and whether channels are the outer loop; ``whole`` whether all inputs and all
    weights stay in their scratchpads.
    """
    inp_slots, wgt_slots, outer_channels = slots
    inp_all, wgt_all = whole
    groups = _ceil(p.outs, t.outs)
    spatial = _ceil(p.height, t.rows) * _ceil(p.width, t.columns)
    tiles = spatial * groups
    bus = config.axi_data_bytes
    vectors = p.height * p.width * p.outs
    steps = tiles * chunks * p.operands
    chunk_uops = t.outs * (min(t.ins, p.band) if p.banded else t.ins) * t.kernel[0] * t.kernel[1]
    gemms = steps * _ceil(chunk_uops, config.uop_depth)
    # Loads of the compute unit stop it: micro-ops once if they fit, parameters once or for every group or tile.
    variants = min(steps, _lockstep(inp_slots, wgt_slots, t.acc_slots))
    at_once = variants * chunk_uops <= config.uop_depth
    uop_loads, uop_words = (1, variants * chunk_uops) if at_once else (gemms, steps * chunk_uops)
    parameter_loads = 1 if t.resident_parameters else (groups if outer_channels else tiles)
    stops = (uop_loads + parameter_loads) * LOAD_OVERHEAD
    stops += (uop_words * config.uop_bytes + parameter_loads * t.parameters * config.acc_bytes) // bus
    # Reads of the load unit.
    inp_again = 1 if inp_all or (not outer_channels and chunks == 1) else groups
    inp_chunks = spatial * chunks * p.sources * (groups if p.banded else inp_again)
    wgt_again = 1 if wgt_all or (outer_channels and chunks * p.operands == 1) else spatial
    wgt_chunks = p.operands if p.shared_weights else groups * chunks * p.operands * wgt_again
    inp_load = t.inp_slot * config.inp_bytes // bus + t.ins * (_height(p, t) * ROW_GAP + LOAD_INSTRUCTION)
    wgt_load = t.wgt_slot * config.wgt_bytes // bus + LOAD_INSTRUCTION
    reads = inp_chunks * inp_load + wgt_chunks * wgt_load
    reads += (inp_chunks * t.ins + wgt_chunks + gemms + tiles * (1 + t.outs)) * INSN_BYTES // bus
    # Results: a second slot hides requantization behind the next tile, else the last chunk is cut by output block.
    tile_vectors = t.acc_slot
    store = _ceil(t.acc_slot * config.out_bytes, bus)
    if t.acc_slots > 1:
        exposed = 0
    else:
        part = tile_vectors // t.outs if chunks * p.operands > 1 else tile_vectors
        exposed = tiles * (REQUANT_OVERHEAD + part * config.requant_cycles + store * part // tile_vectors)
    compute = max(_work(p) + gemms * GEMM_OVERHEAD, vectors * config.requant_cycles + tiles * REQUANT_OVERHEAD)
    compute += exposed + vectors * config.requant_cycles * max(0, FREE_RUN - _run(p, t)) // FREE_RUN
    ahead_inp, ahead_wgt = inp_all or inp_slots >= 2 * p.sources, wgt_all or wgt_slots >= 2 * p.operands
    alone = (0 if ahead_inp else inp_chunks * inp_load) + (0 if ahead_wgt else wgt_chunks * wgt_load)
    total = max(compute + alone, reads + uop_words * config.uop_bytes // bus, vectors * config.out_bytes // bus)
    # What the neighbours hide in part: the first loads (weights wholly, where they fit beside as many of the layer
    # before), the last results.
    beside = t.wgt_slot * (wgt_slots + 1) <= config.wgt_depth
    start = inp_load + (0 if beside else wgt_load)
    finish = tile_vectors // t.outs * config.requant_cycles + store // t.outs
    return total + stops + int(BUS_SHARE * reads + START_SHARE * (start + finish))


def _lockstep(*slots: int) -> int:
    """How many combinations of slots occur when all take turns together."""
    return math.lcm(*slots) if max(slots) <= 8 else math.prod(slots)


def _run(p: Problem, t: Tiling) -> int:
    """Micro-ops in a row that sum into one acc element."""
    return (min(t.ins, p.band) if p.banded else t.ins) * t.kernel[0] * t.kernel[1]


def _height(p: Problem, t: Tiling) -> int:
    """Rows of an input window."""
    return t.rows if p.row_skip else (t.rows - 1) * p.strides[0] + t.kernel[0]


def check_pieces(size: int, part: int) -> list[tuple[int, int]]:
    """Return (start, count) of the parts of ``size``, each ``part`` long, the last what is left."""
    return [(start, min(part, size - start)) for start in range(0, size, part)]


def tile_grid(problem: Problem, tiling: Tiling) -> list[tuple[tuple[int, int], tuple[int, int], tuple[int, int]]]:
    """Return the tiles in order: (first output block, count), (first row, count), (first column, count)."""
    outs = check_pieces(problem.outs, tiling.outs)
    places = list(
        itertools.product(check_pieces(problem.height, tiling.rows), check_pieces(problem.width, tiling.columns))
    )
    if tiling.outer_channels:
        return [(co, rows, columns) for co in outs for rows, columns in places]
    return [(co, rows, columns) for rows, columns in places for co in outs]
