# SPDX-License-Identifier: Apache-2.0
"""Passes shared among forked copies: the same results in the same order, and nothing lost when a copy is."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from openvta.compiler import compile as compile_model
from openvta.driver import DeviceError, forks, open_device
from openvta.driver.forks import Shared, can_fork, jobs_wanted
from openvta.spec.bundle import Bundle

MODELS = Path(__file__).parents[1] / "data" / "models"


@pytest.mark.parametrize(("count", "workers"), [(1, 4), (2, 2), (7, 2), (9, 3), (5, 8)])
def test_results_come_in_order_and_the_last_piece_is_made_here(count: int, workers: int) -> None:
    found = Shared(lambda number: (number * number, os.getpid()), count, workers).run()
    assert [square for square, _ in found] == [number * number for number in range(count)]
    assert found[-1][1] == os.getpid()


def test_copies_do_their_part() -> None:
    def slow(number: int) -> int:
        time.sleep(0.05)
        return os.getpid()

    makers = Shared(slow, 12, 3).run()
    assert len(set(makers)) == 3


def test_more_pieces_than_a_pipe_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forks, "MOST_CLAIMS", 4)
    assert Shared(lambda number: number, 23, 2).run() == list(range(23))


@pytest.mark.parametrize("end", ["killed", "fails"])
def test_what_a_lost_copy_leaves_is_made_here(end: str) -> None:
    here = os.getpid()

    def work(number: int) -> int:
        if os.getpid() != here:
            if end == "killed":
                os.kill(os.getpid(), signal.SIGKILL)
            raise RuntimeError("not here")
        time.sleep(0.02)
        return number

    assert Shared(work, 6, 3).run() == list(range(6))


def test_a_copy_that_never_ends_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forks, "PATIENCE_SECONDS", 0.2)
    here = os.getpid()

    def work(number: int) -> int:
        time.sleep(0.02 if os.getpid() == here else 60)
        return number

    began = time.monotonic()
    assert Shared(work, 6, 2).run() == list(range(6))
    assert time.monotonic() - began < 20


def test_an_exception_is_raised_here_and_no_copy_stays() -> None:
    def work(number: int) -> int:
        if number == 3:
            raise DeviceError("piece 3")
        return number

    with pytest.raises(DeviceError, match="piece 3"):
        Shared(work, 5, 2).run()
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def test_no_copies_of_a_process_with_threads() -> None:
    release = threading.Event()
    thread = threading.Thread(target=release.wait)
    thread.start()
    try:
        assert not can_fork()
    finally:
        release.set()
        thread.join()


@pytest.mark.parametrize("text", ["0", "-1", "two", "1.5"])
def test_a_number_of_jobs_that_makes_no_sense(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENVTA_JOBS", text)
    with pytest.raises(DeviceError, match=f"OPENVTA_JOBS = '{text}': must be a whole number from 1 up"):
        open_device("fsim")
    with pytest.raises(DeviceError, match="jobs = 0: must be 1 or more"):
        open_device("fsim", jobs=0)


def test_the_number_of_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENVTA_JOBS", "3")
    assert (jobs_wanted(), jobs_wanted(2)) == (3, 2)
    monkeypatch.delenv("OPENVTA_JOBS")
    assert jobs_wanted() >= 1


@pytest.fixture(scope="module")
def network() -> Bundle:
    return compile_model(MODELS / "resnet8_mnist_pot.onnx", config="default", strict=True)


def test_a_shared_run_equals_one_in_this_process(network: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("openvta.driver.device.MAX_IMAGES", 4)
    monkeypatch.setattr("openvta.driver.device.can_fork", lambda: True)
    pixels = np.load(MODELS / "mnist_subset.npz")["test_x"].reshape(-1, 1, 28, 28)[:19]
    digits = ((pixels.astype(np.float32) - 128) / 128).astype(np.float32)
    said: list[str] = []
    with open_device("fsim", jobs=1) as device:
        alone = device.run(network, {"input": digits})
    with open_device("fsim", jobs=3) as device:
        shared = device.run(network, {"input": digits}, progress=said.append)
        again = device.run(network, {"input": digits[:3]})
    assert (alone.passes, shared.passes) == (5, 5)
    assert np.array_equal(alone.outputs["logits"], shared.outputs["logits"])
    assert np.array_equal(alone.outputs["logits"][:3], again.outputs["logits"])
    assert shared.counters == alone.counters
    assert shared.total == {name: 5 * count for name, count in alone.counters.items()}
    assert said[-1] == "fsim: 19 of 19 images"
