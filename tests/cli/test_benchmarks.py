# SPDX-License-Identifier: Apache-2.0
"""The benchmarks on a small network of the same kind: exact, additive, and no figure where something is wrong."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from openvta.cli.benchmarks import BenchmarkError, cosim, scaling
from openvta.cli.benchmarks.network import (
    RESNET18,
    check_equal,
    check_spread,
    network_graph,
    network_input,
    reference_outputs,
    residual_stages,
)
from openvta.cli.benchmarks.resnet18 import measure
from openvta.cli.benchmarks.rtl import prepare, run_once
from openvta.driver import open_device
from openvta.spec import load_config

SMALL = residual_stages(10, (16, 32), repeats=2)


def test_resnet18_is_the_network_of_the_published_figures() -> None:
    assert len(RESNET18) == 19
    assert sum(layer.macs for layer in RESNET18) == 1_695_547_392
    assert [layer.name for layer in RESNET18[4:7]] == ["s2c1", "s2d", "s2c2"]
    assert RESNET18[4].source == RESNET18[5].source == "s1c4"
    assert RESNET18[-1].out_size == 7


def test_data_of_the_small_network_is_spread() -> None:
    graph = network_graph(SMALL, 1)
    outputs = reference_outputs(graph, network_input(SMALL, 1, 2))
    for layer in SMALL:
        levels, saturated = check_spread(layer.name, outputs[layer.name])
        assert levels >= 100 and saturated < 0.2


@pytest.mark.parametrize("values", [np.zeros(4096), np.where(np.arange(4096) % 3, 127, np.arange(4096) % 120)])
def test_data_that_would_flatter_gives_no_figure(values: np.ndarray) -> None:
    with pytest.raises(BenchmarkError, match=r"layer flat: .* distinct outputs .* saturated .*: no figure"):
        check_spread("flat", values)


def test_a_small_network_on_the_rtl() -> None:
    config = load_config("tiny")
    figures = measure(SMALL, config, lambda _: None, cold=False)
    summary = figures.summary
    for memory in ("ideal", "dram"):
        rows = [row for row in figures.rows if row["memory"] == memory]
        assert [row["layer"] for row in rows] == [layer.name for layer in SMALL]
        assert sum(row["cycles"] for row in rows) == summary[f"cycles_{memory}"]
        for row in rows:
            busy = row["floor"] + row["padding"]
            assert row["cycles"] == busy + sum(row["stalls"].values())
            assert all(cycles >= 0 for cycles in row["stalls"].values())
        record = figures.details["runs"][memory]
        assert record["cycles"] == summary[f"cycles_{memory}"] == record["counters"]["cycles"]
        assert record["counters"]["gemm_uops"] >= sum(layer["uops"] for layer in record["layers"])
        last = {}
        for track, _, start, cycles in record["slices"]:
            assert start >= last.get(track, 0) and cycles > 0
            last[track] = start + cycles
    assert summary["cycles_dram"] > summary["cycles_ideal"]
    assert 0 < summary["worst_1x1"] < 1


def test_outputs_that_differ_give_no_figure() -> None:
    config = load_config("tiny")
    network = prepare(SMALL[:1], config, 1)
    wrong = {name: values + np.int8(1) for name, values in network.expected.items()}
    with (
        open_device("fsim", config=config) as device,
        pytest.raises(BenchmarkError, match=r"layer s1c1: 1600 of 1600 outputs differ from the reference: no figure"),
    ):
        run_once(device, replace(network, expected=wrong))


@pytest.mark.long
def test_the_plain_loop_and_cocotb_run_the_same_cycles() -> None:
    figures = cosim.measure(SMALL[0], SMALL, load_config("tiny"), "dram", lambda _: None)
    plain, driven = figures.rows
    assert plain["cycles"] == driven["cycles"] > 0
    assert figures.summary["ratio"] > 0 and figures.summary["network_seconds"] > 0


@pytest.mark.parametrize("block", [16, 32, 64])
def test_the_network_is_exact_and_free_of_races_on_every_array(block: int) -> None:
    config = scaling.configurations(load_config("default"))[block]
    layers = residual_stages(14, (64, 128), repeats=2)
    network = prepare(layers, config, 1)
    bundle = network.bundle
    with open_device("fsim", config=config, check=True) as device:
        placed = device.load(bundle)
        placed.write_tensor(bundle.tensor("x"), network.x)
        device.launch(bundle)
        for layer in layers:
            check_equal(layer.name, placed.read_tensor(bundle.tensor(layer.name), 1), network.expected[layer.name])
