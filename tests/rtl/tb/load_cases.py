# SPDX-License-Identifier: Apache-2.0
"""LOAD instructions for tests of any configuration."""

from __future__ import annotations

import random
from itertools import product

from load_model import Load, load, memory_of

from openvta.spec.config import HardwareConfig
from openvta.spec.isa import MemId


def random_load(config: HardwareConfig, memory_id: MemId, rng: random.Random, index: int) -> Load:
    """A load in range, with any pads, fill, stride, offset and base."""
    memory = memory_of(config, memory_id)
    window = config.axi_burst_beats * config.axi_data_bytes
    largest = min(memory.depth, rng.choice((4, 12, 40, max(40, 5 * window // memory.elem_bytes))))
    while True:
        x = rng.choice((1, 2, 3, rng.randint(1, max(1, largest)), rng.randint(1, max(1, largest))))
        y = rng.choice((1, 1, 2, 3, rng.randint(1, 8)))
        pads = [rng.choice((0, 0, 1, 2, 3, 15)) for _ in range(4)] if rng.random() < 0.6 else [0, 0, 0, 0]
        total = (pads[0] + y + pads[1]) * (pads[2] + x + pads[3])
        if total <= largest:
            break
    stride = rng.choice((x, x, x + rng.randint(0, 9), 0, rng.randint(0, 65535)))
    fill: dict[str, int] = {}
    if memory_id is not MemId.UOP and config.has("padv"):
        fill = rng.choice(({}, {"pad_min": 1}, {"pad_value": rng.randint(0, 255)}))
    return load(
        config,
        memory_id,
        base=random_base(rng),
        index=index,
        sram_base=rng.randint(0, memory.depth - total),
        y_size=y,
        x_size=x,
        dram_base=rng.choice((rng.randint(0, 63), rng.getrandbits(32))),
        x_stride=stride,
        y_pad_0=pads[0],
        y_pad_1=pads[1],
        x_pad_0=pads[2],
        x_pad_1=pads[3],
        **fill,
    )


def random_base(rng: random.Random) -> int:
    """A 4096-aligned base address anywhere in 64 bits."""
    return rng.choice((0, 0x1000, rng.getrandbits(20) << 12, (rng.getrandbits(50) << 12) % (1 << 62)))


def padded_long_rows(config: HardwareConfig, memory_id: MemId) -> list[Load]:
    """Rows longer than a burst with every combination of pads present and absent."""
    memory = memory_of(config, memory_id)
    window = config.axi_burst_beats * config.axi_data_bytes
    longest = 300 if memory_id is MemId.INP else 2 * window // memory.elem_bytes + 3
    cases: list[Load] = []
    for pads in product((0, 1), (0, 2), (0, 1), (0, 3)):
        number = len(cases)
        x = min(longest, (memory.depth - 8) // (2 + pads[0] + pads[1]) - pads[2] - pads[3])
        if x < 1:
            continue
        cases.append(
            load(
                config,
                memory_id,
                index=number,
                dram_base=number,
                sram_base=min(number, 8),
                y_size=2,
                x_size=x,
                x_stride=x + 10,
                y_pad_0=pads[0],
                y_pad_1=pads[1],
                x_pad_0=pads[2],
                x_pad_1=pads[3],
            )
        )
    return cases


def offsets_and_counts(config: HardwareConfig, memory_id: MemId) -> list[Load]:
    """Every scratchpad offset, start in a beat and length of a few elements."""
    memory = memory_of(config, memory_id)
    slots = max(1, config.axi_data_bytes // memory.elem_bytes)
    starts = range(min(slots, 4)) if slots > 1 else (0,)
    sizes = range(1, 10)
    grid = product(range(10), sizes, starts)
    return [
        load(config, memory_id, index=n, sram_base=offset, x_size=count, y_size=1, x_stride=count, dram_base=8 + start)
        for n, (offset, count, start) in enumerate(grid)
        if offset + count <= memory.depth
    ]


def window_edges(config: HardwareConfig, memory_id: MemId) -> list[Load]:
    """Rows that begin and end around burst windows and 4 KiB pages."""
    memory = memory_of(config, memory_id)
    window = config.axi_burst_beats * config.axi_data_bytes
    cases: list[Load] = []
    for edge in (window, 4096, 3 * window):
        for before, after in product((1, 2, 3), (1, 2, 5)):
            first = edge // memory.elem_bytes - before
            if first < 0 or before + after > memory.depth:
                continue
            cases.append(
                load(
                    config,
                    memory_id,
                    index=len(cases),
                    base=0x40000000,
                    dram_base=first,
                    x_size=before + after,
                    y_size=1,
                    x_stride=before + after,
                    sram_base=0,
                )
            )
    span = min(memory.depth, max(1, 3 * window // memory.elem_bytes))
    for first in (0, 1, 3):
        cases.append(
            load(
                config,
                memory_id,
                index=len(cases),
                dram_base=first,
                x_size=max(1, span - 3),
                y_size=1,
                x_stride=span - 3 if span > 3 else 1,
            )
        )
    return cases
