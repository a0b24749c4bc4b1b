# SPDX-License-Identifier: Apache-2.0
"""The benchmark network on arrays of 16 x 16, 32 x 32 and 64 x 64 with a bus that grows along: how cycles scale."""

from __future__ import annotations

from typing import Any

from openvta.cli.benchmarks import Figures
from openvta.cli.benchmarks.network import RESNET18, Convolution
from openvta.cli.benchmarks.resnet18 import SEED
from openvta.cli.benchmarks.rtl import Say, prepare, run_once
from openvta.driver import open_device
from openvta.spec import HardwareConfig, load_config

BUS = {16: 64, 32: 256, 64: 512}
"""Bus bits of each array."""


def configurations(base: HardwareConfig) -> dict[int, HardwareConfig]:
    """The configurations by block, 16 x 16 first.

    Scratchpads keep their elements where the encoding allows it: 2,048 of inp, 1,024 (256 for 64 x 64) of wgt, 2,048 of
    acc.
    """
    found = {}
    for block, bus in BUS.items():
        factor = block // 16
        found[block] = base.replace(
            name=f"{block}x{block}",
            block=block,
            axi_data_bits=bus,
            inp_buffer_bytes=32768 * factor,
            wgt_buffer_bytes=262144 * min(factor, 2) ** 2 if factor < 4 else 1 << 20,
            acc_buffer_bytes=131072 * factor,
        )
    return found


def run(config_name: str, memory: str, say: Say) -> Figures:
    """Rows a configuration; summary: cycles of 256 MAC divided by those of 1,024 and 4,096.

    Raises:
        BenchmarkError: outputs that differ from the reference, or data that would flatter.
    """
    return measure(RESNET18, load_config(config_name), memory, say)


def measure(layers: tuple[Convolution, ...], base: HardwareConfig, memory: str, say: Say) -> Figures:
    """Like :func:`run`, for any layers."""
    rows: list[dict[str, Any]] = []
    for block, config in configurations(base).items():
        say(f"{block}x{block}, {config.axi_data_bits}-bit bus: compiling")
        network = prepare(layers, config, SEED)
        with open_device("cosim", config=config, memory=memory, progress=say) as device:
            result = run_once(device, network)
        cycles = result.timing.cycles
        macs = sum(layer.macs for layer in layers) * config.batch
        say(f"{block}x{block}: {cycles:,} cycles in {result.seconds:.1f} s")
        rows.append(
            {
                "array": f"{block}x{block}",
                "bus_bits": config.axi_data_bits,
                "memory": memory,
                "macs_per_cycle": config.macs_per_cycle,
                "cycles": cycles,
                "utilization": round(macs / (cycles * config.macs_per_cycle), 4),
                "speedup": round(rows[0]["cycles"] / cycles, 3) if rows else 1.0,
                "seconds": round(result.seconds, 2),
            }
        )
    return Figures(rows, {f"speedup_{row['macs_per_cycle']}": row["speedup"] for row in rows[1:]})
