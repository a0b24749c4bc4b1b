# SPDX-License-Identifier: Apache-2.0
"""The timing model: never below the micro-ops, slower with a slower memory, deterministic."""

from __future__ import annotations

import numpy as np
import pytest

from compiler.backend_cases import conv_graph
from openvta.compiler.pipeline import compile_graph
from openvta.compiler.schedule.machine import Channel, MemoryTiming, predict
from openvta.spec import load_config


@pytest.mark.parametrize("name", ["default", "tiny", "batch"])
def test_a_convolution(name: str, rng: np.random.Generator) -> None:
    config = load_config(name)
    graph = conv_graph(rng, (32, 32), (12, 12), (3, 3), (1, 1), (1, 1, 1, 1))
    segment = compile_graph(graph, config, strict=True).segments[0]
    ideal = predict(segment.schedule, 1, config)
    slow = predict(segment.schedule, 1, config, MemoryTiming(60, 60, 0.9))
    uops = sum(layer.uops for layer in segment.layers)
    assert uops <= ideal.cycles < slow.cycles
    assert ideal == predict(segment.schedule, 1, config)
    assert ideal.layers() == (ideal.cycles,) == (segment.layers[0].cycles,)


def test_a_channel_carries_a_beat_a_cycle_whatever_the_order() -> None:
    channel = Channel(1.0)
    assert channel.transfer(1000, 100) == pytest.approx(1100, abs=1)
    assert channel.transfer(0, 500) == pytest.approx(500, abs=1)
    assert channel.transfer(1000, 100) >= 1150
    assert Channel(0.5).transfer(0, 640) == pytest.approx(1280, abs=1)
    assert channel.transfer(7, 0) == 7
