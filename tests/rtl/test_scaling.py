# SPDX-License-Identifier: Apache-2.0
"""Bus widths and array sizes: every one elaborates and is free of lint; the wide buses run on a small array."""

from __future__ import annotations

import subprocess

import pytest

from conformance.programs import build, names
from openvta.driver import open_device
from openvta.sim.cosim import toolchain
from openvta.sim.cosim.build import elaborate
from openvta.spec import HardwareConfig, load_config
from openvta.spec.registers import CYCLE_SPLIT

WIDTHS = (64, 128, 256, 512)
BUFFERS = {"inp_buffer_bytes": 65536, "acc_buffer_bytes": 262144}
ARRAYS: dict[str, dict[str, int]] = {
    "16x16": {},
    "32x32": {"block": 32, "wgt_buffer_bytes": 262144, "uop_buffer_bytes": 16384, **BUFFERS, "axi_data_bits": 256},
    "64x64": {
        "block": 64, "wgt_buffer_bytes": 1 << 20, "inp_buffer_bytes": 131072, "acc_buffer_bytes": 524288,
        "axi_data_bits": 512,
    },
}  # fmt: skip


def lint(config: HardwareConfig) -> str:
    """What Verilator says of the whole core, all warnings on; empty if nothing."""
    design = elaborate(config)
    waivers = sorted((toolchain.repository() / "hardware" / "chisel" / "lint").glob("*.vlt"))
    command = [toolchain.verilator_root() / "bin" / "verilator", "--lint-only", "-Wall", "--timing", "--top-module"]
    done = subprocess.run(
        [*map(str, command), design.top, *map(str, waivers), *map(str, design.files)],
        cwd=design.folder, capture_output=True, text=True, timeout=600, check=False,
        env={"VERILATOR_ROOT": str(toolchain.verilator_root())},
    )  # fmt: skip
    return done.stderr if done.returncode else ""


@pytest.mark.long
@pytest.mark.parametrize("array", ARRAYS)
def test_arrays_elaborate(array: str) -> None:
    """256, 1,024 and 4,096 multiply-accumulates a cycle."""
    config = load_config("default").replace(**ARRAYS[array])
    assert config.macs_per_cycle == {"16x16": 256, "32x32": 1024, "64x64": 4096}[array]
    assert lint(config) == ""


@pytest.mark.long
@pytest.mark.parametrize("bits", WIDTHS)
def test_bus_widths_elaborate(bits: int) -> None:
    """The default core on every bus width."""
    beats = min(64, 4096 * 8 // bits)
    assert lint(load_config("default").replace(axi_data_bits=bits, axi_burst_beats=beats)) == ""


@pytest.mark.long
@pytest.mark.parametrize("bits", WIDTHS)
def test_bus_widths_run(bits: int) -> None:
    """Programs of every kind give the promised bytes, and every cycle is explained."""
    config = load_config("tiny").replace(axi_data_bits=bits)
    with open_device("cosim", config=config) as device:
        for name in names(config):
            case = build(config, name)
            placed = device.load(case.bundle)
            result = device.launch(case.bundle)
            assert placed.read(case.out_offset, len(case.expected)).tobytes() == case.expected, name
            for unit, parts in CYCLE_SPLIT.items():
                assert sum(result.counters[part] for part in parts) == result.counters["cycles"], (name, unit)
