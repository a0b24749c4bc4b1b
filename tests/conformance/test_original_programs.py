# SPDX-License-Identifier: Apache-2.0
"""Streams of the original, run unchanged: every backend must leave the memory that the original simulator left.

A backend is a device by its entry point name; :data:`BACKENDS` says which programs each runs by default, and with
which options its device is opened.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from openvta.spec import HardwareConfig, load_config
from openvta.spec.registers import CONTROL, ERROR, OFFSETS, STATUS

PROGRAMS = Path(__file__).parents[1] / "golden" / "original-programs.npz"
COUNT = 150
IMAGE_ADDRESS, IMAGE_BYTES, OUT_BYTES = 0x1000, 0x4000, 0x1000
CYCLE_BOUND = 200_000


@dataclass(frozen=True)
class Backend:
    """A device to run the programs on: entry point name, options, and the programs of one run of the tests."""

    device: str
    options: dict[str, Any] = field(default_factory=dict)
    programs: range = range(COUNT)


BACKENDS = {
    "fsim": Backend("fsim"),
    "fsim-checked": Backend("fsim", {"check": True, "seed": 7}),
    "cosim": Backend("cosim"),
    "hls": Backend("hls", {"integers": "wide"}),
}


@pytest.fixture(scope="module")
def golden() -> Iterator[Any]:
    with np.load(PROGRAMS, allow_pickle=False) as file:
        yield {name: file[name] for name in file.files}


@pytest.fixture(scope="module")
def devices() -> Iterator[Callable[[Backend, HardwareConfig], Any]]:
    """Opens a backend's device once and keeps it for every program."""
    opened: dict[str, Any] = {}

    def get(backend: Backend, config: HardwareConfig) -> Any:
        key = repr(backend)
        if key not in opened:
            (entry,) = entry_points(group="openvta.devices", name=backend.device)
            opened[key] = entry.load()(config, **backend.options)
        return opened[key]

    yield get
    for device in opened.values():
        device.close()


def run_program(device: Any, insns: bytes, image: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Image and output bytes after a run; bases are shifted, because the programs count from address 0."""
    words = device.allocate(len(insns))
    memory = device.allocate(IMAGE_BYTES + OUT_BYTES)
    device.write(words, insns)
    device.write(memory, image)
    device.write(memory + IMAGE_BYTES, np.full(OUT_BYTES, 0xA5, np.uint8))
    device.write_register(OFFSETS["INSN_COUNT"], len(insns) // 16)
    bases = dict.fromkeys(("UOP", "INP", "WGT", "ACC", "OUT"), (memory - IMAGE_ADDRESS) % (1 << 64)) | {"INSN": words}
    for name, base in bases.items():
        device.write_register(OFFSETS[f"{name}_BASE_LO"], base & 0xFFFFFFFF)
        device.write_register(OFFSETS[f"{name}_BASE_HI"], base >> 32)
    device.write_register(OFFSETS["CONTROL"], CONTROL.encode({"launch": 1}))
    stopped = device.wait(cycles=CYCLE_BOUND)
    status = STATUS.decode(device.read_register(OFFSETS["STATUS"]))
    error = ERROR.decode(device.read_register(OFFSETS["ERROR"]))
    assert stopped, f"still running after {CYCLE_BOUND} cycles: {status}"
    assert not any(error.values()), f"error {error} at instruction {device.read_register(OFFSETS['ERROR_INDEX'])}"
    after = device.read(memory, IMAGE_BYTES + OUT_BYTES)
    device.free_all()
    return after[:IMAGE_BYTES], after[IMAGE_BYTES:]


CASES = [pytest.param(name, number, id=f"{name}-{number}") for name, b in BACKENDS.items() for number in b.programs]


@pytest.mark.parametrize(("name", "number"), CASES)
def test_original_program(
    name: str, number: int, golden: Any, devices: Any, record_coverage: Callable[[str, str], None]
) -> None:
    config = load_config("default")
    device = devices(BACKENDS[name], config)
    image, out = run_program(device, golden[f"p{number}_insn"].tobytes(), golden[f"p{number}_dram"])
    np.testing.assert_array_equal(image, golden[f"p{number}_dram"], "the program changed its inputs")
    np.testing.assert_array_equal(out, golden[f"p{number}_out"], f"program: {' / '.join(golden[f'p{number}_what'])}")
    record_coverage(name, config.name)
