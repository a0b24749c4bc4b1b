# SPDX-License-Identifier: Apache-2.0
"""What cocotb costs: the same layer on the same RTL and memory, in a plain C++ loop and driven by cocotb.

The two take turns, so that a machine that slows down slows both. Build time and the whole of ResNet-18 go with it.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from openvta.cli.benchmarks import BenchmarkError, Figures
from openvta.cli.benchmarks.network import RESNET18, Convolution, check_equal
from openvta.cli.benchmarks.resnet18 import SEED, transport
from openvta.cli.benchmarks.rtl import Network, Say, prepare, run_once
from openvta.driver import Device, open_device
from openvta.driver.bound import cycle_bound
from openvta.driver.image import PlacedImage
from openvta.sim.cosim.build import ElaboratedDesign, Harness, plain_harness, verilate
from openvta.sim.cosim.plain import run_plain
from openvta.sim.cosim.session import Op, OpKind
from openvta.sim.cosim.transport import MEMORY_BASE, MEMORY_MODELS
from openvta.spec import HardwareConfig, load_config
from openvta.spec.bundle import device_bytes
from openvta.spec.registers import CONTROL, OFFSETS, STATUS
from openvta.spec.tensor_layout import unpack_tensor

LAYER = Convolution("s2c2", "x", 28, (128, 128), 3, 1)
REPEATS = 3
SECONDS = 600.0


def run(config_name: str, memory: str, say: Say) -> Figures:
    """Rows: plain loop, cocotb; summary: ratio of their times (cocotb over plain), kcycle/s of the whole network, its wall
    seconds, and seconds to build the simulator, without and with Verilator's run time compiled before.

    Raises:
        BenchmarkError: outputs that differ from the reference, or runs that are not the same.
    """
    return measure(LAYER, RESNET18, load_config(config_name), memory, say)


def measure(
    layer: Convolution, whole: tuple[Convolution, ...], config: HardwareConfig, memory: str, say: Say
) -> Figures:
    """Like :func:`run`, for any layer and network."""
    network = prepare((layer,), config, SEED)
    loops: list[tuple[int, float]] = []
    driven: list[tuple[int, float]] = []
    with open_device("cosim", config=config, memory=memory, progress=say) as device:
        below = transport(device)
        plain = verilate(below.model.design, plain_harness(config), progress=say)
        for number in range(REPEATS):
            say(f"{layer.label}: run {number + 1} of {REPEATS}, each way")
            began = time.monotonic()
            result = run_once(device, network)
            driven.append((result.timing.cycles, result.seconds))
            loops.append(_plain(device, network, plain, memory))
            say(f"took {time.monotonic() - began:.1f} s")
        say("running the whole network")
        full = prepare(whole, config, SEED)
        whole_run = run_once(device, full)
        design, harness = below.model.design, below.model.harness
    builds = build_times(design, harness, say)
    if {cycles for cycles, _ in driven} != {cycles for cycles, _ in loops}:
        raise BenchmarkError(f"{layer.label}: {driven[0][0]} cycles under cocotb, {loops[0][0]} in the plain loop")
    rows: list[dict[str, Any]] = []
    for name, runs in (("plain C++ loop", loops), ("cocotb, compiled memory", driven)):
        seconds = median(seconds for _, seconds in runs)
        rows.append(
            {
                "way": name,
                "cycles": runs[0][0],
                "seconds": round(seconds, 3),
                "kcycles": round(runs[0][0] / seconds / 1e3),
            }
        )
    seconds = whole_run.seconds
    summary = {
        "ratio": round(median(s for _, s in driven) / median(s for _, s in loops), 3),
        "kcycles": round(whole_run.timing.cycles / seconds / 1e3),
        "build_seconds": builds[0],
        "build_seconds_warm": builds[1],
        "network_seconds": round(seconds, 2),
    }
    return Figures(rows, summary)


def build_times(design: ElaboratedDesign, harness: Harness, say: Say) -> tuple[float, float]:
    """Seconds from SystemVerilog to the simulator: with nothing compiled before, and with Verilator's run time compiled."""
    with tempfile.TemporaryDirectory(prefix="openvta-build-") as name:
        cold = verilate(design, harness, into=Path(name), progress=say)
        shutil.rmtree(cold.folder)
        warm = verilate(design, harness, into=Path(name), progress=say)
    return cold.build_seconds, warm.build_seconds


def _plain(device: Device, network: Network, model: Any, memory: str) -> tuple[int, float]:
    """The layer once in the plain loop, from the same memory; (cycles by the counter, seconds)."""
    bundle = network.bundle
    placed = device.load(bundle)
    layer = network.layers[0]
    spec = bundle.tensor(layer.name)
    placed.write_tensor(spec, ~network.expected[layer.name])
    image = device.transport.read(placed.base, bundle.memory_bytes)
    ops = launch_ops(placed)
    reset = [Op(OpKind.READ, OFFSETS["STATUS"])]
    _, done = run_plain(
        model, image, MEMORY_BASE, MEMORY_MODELS[memory], [reset, ops], cycles=cycle_bound(bundle.segments[0].program),
        seconds=SECONDS,
    )  # fmt: skip
    if done.results[0] != 1:
        raise BenchmarkError(f"{layer.label}: the plain loop did not end: no figure")
    shape = (bundle.config.batch, *spec.shape[1:])
    start = placed.base - MEMORY_BASE + spec.offset
    got = unpack_tensor(bundle.config, image[start : start + device_bytes(bundle.config, shape)], shape)
    check_equal(layer.name, got, network.expected[layer.name])
    return done.results[1], done.seconds


def launch_ops(placed: PlacedImage) -> list[Op]:
    """The host operations of a launch of the only segment, as the driver's: registers, start, wait; then the cycles."""
    bundle = placed.bundle
    segment = bundle.segments[0]
    pointers = {"INSN": segment.insn_offset, **{name.upper(): offset for name, offset in bundle.bases.items()}}
    ops = []
    for name, offset in pointers.items():
        address = placed.base + offset
        ops.append(Op(OpKind.WRITE, OFFSETS[f"{name}_BASE_LO"], address & 0xFFFFFFFF))
        ops.append(Op(OpKind.WRITE, OFFSETS[f"{name}_BASE_HI"], address >> 32))
    ops.append(Op(OpKind.WRITE, OFFSETS["INSN_COUNT"], len(segment.program)))
    ops.append(Op(OpKind.WRITE, OFFSETS["IRQ_STATUS"], 3))
    ops.append(Op(OpKind.WRITE, OFFSETS["CONTROL"], CONTROL.field("launch").mask))
    running = STATUS.field("running").mask
    ops.append(Op(OpKind.WAIT, OFFSETS["STATUS"], 0, running, cycle_bound(segment.program)))
    return [*ops, Op(OpKind.READ, OFFSETS["CYCLES"])]
