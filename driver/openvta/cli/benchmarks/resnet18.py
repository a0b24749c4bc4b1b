# SPDX-License-Identifier: Apache-2.0
"""ResNet-18's 19 convolutions after the stem on the RTL: one program, one run, on ideal memory and on the DRAM model."""

from __future__ import annotations

from typing import Any

from openvta.cli.benchmarks import BenchmarkError, Figures
from openvta.cli.benchmarks.network import RESNET18, Convolution
from openvta.cli.benchmarks.rtl import Network, Run, Say, layer_rows, prepare, run_once
from openvta.cli.timeline import run_record
from openvta.driver import Device, open_device
from openvta.sim.cosim.session import DRAM, IDEAL
from openvta.sim.cosim.transport import CosimTransport
from openvta.spec import HardwareConfig, load_config

SEED = 1
MEMORIES = {"ideal": IDEAL, "dram": DRAM}


def run(config_name: str, memory: str, say: Say) -> Figures:
    """Rows per layer and memory; summary as the names say (worst layers on ideal memory). ``memory`` is not used.

    Raises:
        BenchmarkError: a layer's outputs differ from the reference, or data that would flatter the figures.
    """
    return measure(RESNET18, load_config(config_name), say)


def measure(layers: tuple[Convolution, ...], config: HardwareConfig, say: Say, *, cold: bool = True) -> Figures:
    """Like :func:`run`, for any layers; ``cold`` runs each layer alone as well."""
    say(f"making data, compiling {len(layers)} layers for {config.name}")
    network = prepare(layers, config, SEED)
    say(f"compiled in {network.compile_seconds:.2f} s: {len(network.bundle.segments[0].program)} instructions")
    runs: dict[str, Run] = {}
    with open_device("cosim", config=config, progress=say) as device:
        for name, model in MEMORIES.items():
            say(f"running the network on the RTL, {name} memory")
            transport(device).set_memory(model)
            runs[name] = run_once(device, network)
            say(f"{name}: {runs[name].timing.cycles:,} cycles in {runs[name].seconds:.1f} s")
        transport(device).set_memory(IDEAL)
        alone = cold_cycles(device, layers, config, say) if cold else {}
    rows = []
    for name, result in runs.items():
        for layer, row in zip(layers, layer_rows(network, result, name), strict=True):
            rows.append(row | ({"cold": alone[layer.label]} if name == "ideal" and alone else {}))
    records = {name: run_record(network.bundle, result.launch, result.timing) for name, result in runs.items()}
    return Figures(rows, _summary(network, runs, rows), {"runs": records})


def transport(device: Device) -> CosimTransport:
    """The RTL below a device.

    Raises:
        BenchmarkError: it is something else.
    """
    below = device.transport
    if not isinstance(below, CosimTransport):
        raise BenchmarkError(f"device '{device.name}': this benchmark needs 'cosim'")
    return below


def cold_cycles(device: Device, layers: tuple[Convolution, ...], config: HardwareConfig, say: Say) -> dict[str, int]:
    """Cycles of each distinct layer alone, from launch to done."""
    found: dict[str, int] = {}
    for layer in layers:
        if layer.label in found:
            continue
        single = Convolution(layer.name, "x", layer.size, layer.channels, layer.kernel, layer.stride)
        result = run_once(device, prepare((single,), config, SEED))
        found[layer.label] = result.timing.cycles
        say(f"alone: {layer.label}: {result.timing.cycles:,} cycles")
    return found


def _summary(network: Network, runs: dict[str, Run], rows: list[dict[str, Any]]) -> dict[str, Any]:
    config = network.bundle.config
    macs = sum(layer.macs for layer in network.layers) * config.batch
    summary: dict[str, Any] = {}
    for name, result in runs.items():
        cycles = result.timing.cycles
        if sum(row["cycles"] for row in rows if row["memory"] == name) != cycles:
            raise BenchmarkError(f"{name}: the layers' cycles do not add up to {cycles}: no figure")
        summary[f"cycles_{name}"] = cycles
        summary[f"utilization_{name}"] = round(macs / (cycles * config.macs_per_cycle), 4)
    for kernel in (3, 1):
        mine = [
            row["utilization"]
            for row, layer in zip(rows, network.layers, strict=False)
            if layer.kernel == kernel and row["memory"] == "ideal"
        ]
        if mine:
            summary[f"worst_{kernel}x{kernel}"] = min(mine)
    summary["compile_seconds"] = round(network.compile_seconds, 2)
    summary["wall_seconds"] = round(runs["ideal"].seconds, 2)
    return summary
