# SPDX-License-Identifier: Apache-2.0
"""The functional simulator behind registers, as the driver uses it."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Any

import numpy as np
import pytest

from openvta.sim.errors import SimError
from openvta.sim.fsim.check import CheckError
from openvta.sim.fsim.transport import FsimTransport, open_transport
from openvta.spec import Cause, HardwareConfig, Insn, MemId, Queue, Unit, config_hash, load_config, named_configs
from openvta.spec.registers import CONTROL, ERROR, ID_MAGIC, OFFSETS, STATUS, WATCHDOG_RESET
from openvta.spec.resolve import feature_word
from stream_tools import FINISH, gemm, load, store, stream

TINY = load_config("tiny")


def launch(device: FsimTransport, *insns: Insn, config: HardwareConfig = TINY) -> int:
    """Place and launch a program; the address of a page that all memory types count from."""
    words = stream(config, *insns, FINISH)
    at, data = device.allocate(len(words)), device.allocate(4096)
    device.write(at, words)
    device.write(data, np.arange(4096, dtype=np.uint32).astype(np.uint8))
    device.write_register(OFFSETS["INSN_COUNT"], len(words) // 16)
    for name in ("INSN", "UOP", "INP", "WGT", "ACC", "OUT"):
        base = at if name == "INSN" else data
        device.write_register(OFFSETS[f"{name}_BASE_LO"], base & 0xFFFFFFFF)
        device.write_register(OFFSETS[f"{name}_BASE_HI"], base >> 32)
    device.write_register(OFFSETS["CONTROL"], CONTROL.encode({"launch": 1}))
    return data


def error(device: FsimTransport) -> dict[str, int]:
    return ERROR.decode(device.read_register(OFFSETS["ERROR"]))


@pytest.mark.parametrize("name", named_configs())
def test_identity(name: str) -> None:
    config = load_config(name)
    (entry,) = entry_points(group="openvta.devices", name="fsim")
    with entry.load()(config) as device:
        low, high = device.read_registers([OFFSETS["CONFIG_HASH_LO"], OFFSETS["CONFIG_HASH_HI"]])
        assert low | high << 32 == config_hash(config)
        assert device.read_register(OFFSETS["ID"]) == ID_MAGIC
        assert device.read_register(OFFSETS["FEATURES"]) == feature_word(config)
        assert device.read_register(OFFSETS["WATCHDOG"]) == WATCHDOG_RESET
        assert "cycles" not in device.capabilities


def test_a_run_finishes_and_raises_the_interrupt() -> None:
    with open_transport(TINY) as device:
        device.write_register(OFFSETS["IRQ_ENABLE"], 1)
        data = launch(device, load(MemId.INP, 0, 2), store(0, 1, 4))
        assert device.wait(cycles=10)
        assert device.read_register(OFFSETS["CONTROL"]) == CONTROL.encode({"finish": 1})
        assert device.read_register(OFFSETS["STATUS"]) == 0
        assert device.read_register(OFFSETS["IRQ_STATUS"]) == 1
        assert device.read_register(OFFSETS["COUNTER_INP_LOAD_BYTES"]) == 8
        assert device.read_register(OFFSETS["COUNTER_INSNS_RETIRED"]) == 3
        assert device.read(data + 16, 4).tolist() == [0, 0, 0, 0]
        assert [(unit, index) for _, unit, index in device.retire_events()] == [
            (Unit.LOAD, 0),
            (Unit.STORE, 1),
            (Unit.COMPUTE, 2),
        ]
        assert device.retire_events() == []
        device.write_register(OFFSETS["IRQ_STATUS"], 1)
        assert device.read_register(OFFSETS["IRQ_STATUS"]) == 0


def test_an_error_is_held_until_reset_and_keeps_the_core_stopped() -> None:
    with open_transport(TINY) as device:
        launch(device, load(MemId.INP, TINY.inp_depth, 1))
        assert device.wait(cycles=10)
        held = error(device)
        assert (held["cause"], held["unit"]) == (Cause.INDEX_RANGE, Unit.LOAD)
        assert device.read_register(OFFSETS["ERROR_INDEX"]) == 0
        assert STATUS.decode(device.read_register(OFFSETS["STATUS"]))["halted"]
        assert not device.read_register(OFFSETS["CONTROL"])
        assert "depth is" in device.fault_text()
        launch(device, load(MemId.INP, 0, 1))
        assert error(device)["cause"] == Cause.INDEX_RANGE
        device.write_register(OFFSETS["RESET"], 1)
        assert device.read_register(OFFSETS["ERROR"]) == 0
        launch(device, load(MemId.INP, 0, 1))
        assert device.read_register(OFFSETS["CONTROL"]) == CONTROL.encode({"finish": 1})


def test_a_bus_fault_reports_its_address() -> None:
    with open_transport(TINY) as device:
        data = launch(device, load(MemId.ACC, 0, 1, 1 << 20))
        held = error(device)
        assert (held["cause"], held["unit"], held["channel"]) == (Cause.BUS_READ, Unit.COMPUTE, 4)
        low, high = device.read_registers([OFFSETS["ERROR_ADDR_LO"], OFFSETS["ERROR_ADDR_HI"]])
        assert low | high << 32 == data + (16 << 20)


def test_a_deadlock_is_a_watchdog_error_or_a_hang_without_watchdog() -> None:
    with open_transport(TINY) as device:
        launch(device, load(MemId.UOP, 0, 1, pop_prev=1))
        held = error(device)
        assert (held["cause"], held["unit"], held["wait"]) == (Cause.WATCHDOG, Unit.COMPUTE, 1 << Queue.LOAD_TO_COMPUTE)
        device.write_register(OFFSETS["RESET"], 1)
        device.write_register(OFFSETS["WATCHDOG"], 0)
        launch(device, load(MemId.UOP, 0, 1, pop_prev=1))
        assert not device.wait(cycles=10)
        assert STATUS.decode(device.read_register(OFFSETS["STATUS"]))["running"]
        assert device.read_register(OFFSETS["ERROR"]) == 0
        device.write_register(OFFSETS["RESET"], 1)
        assert device.wait(cycles=10)


def test_checks_raise_on_wait() -> None:
    with open_transport(TINY, check=True) as device:
        zero_uop = load(MemId.UOP, 0, 1, y_pad_0=1)
        launch(device, zero_uop, load(MemId.ACC, 0, 1), load(MemId.WGT, 0, 4), load(MemId.INP, 0, 4), gemm())
        with pytest.raises(CheckError, match="race"):
            device.wait(cycles=10)


def test_trace_events_and_their_absence() -> None:
    with open_transport(TINY, trace=True) as device:
        launch(device, load(MemId.INP, 0, 1))
        assert [event.index for event in device.trace_events()] == [0, 1]
    with open_transport(TINY) as device, pytest.raises(SimError, match="trace=True"):
        device.trace_events()


def test_read_only_registers_ignore_writes_and_offsets_are_checked() -> None:
    with open_transport(TINY) as device:
        device.write_register(OFFSETS["ID"], 1)
        assert device.read_register(OFFSETS["ID"]) == ID_MAGIC
        assert device.read_register(0xFFC) == 0
        for offset in (2, 0x1000, -4):
            with pytest.raises(ValueError, match="register offset"):
                device.read_register(offset)


def test_images_run_side_by_side() -> None:
    device: Any = open_transport(TINY)
    device.set_images(3)
    words = stream(
        TINY,
        load(MemId.ACC_INT8, 0, 1),
        load(MemId.UOP, 0, 1),
        gemm(reset=0, push_next=1),
        store(0, 1, 16, pop_prev=1),
        FINISH,
    )
    at, data = device.allocate(len(words)), device.allocate(4096)
    device.write(at, words)
    device.write(data, bytes(4096))
    device.write_images(data, np.array([[1] * 4, [2] * 4, [3] * 4], np.uint8))
    device.write_register(OFFSETS["INSN_COUNT"], 5)
    device.write_register(OFFSETS["INSN_BASE_LO"], at)
    for name in ("UOP", "INP", "WGT", "ACC", "OUT"):
        device.write_register(OFFSETS[f"{name}_BASE_LO"], data + (1024 if name == "UOP" else 0))
    device.write_register(OFFSETS["CONTROL"], 1)
    assert device.wait(cycles=1)
    assert device.read_images(data + 64, 4).tolist() == [[1] * 4, [2] * 4, [3] * 4]
    device.close()
