# SPDX-License-Identifier: Apache-2.0
"""The compiled host and memory, with a bus master that copies bursts in the accelerator's place."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from openvta.sim.cosim.build import BuiltModel, fast_harness
from openvta.sim.cosim.errors import CosimError, SimulationFailed
from openvta.sim.cosim.session import DRAM, IDEAL, BusFault, FastSession, MemoryModel, Op, OpKind
from openvta.spec import load_config
from rtl.copy_engine import BEATS, COUNT, RUNNING, SILENT, TAIL_STROBES, build, copy

BASE = 0x1_2000_0000
SIZE = 1 << 16
TARGET = BASE + SIZE // 2


@pytest.fixture(scope="module", params=["default", "b1x32"])
def model(request: pytest.FixtureRequest) -> BuiltModel:
    config = load_config(request.param)
    return build(config, fast_harness(config))


@pytest.fixture(scope="module")
def shared(model: BuiltModel) -> Iterator[FastSession]:
    with FastSession(model, SIZE, memory_base=BASE) as opened:
        yield opened


@pytest.fixture
def session(shared: FastSession, rng: np.random.Generator) -> FastSession:
    """One process for many tests: each starts from random memory and ideal timing."""
    shared.set_memory_model(IDEAL)
    shared.request([Op(OpKind.RESET)], seconds=60)
    shared.memory[:] = rng.integers(0, 256, SIZE, np.uint8)
    return shared


@pytest.fixture
def doomed(model: BuiltModel) -> Iterator[FastSession]:
    """A process for a test that ends it."""
    with FastSession(model, SIZE, memory_base=BASE) as opened:
        yield opened


def burst_bytes(model: BuiltModel) -> int:
    return BEATS * model.design.config.axi_data_bytes


def test_many_copies_in_one_process(session: FastSession, model: BuiltModel, rng: np.random.Generator) -> None:
    for memory in (IDEAL, DRAM, MemoryModel(3, 7, 2, 3), MemoryModel(1, 1, 1, 2)):
        session.set_memory_model(memory)
        for bursts in (1, 2, 33):
            size = bursts * burst_bytes(model)
            session.memory[:] = rng.integers(0, 256, SIZE, np.uint8)
            before = np.array(session.memory)
            answer = session.request(copy(BASE, TARGET, bursts), seconds=60)
            assert answer.results[:2] == (1, 0)
            before[SIZE // 2 : SIZE // 2 + size] = before[:size]
            assert np.array_equal(session.memory, before)
            for unit, count in ((1, bursts), (3, bursts)):
                assert [index for _, who, index in answer.retired if who == unit] == list(range(count))
            assert [index for _, who, index in answer.retired if who == 2] == [bursts]
            assert list(answer.gemm_ends) == [cycle for cycle, who, _ in answer.retired if who == 3]
            cycles = [cycle for cycle, _, _ in answer.retired]
            assert cycles == sorted(cycles) and cycles[-1] <= answer.cycle


def test_ideal_memory_carries_a_beat_a_cycle(session: FastSession, model: BuiltModel) -> None:
    small = session.request(copy(BASE, TARGET, 10), seconds=60).results[2]
    large = session.request(copy(BASE, TARGET, 110), seconds=60).results[2]
    assert large - small == 100 * BEATS


def test_latency_and_closed_cycles_cost_what_they_say(session: FastSession, model: BuiltModel) -> None:
    def cycles(memory: MemoryModel, bursts: int) -> int:
        session.set_memory_model(memory)
        return session.request(copy(BASE, TARGET, bursts), seconds=60).results[2]

    assert cycles(MemoryModel(51, 31), 1) == cycles(IDEAL, 1) + 50 + 30
    assert cycles(MemoryModel(50, 1, outstanding=1), 20) >= 20 * (50 + BEATS)
    slow = cycles(MemoryModel(closed_every=2), 100)
    assert 2 * 100 * BEATS <= slow <= 2 * 100 * BEATS + 40


def test_strobes_write_only_their_bytes(session: FastSession, model: BuiltModel) -> None:
    size, beat = burst_bytes(model), model.design.config.axi_data_bytes
    before = np.array(session.memory)
    session.request(copy(BASE, TARGET, 1, strobes=0b101), seconds=60)
    expected = before.copy()
    expected[SIZE // 2 : SIZE // 2 + size - beat] = before[: size - beat]
    for lane in (0, 2):
        expected[SIZE // 2 + size - beat + lane] = before[size - beat + lane]
    assert np.array_equal(session.memory, expected)


@pytest.mark.parametrize("response", [2, 3])
@pytest.mark.parametrize("write", [False, True])
def test_a_fault_answers_its_range_only(session: FastSession, model: BuiltModel, response: int, write: bool) -> None:
    size = burst_bytes(model)
    address = (TARGET if write else BASE) + 3 * size
    session.set_memory_model(IDEAL, [BusFault(address, 1, response, write)])
    assert session.request(copy(BASE, TARGET, 3), seconds=60).results[:2] == (1, 0)
    before = np.array(session.memory[SIZE // 2 + 3 * size :][:size])
    assert session.request(copy(BASE, TARGET, 4), seconds=60).results[:2] == (1, response)
    if write:
        beat = model.design.config.axi_data_bytes
        assert np.array_equal(session.memory[SIZE // 2 + 3 * size :][:beat], before[:beat])
    session.set_memory_model(IDEAL)
    assert session.request(copy(BASE, TARGET, 4), seconds=60).results[:2] == (1, 0)


@pytest.mark.parametrize("address", [BASE - 4096, BASE + SIZE, 0, (1 << 64) - 4096])
def test_addresses_outside_memory_are_decode_errors(session: FastSession, address: int) -> None:
    assert session.request(copy(address, TARGET, 1), seconds=60).results[:2] == (1, 3)
    before = np.array(session.memory)
    assert session.request(copy(BASE, address, 1), seconds=60).results[:2] == (1, 3)
    assert np.array_equal(session.memory, before)


def test_a_wait_ends_at_its_bound(session: FastSession) -> None:
    session.set_memory_model(MemoryModel(read_latency=50_000))
    answer = session.request(copy(BASE, TARGET, 1, bound=1000), seconds=60)
    assert answer.results[0] == 0
    done = session.request([Op(OpKind.WAIT, RUNNING, 0, 1, 100_000)], seconds=60)
    assert done.results == (1,)


def test_reset_stops_a_run_and_the_next_one_works(session: FastSession) -> None:
    session.set_memory_model(MemoryModel(read_latency=5000))
    assert session.request(copy(BASE, TARGET, 8, bound=100), seconds=60).results[0] == 0
    session.set_memory_model(IDEAL)
    answer = session.request([Op(OpKind.RESET), Op(OpKind.READ, RUNNING), Op(OpKind.READ, COUNT)], seconds=60)
    assert answer.results == (0, 0)
    assert session.request(copy(BASE, TARGET, 8), seconds=60).results[:2] == (1, 0)


def test_registers_that_do_not_answer_are_an_error(session: FastSession) -> None:
    ops = [Op(OpKind.WRITE, TAIL_STROBES, 0), Op(OpKind.READ, SILENT), Op(OpKind.READ, COUNT)]
    with pytest.raises(SimulationFailed, match="READ of register 0x058"):
        session.request(ops, seconds=60)
    assert session.request([Op(OpKind.RESET), Op(OpKind.READ, COUNT)], seconds=60).results == (0,)


def test_a_simulator_that_dies_is_an_error_with_its_status(doomed: FastSession) -> None:
    doomed._process.kill()
    with pytest.raises(SimulationFailed, match="simulator"):
        doomed.request([Op(OpKind.READ, COUNT)], seconds=20)


def test_a_request_is_bounded_in_time(doomed: FastSession) -> None:
    started = time.monotonic()
    with pytest.raises(SimulationFailed, match="within 1 s"):
        doomed.request([Op(OpKind.WAIT, COUNT, 7, 0xFFFFFFFF, 1 << 60)], seconds=1)
    assert time.monotonic() - started < 15


def test_nothing_is_left_behind(model: BuiltModel) -> None:
    with FastSession(model, 4096) as session:
        folder = session._folder
        assert folder.is_dir()
    assert not folder.exists()
    with pytest.raises(SimulationFailed, match="closed"):
        session.request([], seconds=1)


def test_waveform_on_request(tmp_path: Path) -> None:
    config = load_config("tiny")
    waves = tmp_path / "copy.vcd"
    with FastSession(build(config, fast_harness(config, waves=True, checked=True)), SIZE, waves=waves) as session:
        assert session.request(copy(0, SIZE // 2, 2), seconds=60).results[:2] == (1, 0)
    assert waves.stat().st_size > 1000


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"read_latency": 0}, "read_latency = 0: must be at least 1"),
        ({"write_latency": -1}, "write_latency = -1: must be at least 1"),
        ({"outstanding": 0}, "outstanding = 0: must be at least 1"),
        ({"closed_every": 1}, "closed_every = 1: must be 0"),
    ],
)
def test_memory_models_that_cannot_be_are_refused(settings: dict[str, int], message: str) -> None:
    with pytest.raises(CosimError, match=message):
        MemoryModel(**settings)
