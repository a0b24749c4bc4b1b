# SPDX-License-Identifier: Apache-2.0
"""The register file of the HLS kernel: identity, interrupts, resets, writes that are ignored, in both modes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from conformance.programs import build
from openvta.driver import Device, open_device
from openvta.sim.errors import SimError
from openvta.sim.hls.transport import HlsTransport
from openvta.spec import load_config
from openvta.spec.isa import ISA_VERSION, Cause, Unit
from openvta.spec.registers import CHANNELS, CONTROL, ERROR, ID_MAGIC, OFFSETS, REGISTERS, STATUS
from openvta.spec.resolve import config_hash, feature_word

TINY = load_config("tiny")


@pytest.fixture(params=["sequential", "threaded"])
def device(request: pytest.FixtureRequest) -> Iterator[Device]:
    with open_device("hls", config=TINY, mode=request.param, integers="wide") as opened:
        yield opened


def transport(device: Device) -> HlsTransport:
    found = device.transport
    assert isinstance(found, HlsTransport)
    return found


def read(device: Device, name: str) -> int:
    return device.transport.read_register(OFFSETS[name])


def write(device: Device, name: str, value: int) -> None:
    device.transport.write_register(OFFSETS[name], value)


def test_reset_values_and_identity(device: Device) -> None:
    identity = {
        "ID": ID_MAGIC,
        "ISA_VERSION": ISA_VERSION,
        "CONFIG_HASH_LO": config_hash(TINY) & 0xFFFFFFFF,
        "CONFIG_HASH_HI": config_hash(TINY) >> 32,
        "FEATURES": feature_word(TINY),
    }
    for register in REGISTERS:
        assert read(device, register.name) == identity.get(register.name, register.reset), register.name


def test_what_can_be_written(device: Device) -> None:
    for register in REGISTERS:
        before = read(device, register.name)
        if register.name in ("CONTROL", "RESET"):
            continue
        write(device, register.name, 0xA5C3_0FF3)
        expected = {"rw": 0xA5C3_0FF3, "ro": before, "w1c": before}[register.access]
        mask = 3 if register.name == "IRQ_ENABLE" else 0xFFFFFFFF
        assert read(device, register.name) == expected & mask, register.name
    assert device.transport.read_register(0xFFC) == 0


def test_interrupts_of_finish_and_error(device: Device) -> None:
    case = build(TINY, "gemm_single")
    device.launch(case.bundle)
    assert read(device, "IRQ_STATUS") == 1 and not transport(device).interrupt
    write(device, "IRQ_ENABLE", 1)
    read(device, "STATUS")
    assert transport(device).interrupt
    write(device, "IRQ_STATUS", 1)
    read(device, "STATUS")
    assert read(device, "IRQ_STATUS") == 0 and not transport(device).interrupt
    write(device, "INSN_COUNT", 0)
    write(device, "IRQ_ENABLE", 2)
    write(device, "CONTROL", CONTROL.field("launch").mask)
    assert device.transport.wait(cycles=1000)
    read(device, "STATUS")
    assert read(device, "IRQ_STATUS") == 2 and transport(device).interrupt


def test_an_error_stays_until_the_reset(device: Device) -> None:
    write(device, "INSN_COUNT", 0)
    write(device, "CONTROL", CONTROL.field("launch").mask)
    device.transport.wait(cycles=1000)
    error = read(device, "ERROR")
    assert error and STATUS.decode(read(device, "STATUS"))["halted"]
    write(device, "INSN_COUNT", 1)
    write(device, "CONTROL", CONTROL.field("launch").mask)
    device.transport.wait(cycles=1000)
    assert read(device, "ERROR") == error and not read(device, "CONTROL")
    transport(device).hard_reset()
    assert read(device, "ERROR") == 0 and read(device, "STATUS") == 0 and read(device, "INSN_COUNT") == 0
    case = build(TINY, "gemm_single")
    placed = device.load(case.bundle)
    device.launch(case.bundle)
    assert placed.read(case.out_offset, len(case.expected)).tobytes() == case.expected


def test_a_bus_error_says_where(device: Device) -> None:
    device.launch(build(TINY, "gemm_single").bundle)
    ((base, size),) = transport(device).memory.regions()
    write(device, "WGT_BASE_LO", (base + size) & 0xFFFFFFFF)
    write(device, "WGT_BASE_HI", (base + size) >> 32)
    write(device, "CONTROL", CONTROL.field("launch").mask)
    assert device.transport.wait(cycles=1000)
    error = ERROR.decode(read(device, "ERROR"))
    assert (error["cause"], error["unit"], error["channel"]) == (Cause.BUS_READ, Unit.LOAD, CHANNELS["wgt"])
    address = read(device, "ERROR_ADDR_HI") << 32 | read(device, "ERROR_ADDR_LO")
    assert base + size <= address < base + size + 4096


def test_two_cores_share_nothing() -> None:
    with (
        open_device("hls", config=TINY, integers="wide") as one,
        open_device("hls", config=TINY, integers="wide") as two,
    ):
        write(one, "UOP_BASE_LO", 0x1234)
        assert read(one, "UOP_BASE_LO") == 0x1234 and read(two, "UOP_BASE_LO") == 0


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"mode": "fast"}, "mode = 'fast': must be one of sequential, threaded"),
        ({"integers": "float"}, "integers = 'float': must be one of native, wide"),
        ({"timeout": 0.0}, "must be 0 or more, and 0 to 3600 seconds"),
        ({"depth_limit": -1}, "depth_limit = -1"),
    ],
)
def test_options_are_checked(options: dict[str, object], text: str) -> None:
    with pytest.raises(SimError, match=text):
        open_device("hls", config=TINY, **options)
