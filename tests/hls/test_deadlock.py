# SPDX-License-Identifier: Apache-2.0
"""A program that cannot go on ends within a bound, with an error that names who waits and how full every queue is."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

import pytest

from conformance.programs import build
from openvta.driver import Device, Fault, open_device
from openvta.sim.hls.library import HlsError
from openvta.spec import Cause, Program, Queue, Unit, load_config
from openvta.spec.bundle import Bundle, Segment
from openvta.spec.isa import TOKEN_FLAGS
from openvta.spec.registers import OFFSETS

MODES = ("sequential", "threaded")
QUEUES = [queue.name.lower() for queue in Queue]


@pytest.fixture(params=MODES)
def device(request: pytest.FixtureRequest) -> Iterator[Device]:
    options = {"mode": request.param, "integers": "wide", "timeout": 20.0}
    with open_device("hls", config=load_config("tiny"), **options) as opened:
        yield opened


def without(bundle: Bundle, flag: str) -> tuple[Bundle, int]:
    """The bundle without the first token flag of that name, and the instruction that had it."""
    segment = bundle.segments[0]
    words = list(segment.program.words)
    bit = 1 << (3 + TOKEN_FLAGS.index(flag))
    index = next(n for n, word in enumerate(words) if word & bit)
    words[index] &= ~bit
    cut = Segment(Program(bundle.config, tuple(words)), segment.insn_offset)
    return Bundle(**{**vars(bundle), "segments": (cut,)}), index


def test_a_missing_push_names_the_stage_and_the_fills(device: Device) -> None:
    bundle, index = without(build(load_config("tiny"), "tokens_double_buffer").bundle, "push_next")
    device.transport.write_register(OFFSETS["WATCHDOG"], 2_000)
    began = time.monotonic()
    with pytest.raises(Fault) as caught:
        device.launch(bundle)
    assert time.monotonic() - began < 30
    found, text = caught.value, str(caught.value)
    assert found.cause is Cause.WATCHDOG and found.unit is Unit.COMPUTE and found.index > index
    assert Queue.LOAD_TO_COMPUTE in found.waits
    assert "in unit compute" in text and "load_to_compute" in text
    for name in (*QUEUES, "load instructions", "compute instructions", "store instructions"):
        assert re.search(rf"{name} \d+/\d+", text), f"{name} is not named in: {text}"
    assert "load_to_compute 0/15" in text
    good = build(load_config("tiny"), "tokens_double_buffer")
    placed = device.load(good.bundle)
    device.launch(good.bundle)
    assert placed.read(good.out_offset, len(good.expected)).tobytes() == good.expected


def test_a_token_left_over_is_named(device: Device) -> None:
    bundle, _ = without(build(load_config("tiny"), "tokens_store_before_overwrite").bundle, "pop_next")
    device.transport.write_register(OFFSETS["WATCHDOG"], 2_000)
    with pytest.raises(Fault) as caught:
        device.launch(bundle)
    assert caught.value.finish and "store_to_compute 1/15" in str(caught.value)


def test_without_a_watchdog_a_threaded_wait_ends_with_every_fill() -> None:
    bundle, _ = without(build(load_config("tiny"), "tokens_double_buffer").bundle, "push_next")
    options = {"mode": "threaded", "integers": "wide", "timeout": 0.5}
    with open_device("hls", config=load_config("tiny"), **options) as device:
        device.transport.write_register(OFFSETS["WATCHDOG"], 0)
        began = time.monotonic()
        with pytest.raises(
            HlsError, match=r"no stage has moved.*at hand an instruction: .*compute.*load_to_compute 0/15"
        ) as caught:
            device.launch(bundle)
        assert time.monotonic() - began < 20
        assert all(re.search(rf"{name} \d+/\d+", str(caught.value)) for name in QUEUES)


def test_without_a_watchdog_a_sequential_wait_is_bounded() -> None:
    bundle, _ = without(build(load_config("tiny"), "tokens_double_buffer").bundle, "push_next")
    with open_device("hls", config=load_config("tiny"), integers="wide") as device:
        device.transport.write_register(OFFSETS["WATCHDOG"], 0)
        from openvta.driver import Timeout

        with pytest.raises(Timeout, match="compute_busy"):
            device.launch(bundle, max_cycles=1000)
