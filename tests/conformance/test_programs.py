# SPDX-License-Identifier: Apache-2.0
"""The same micro-programs on every backend and every named configuration leave exactly the memory they promise."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from conformance.programs import build, names
from openvta.driver import Device, Fault, open_device
from openvta.sim.fsim.check import CheckError
from openvta.spec import HardwareConfig, Program, load_config, named_configs
from openvta.spec.bundle import Bundle, Segment
from openvta.spec.isa import TOKEN_FLAGS, Cause
from openvta.spec.registers import CYCLE_SPLIT

BACKENDS: dict[str, tuple[str, dict[str, Any]]] = {
    "fsim": ("fsim", {}),
    "cosim": ("cosim", {}),
    "cosim-dram": ("cosim", {"memory": "dram"}),
    "hls": ("hls", {"integers": "wide"}),
    "hls-native": ("hls", {"integers": "native"}),
}
"""A device, and the options it is opened with."""
CASES = [(config, name) for config in named_configs() for name in names(load_config(config))]
OFTEN_NATIVE = ("default", "tiny")
"""Configurations whose native HLS kernel is built in every run: the fixed-width one is built for all."""


def run_of(backend: str, config_name: str, name: str) -> Any:
    """A backend, a configuration and a program; native integers on the other configurations are a campaign."""
    seldom = backend == "hls-native" and config_name not in OFTEN_NATIVE
    marks = [pytest.mark.long] if seldom else []
    return pytest.param(backend, config_name, name, marks=marks, id=f"{backend}-{config_name}-{name}")


RUNS = [run_of(backend, config, name) for backend in BACKENDS for config, name in CASES]
Open = Callable[[str, HardwareConfig], Device]


@pytest.fixture(scope="module")
def devices() -> Iterator[Open]:
    """Opens each (backend, configuration) once."""
    opened: dict[tuple[str, str], Device] = {}

    def get(backend: str, config: HardwareConfig) -> Device:
        key = backend, config.name
        if key not in opened:
            name, options = BACKENDS[backend]
            opened[key] = open_device(name, config=config, **options)
        return opened[key]

    yield get
    for device in opened.values():
        device.close()


@pytest.mark.parametrize(("backend", "config_name", "name"), RUNS)
def test_program(
    backend: str, config_name: str, name: str, devices: Open, record_coverage: Callable[[str, str], None]
) -> None:
    config = load_config(config_name)
    case = build(config, name)
    device = devices(backend, config)
    placed = device.load(case.bundle)
    result = device.launch(case.bundle)
    out = placed.read(case.out_offset, len(case.expected))
    wrong = np.flatnonzero(out != np.frombuffer(case.expected, np.uint8)) // config.out_bytes
    assert not wrong.size, f"out elements {sorted(set(wrong.tolist()))[:8]} are not what {name} promises"
    for offset, data in case.bundle.image:
        if offset != case.out_offset:
            assert placed.read(offset, len(data)).tobytes() == data, f"{name} changed its inputs"
    if "retire_events" in device.capabilities:
        assert sorted(index for _, _, index in result.events) == list(range(len(case.program)))
    if "counters" in device.capabilities:
        assert result.counters["insns_retired"] == len(case.program)
        assert result.counters["insn_bytes"] == 16 * len(case.program)
    if "cycles" in result.counters:
        for unit, names in CYCLE_SPLIT.items():
            split = {part: result.counters[part] for part in names}
            assert sum(split.values()) == result.counters["cycles"], f"the cycles of {unit} are not explained: {split}"
    if backend != "fsim":
        other = devices("fsim", config)
        other.load(case.bundle)
        exact = other.launch(case.bundle).counters
        assert {name: result.counters[name] for name in exact} == exact, "counts are the same on every backend"
    record_coverage(backend, config_name)


@pytest.mark.parametrize(("config_name", "name"), CASES)
def test_program_is_clean(config_name: str, name: str) -> None:
    """No race, deadlock, never-written read or token left over, in another interleaving than the plain one."""
    config = load_config(config_name)
    case = build(config, name)
    with open_device("fsim", config=config, check=True, seed=11) as device:
        placed = device.load(case.bundle)
        device.launch(case.bundle)
        assert placed.read(case.out_offset, len(case.expected)).tobytes() == case.expected


def without_flag(case_bundle: Bundle, index: int, flag: str) -> Bundle:
    """The bundle with one token flag of one instruction cleared."""
    segment = case_bundle.segments[0]
    words = list(segment.program.words)
    words[index] &= ~(1 << (3 + TOKEN_FLAGS.index(flag)))
    program = Program(case_bundle.config, tuple(words))
    return Bundle(**{**vars(case_bundle), "segments": (Segment(program, segment.insn_offset),)})


def flags_of(bundle: Bundle) -> list[tuple[int, str]]:
    """(instruction, flag) of every token flag that is set."""
    words = bundle.segments[0].program.words
    return [(n, flag) for n, word in enumerate(words) for bit, flag in enumerate(TOKEN_FLAGS) if word >> (3 + bit) & 1]


@pytest.mark.parametrize(
    "name", ["tokens_double_buffer", "tokens_store_before_overwrite", "tokens_of_nothing", "load_inp"]
)
def test_a_missing_token_is_reported(name: str) -> None:
    """Whichever token flag is taken away, checking names a deadlock, a race or a token left over."""
    config = load_config("tiny")
    bundle = build(config, name).bundle
    for index, flag in flags_of(bundle):
        broken = without_flag(bundle, index, flag)
        with open_device("fsim", config=config, check=True) as device, pytest.raises(CheckError) as caught:
            device.launch(broken)
        least = 1 if index == len(bundle.segments[0].program) - 1 else 2  # FINISH may pop, but need not
        both = [found for found in caught.value.report.findings if len(found.instructions) >= least]
        assert both, (index, flag)
        assert all(f"instruction {n} (" in found.message for found in both for n in found.instructions)


@pytest.mark.parametrize("backend", ["fsim", "cosim", "hls"])
@pytest.mark.parametrize(("index", "flag"), [(0, "push"), (1, "pop")])
def test_a_missing_token_ends_in_an_error(backend: str, index: int, flag: str, devices: Open) -> None:
    """Without its push a program stops on the watchdog, which names the waiting instruction and the queue."""
    config = load_config("tiny")
    bundle = build(config, "tokens_double_buffer").bundle
    chosen = [item for item in flags_of(bundle) if item[1].startswith(flag)][index]
    broken = without_flag(bundle, *chosen)
    device = devices(backend, config)
    with pytest.raises(Fault) as caught:
        device.launch(broken)
    assert caught.value.cause is Cause.WATCHDOG
    assert "deadlock" in str(caught.value) or "token is left over" in str(caught.value)
    device.launch(bundle)  # and the device is good again
