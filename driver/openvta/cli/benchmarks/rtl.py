# SPDX-License-Identifier: Apache-2.0
"""Running the benchmark network on the RTL, every layer compared with the reference."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from openvta.cli.benchmarks import BenchmarkError
from openvta.cli.benchmarks.network import (
    Convolution,
    Int8,
    check_equal,
    check_spread,
    network_graph,
    network_input,
    reference_outputs,
)
from openvta.cli.timing import RunTiming, analyse
from openvta.compiler.graph import Graph
from openvta.compiler.pipeline import compile_graph
from openvta.driver import Device
from openvta.driver.result import LaunchResult
from openvta.spec.bundle import Bundle
from openvta.spec.config import HardwareConfig

Say = Callable[[str], None]


@dataclass(frozen=True, eq=False)
class Network:
    """The layers, compiled into one program, with an input and what every layer must compute."""

    layers: tuple[Convolution, ...]
    graph: Graph
    bundle: Bundle
    x: Int8
    expected: Mapping[str, Int8]
    compile_seconds: float


@dataclass(frozen=True, eq=False)
class Run:
    """One launch on one memory."""

    launch: LaunchResult
    timing: RunTiming
    seconds: float


def prepare(layers: tuple[Convolution, ...], config: HardwareConfig, seed: int) -> Network:
    """Make data, compile, and compute the reference.

    Raises:
        BenchmarkError: data that would flatter, or a compile that is not one program.
        ModelError: a layer that no schedule fits.
    """
    graph = network_graph(layers, seed)
    x = network_input(layers, config.batch, seed + 1)
    expected = reference_outputs(graph, x)
    for layer in layers:
        check_spread(layer.name, expected[layer.name])
    began = time.monotonic()
    bundle = compile_graph(graph, config, strict=True, name=graph.name).bundle
    seconds = time.monotonic() - began
    if len(bundle.segments) != 1:
        raise BenchmarkError(f"{graph.name}: {len(bundle.segments)} programs instead of one: no figure")
    return Network(layers, graph, bundle, x, expected, seconds)


def run_once(device: Device, network: Network) -> Run:
    """Launch the network and compare the outputs of every layer.

    Raises:
        BenchmarkError: outputs that differ from the reference.
    """
    bundle = network.bundle
    placed = device.load(bundle)
    placed.write_tensor(bundle.tensor("x"), network.x)
    for layer in network.layers:
        spec = bundle.tensor(layer.name)
        placed.write_tensor(spec, ~network.expected[layer.name])
    began = time.monotonic()
    launch = device.launch(bundle)
    seconds = time.monotonic() - began
    for layer in network.layers:
        got = placed.read_tensor(bundle.tensor(layer.name), network.x.shape[0])
        check_equal(layer.name, got, network.expected[layer.name])
    return Run(launch, analyse(bundle, launch), seconds)


def layer_rows(network: Network, run: Run, memory: str) -> list[dict[str, Any]]:
    """One row a layer: cycles, utilization, micro-ops and stalls."""
    config = network.bundle.config
    predicted = {layer.name: layer.predicted_cycles for layer in network.bundle.layers}
    rows = []
    for layer, timing in zip(network.layers, run.timing.layers, strict=True):
        rows.append(
            {
                "layer": layer.name,
                "shape": layer.label,
                "memory": memory,
                "macs": layer.macs,
                "floor": -(-layer.macs * config.batch // config.macs_per_cycle),
                "cycles": timing.cycles,
                "utilization": round(timing.utilization(config), 4),
                "predicted": predicted[layer.name],
                "padding": timing.padding(config),
                "start": timing.start,
                "stalls": dict(timing.stalls),
            }
        )
    return rows
