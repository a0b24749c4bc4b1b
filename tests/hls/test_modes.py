# SPDX-License-Identifier: Apache-2.0
"""Both run modes and both kinds of integers leave the memory that fsim leaves, whatever the depth of the streams."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conformance.programs import build, names
from core_programs import run_filled
from openvta.driver import Device, Fault, open_device
from openvta.spec import HardwareConfig, load_config, named_configs
from openvta.spec.bundle import Bundle
from random_programs import Generator

ODD_CONFIGS = sorted((Path(__file__).parents[1] / "rtl" / "configs").glob("*.toml"))
THREADED = {"mode": "threaded", "integers": "wide"}
WIDE = {"integers": "wide"}
DEPTHS = (1, 2, 3, 8)
Open = Callable[[str, HardwareConfig, dict[str, Any]], Device]
Record = Callable[[str, str], None]


@pytest.fixture(scope="module")
def devices() -> Iterator[Open]:
    """Opens each device once."""
    opened: dict[str, Device] = {}

    def get(name: str, config: HardwareConfig, options: dict[str, Any]) -> Device:
        key = f"{name} {config.name} {options}"
        if key not in opened:
            opened[key] = open_device(name, config=config, **options)
        return opened[key]

    yield get
    for device in opened.values():
        device.close()


def outcome(device: Device, bundle: Bundle) -> tuple[tuple[object, ...] | None, bytes, dict[str, int]]:
    """(fault or None, the whole image afterwards, the counters)."""
    placed = device.load(bundle)
    for offset, data in bundle.image:
        device.transport.write(placed.base + offset, data)
    try:
        result = device.launch(bundle)
    except Fault as fault:
        return (fault.cause, fault.unit, fault.index), b"", {}
    return None, placed.read().tobytes(), dict(result.counters)


def check(device: Device, fsim: Device, bundle: Bundle) -> None:
    """The device ends as fsim does: the same fault, or the same memory and exact counters."""
    fault, memory, counters = outcome(device, bundle)
    expected_fault, expected, exact = outcome(fsim, bundle)
    assert fault == expected_fault
    different = np.flatnonzero(np.frombuffer(memory, np.uint8) != np.frombuffer(expected, np.uint8))
    assert not different.size, f"{different.size} bytes differ, first at {different[:4]}"
    assert {name: counters[name] for name in exact} == exact


SOME = [
    name for name in names(load_config("tiny")) if name.startswith(("tokens_", "finish_")) or name.endswith("_loops")
]


@pytest.mark.parametrize("name", SOME)
def test_threads(name: str, devices: Open, record_coverage: Record) -> None:
    config = load_config("tiny")
    check(devices("hls", config, THREADED), devices("fsim", config, {}), build(config, name).bundle)
    record_coverage("hls-threaded", "tiny")


@pytest.mark.long
@pytest.mark.parametrize("config_name", named_configs())
@pytest.mark.parametrize("depth", (0, *DEPTHS))
def test_threads_on_every_configuration(depth: int, config_name: str, devices: Open, record_coverage: Record) -> None:
    config = load_config(config_name)
    for name in names(config):
        device = devices("hls", config, {**THREADED, "depth_limit": depth})
        check(device, devices("fsim", config, {}), build(config, name).bundle)
    record_coverage("hls-threaded", config_name)


@pytest.mark.parametrize("depth", [1, *(pytest.param(depth, marks=pytest.mark.long) for depth in DEPTHS[1:])])
def test_stream_depths(depth: int, devices: Open, rng: np.random.Generator) -> None:
    """Streams inside the kernel hold a single element and more: the results stay."""
    config = load_config("tiny")
    device, fsim = devices("hls", config, {**THREADED, "depth_limit": depth}), devices("fsim", config, {})
    for name in ("tokens_double_buffer", "tokens_behind_a_full_queue", "tokens_full_load_to_compute", "gemm_loops"):
        check(device, fsim, build(config, name).bundle)
    for _ in range(2):
        found = Generator(config, rng).program(60)
        expected, _ = run_filled(fsim, found)
        memory, _ = run_filled(device, found)
        assert np.array_equal(memory, expected)


@pytest.mark.parametrize(("token_depth", "queue_depth"), [(1, 2)])
def test_shallow_queues_of_the_configuration(
    token_depth: int, queue_depth: int, devices: Open, rng: np.random.Generator
) -> None:
    """The depths of the configuration itself; programs whose units hand over one token at a time."""
    name = f"t{token_depth}q{queue_depth}"
    config = load_config("tiny").replace(name=name, token_depth=token_depth, queue_depth=queue_depth)
    for options in (WIDE, THREADED):
        device, fsim = devices("hls", config, options), devices("fsim", config, {})
        check(device, fsim, build(config, "load_inp").bundle)
        assert random_insns(device, fsim, config, rng, 60) >= 60


@pytest.mark.parametrize("path", ODD_CONFIGS, ids=lambda path: path.stem)
def test_odd_configurations(path: Path, devices: Open, record_coverage: Record) -> None:
    """Lanes of 1, 2 and 4 bits, no extensions, wide and narrow buses; programs written for larger buffers end in fsim's fault."""
    config = load_config(path)
    device, fsim = devices("hls", config, WIDE), devices("fsim", config, {})
    done = 0
    for name in names(config):
        try:
            bundle = build(config, name).bundle
        except ValueError:  # the program's own arrays do not fit these buffers
            continue
        check(device, fsim, bundle)
        done += 1
    assert done > 80
    record_coverage("hls", config.name)


def random_insns(device: Device, fsim: Device, config: HardwareConfig, rng: np.random.Generator, wanted: int) -> int:
    """Run random programs until ``wanted`` instructions were compared; how many were."""
    count = 0
    while count < wanted:
        found = Generator(config, rng).program(60)
        expected, exact = run_filled(fsim, found)
        memory, result = run_filled(device, found)
        different = np.flatnonzero(expected != memory)
        assert different.size == 0, f"{different.size} bytes differ, first at {different[0]:#x}"
        assert {name: result.counters[name] for name in exact.counters} == exact.counters
        count += len(found.program)
    return count


@pytest.mark.parametrize(
    ("integers", "config_name"),
    [("wide", name) for name in named_configs()] + [("native", "default"), ("native", "tiny")],
)
def test_random_programs(
    config_name: str, integers: str, devices: Open, rng: np.random.Generator, record_coverage: Record
) -> None:
    config = load_config(config_name)
    options = {"integers": integers}
    assert random_insns(devices("hls", config, options), devices("fsim", config, {}), config, rng, 800) >= 800
    record_coverage(f"hls-{integers}", config_name)


@pytest.mark.parametrize("path", ODD_CONFIGS, ids=lambda path: path.stem)
def test_random_programs_on_odd_configurations(path: Path, devices: Open, rng: np.random.Generator) -> None:
    config = load_config(path)
    assert random_insns(devices("hls", config, WIDE), devices("fsim", config, {}), config, rng, 300) >= 300


@pytest.mark.long
@pytest.mark.parametrize("options", [WIDE, {"integers": "native"}, THREADED], ids=["wide", "native", "threaded"])
@pytest.mark.parametrize("config_name", named_configs())
def test_many_random_programs(
    config_name: str, options: dict[str, Any], devices: Open, rng: np.random.Generator
) -> None:
    config = load_config(config_name)
    assert random_insns(devices("hls", config, options), devices("fsim", config, {}), config, rng, 5000) >= 5000
