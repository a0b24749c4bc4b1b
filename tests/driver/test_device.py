# SPDX-License-Identifier: Apache-2.0
"""The driver against a scripted device: what it writes, what it refuses, and how it tells."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import onnx
import pytest
from onnx import TensorProto, helper

from driver.fake_device import BASE, Action, FakeTransport, finish
from openvta.driver import BusError, ConfigMismatch, Device, DeviceError, Fault, InputError, Timeout
from openvta.driver.bound import cycle_bound
from openvta.spec import Opcode, Program, hash_text, load_config, make
from openvta.spec.bundle import AccelStep, Bundle, HostStep, LayerInfo, Segment, TensorSpec
from openvta.spec.config import HardwareConfig
from openvta.spec.isa import Cause, MemId, Queue, Unit
from openvta.spec.registers import OFFSETS, STATUS

TINY = load_config("tiny")
BATCH = load_config("batch")
IN, OUT, CONSTANT, INSN = 0x0, 0x1000, 0x2000, 0x3000


def negate_model(rows: int | str, shape: tuple[int, ...], *, to_float: bool) -> bytes:
    """An ONNX model: int8 to float32, or back with opposite sign."""
    source, target = (TensorProto.INT8, TensorProto.FLOAT) if to_float else (TensorProto.FLOAT, TensorProto.INT8)
    names = ("y", "logits") if to_float else ("image", "x")
    nodes = [helper.make_node("Neg", [names[0]], ["n"])] if not to_float else []
    nodes.append(helper.make_node("Cast", ["n" if nodes else names[0]], [names[1]], to=target))
    graph = helper.make_graph(
        nodes,
        "part",
        [helper.make_tensor_value_info(names[0], source, [rows, *shape])],
        [helper.make_tensor_value_info(names[1], target, [rows, *shape])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    data: bytes = model.SerializeToString()
    return data


def example(config: HardwareConfig, rows: int | str = "n") -> Bundle:
    """Host part, one segment that the fake device plays, host part."""
    program = Program.assemble(
        config,
        [
            make(Opcode.LOAD, memory_id=MemId.INP, x_size=1, y_size=1, push_next=1),
            make(Opcode.GEMM, pop_prev=1, reset=1, uop_end=1, iter_out=1, iter_in=1),
            make(Opcode.FINISH),
        ],
    )
    shape = (config.batch, 5, 2, 3)
    return Bundle(
        name="example",
        config=config,
        memory_bytes=0x4000,
        image=((CONSTANT, b"constant"),),
        bases={"uop": 0, "inp": IN, "wgt": CONSTANT, "acc": 0, "out": OUT},
        tensors=(TensorSpec("x", "input", IN, "int8", shape), TensorSpec("y", "output", OUT, "int8", shape)),
        segments=(Segment(program, INSN),),
        steps=(
            HostStep("front", negate_model(rows, shape[1:], to_float=False), ("image",), ("x",)),
            AccelStep(0, ("x",), ("y",)),
            HostStep("back", negate_model(rows, shape[1:], to_float=True), ("y",), ("logits",)),
        ),
        layers=(LayerInfo("first", "Conv2d", "accelerator", segment=0, first_insn=0, last_insn=1, macs=10),
                LayerInfo("second", "Dense", "accelerator", segment=0, first_insn=2, last_insn=2, macs=10)),
        inputs={"image": ("float32", (0, *shape[1:]))},
        outputs={"logits": ("float32", (0, *shape[1:]))},
    )  # fmt: skip


def copy_x_to_y(device: FakeTransport) -> None:
    """What the example's program is supposed to do: y = x."""
    size = 2 * 2 * 3 * device.config.lanes
    device.write(BASE + OUT, device.read(BASE + IN, size))
    start = 1000
    device.events = [
        (start + 40, int(Unit.LOAD), 0),
        (start + 90, int(Unit.COMPUTE), 1),
        (start + 100, int(Unit.COMPUTE), 2),
    ]
    device.count(100, gemm_uops=7)
    finish(device)


def open_fake(
    config: HardwareConfig = TINY, action: Action = copy_x_to_y, *, lazy: bool = False
) -> tuple[Device, FakeTransport]:
    transport = FakeTransport(config, action)
    return Device("fake", lambda _: transport, None if lazy else config), transport


def images(rows: int) -> npt.NDArray[np.float32]:
    return np.arange(rows * 30, dtype=np.float32).reshape(rows, 5, 2, 3) % 100


@pytest.mark.parametrize("rows", ["n", 1, 2])
@pytest.mark.parametrize("config", [TINY, BATCH], ids=lambda config: config.name)
@pytest.mark.parametrize("count", [1, 3, 4])
def test_runs_any_number_of_images(config: HardwareConfig, count: int, rows: int | str) -> None:
    device, transport = open_fake(config)
    result = device.run(example(config, rows), {"image": images(count)})
    assert np.array_equal(result.outputs["logits"], -images(count))
    passes = -(-count // config.batch)
    assert transport.log.count("launch") == result.passes == passes
    assert result.counters["cycles"] == 100
    assert result.total["gemm_uops"] == 7 * passes
    assert result.layer_cycles == {"first": 90, "second": 10}
    assert result.images == count


def test_image_and_pointers() -> None:
    device, transport = open_fake()
    bundle = example(TINY)
    placed = device.load(bundle)
    assert placed.base == BASE
    content = transport.read(BASE, bundle.memory_bytes).tobytes()
    program = bundle.segments[0].program.to_bytes()
    assert content == b"".join(
        [bytes(CONSTANT), b"constant", bytes(INSN - CONSTANT - 8), program, bytes(0x1000 - len(program))]
    )
    device.launch(bundle)
    assert transport.pointer("INSN") == BASE + INSN
    assert transport.pointer("WGT") == BASE + CONSTANT
    assert transport.pointer("OUT") == BASE + OUT
    assert transport.registers[OFFSETS["INSN_COUNT"]] == 3
    device.launch(bundle)
    assert transport.log.count("free") == 1, "a bundle that is there is not placed again"
    device.load(example(TINY))
    assert transport.log.count("free") == 2


def test_opens_with_the_first_bundle() -> None:
    opened: list[HardwareConfig] = []

    def opener(config: HardwareConfig) -> FakeTransport:
        opened.append(config)
        return FakeTransport(config, copy_x_to_y)

    device = Device("fake", opener)
    with pytest.raises(DeviceError, match="'fake' is not open"):
        _ = device.transport
    device.run(example(BATCH), {"image": images(1)})
    assert opened == [BATCH]
    with pytest.raises(ConfigMismatch, match=r"batch = 2 there, 1 here"):
        device.run(example(TINY), {"image": images(1)})


def test_refuses_another_configuration() -> None:
    bundle = example(TINY.replace(name="other", queue_depth=16))
    device, _ = open_fake(TINY)
    with pytest.raises(ConfigMismatch) as caught:
        device.run(bundle, {"image": images(1)})
    text = str(caught.value)
    assert hash_text(TINY) in text and hash_text(bundle.config) in text
    assert "queue_depth = 8 there, 16 here" in text
    assert "compile for the device's configuration" in text


@pytest.mark.parametrize(
    ("register", "value", "message"),
    [
        ("ID", 0, r"ID = 0x00000000: must be 0x4f565441"),
        ("ISA_VERSION", 0x0200, r"instruction set 2\.0, .* made for 1\.0"),
    ],
)
def test_refuses_what_is_no_openvta(register: str, value: int, message: str) -> None:
    transport = FakeTransport(TINY)
    transport.registers[OFFSETS[register]] = value
    with pytest.raises(ConfigMismatch, match=message):
        Device("fake", lambda _: transport, TINY)
    assert transport.closed


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({}, r"input 'image': value = \(missing\): bundle 'example' takes image: float32\[N, 5, 2, 3\]"),
        ({"image": images(1), "mask": 1}, r"input 'mask': name = mask: bundle 'example' has no such input"),
        ({"image": images(1).astype(np.int8)}, r"dtype = int8: must be float32"),
        (
            {"image": images(1).transpose(0, 2, 3, 1)},
            r"shape = \(1, 2, 3, 5\): must be \[N, 5, 2, 3\]; this looks like N, H, W, C",
        ),
        ({"image": images(1)[0]}, r"shape = \(5, 2, 3\): .* use array\[None\]"),
        ({"image": images(1)[:0]}, r"must have at least one image"),
    ],
)
def test_refuses_inputs_that_do_not_fit(inputs: dict[str, npt.ArrayLike], message: str) -> None:
    device, transport = open_fake()
    with pytest.raises(InputError, match=message):
        device.run(example(TINY), inputs)
    assert "launch" not in transport.log


def failing(*args: object, **fields: int) -> Action:
    def action(device: FakeTransport) -> None:
        device.fail(*args, **fields)  # type: ignore[arg-type]

    return action


def test_fault_names_instruction_layer_and_cause() -> None:
    device, _ = open_fake(action=failing(Cause.INDEX_RANGE, Unit.COMPUTE, 1))
    with pytest.raises(Fault) as caught:
        device.run(example(TINY), {"image": images(1)})
    fault = caught.value
    assert (fault.cause, fault.unit, fault.index) == (Cause.INDEX_RANGE, Unit.COMPUTE, 1)
    assert fault.instruction == "gemm pop_prev reset uop_end=1 iter_out=1 iter_in=1"
    for part in (
        "index_range",
        "segment 0 of bundle 'example'",
        "instruction 1",
        fault.instruction,
        "unit compute",
        "'first'",
    ):
        assert part in str(fault)


def test_bus_error_has_the_address() -> None:
    device, _ = open_fake(action=failing(Cause.BUS_READ, Unit.LOAD, 0, address=BASE + 0x123456, channel=2))
    with pytest.raises(BusError, match=r"inp read of address 0x40123456 \(\+0x123456 from the image\)") as caught:
        device.run(example(TINY), {"image": images(1)})
    assert caught.value.address == BASE + 0x123456


def test_watchdog_says_which_token_is_missing() -> None:
    device, _ = open_fake(action=failing(Cause.WATCHDOG, Unit.COMPUTE, 1, wait=1 << Queue.LOAD_TO_COMPUTE))
    with pytest.raises(
        Fault, match=r"deadlock: its pop_prev .* load_to_compute .* lacks a push_next in unit load"
    ) as caught:
        device.run(example(TINY), {"image": images(1)})
    assert caught.value.waits == (Queue.LOAD_TO_COMPUTE,)
    device, _ = open_fake(action=failing(Cause.WATCHDOG, Unit.COMPUTE, 2, finish=1))
    with pytest.raises(Fault, match=r"a token is left over"):
        device.run(example(TINY), {"image": images(1)})


def test_next_run_recovers_from_a_fault() -> None:
    device, transport = open_fake(action=failing(Cause.INDEX_RANGE, Unit.COMPUTE, 1))
    bundle = example(TINY)
    with pytest.raises(Fault):
        device.run(bundle, {"image": images(1)})
    transport.action = copy_x_to_y
    device.run(bundle, {"image": images(1)})
    assert transport.log.count("reset") == 1


def test_wait_is_bounded() -> None:
    def hang(device: FakeTransport) -> None:
        device.stops = False
        device.registers[OFFSETS["STATUS"]] = STATUS.field("running").mask | STATUS.field("load_busy").mask

    device, transport = open_fake(action=hang)
    bundle = example(TINY)
    with pytest.raises(
        Timeout, match=r"segment 0 of bundle 'example': still running after \d+ cycles; STATUS: running, load_busy"
    ):
        device.run(bundle, {"image": images(1)})
    assert f"wait {cycle_bound(bundle.segments[0].program)}" in transport.log
    with pytest.raises(Timeout, match="after 500 cycles"):
        device.launch(bundle, max_cycles=500)


def test_bound_grows_with_the_work() -> None:
    def bound(**fields: int) -> int:
        return cycle_bound(Program.assemble(TINY, [make(Opcode.GEMM, uop_end=4, iter_in=10, **fields)]))

    assert bound(iter_out=1000) > bound(iter_out=10) > 40


def test_stop_without_finish_is_an_error() -> None:
    device, _ = open_fake(action=lambda device: None)
    with pytest.raises(DeviceError, match="stopped without finishing"):
        device.run(example(TINY), {"image": images(1)})


def test_host_model_that_is_damaged() -> None:
    bundle = example(TINY)
    broken = HostStep("front", b"not a model", ("image",), ("x",))
    bundle = Bundle(**{**vars(bundle), "steps": (broken, *bundle.steps[1:])})
    device, _ = open_fake()
    with pytest.raises(DeviceError, match="host step 'front': onnxruntime refuses the model"):
        device.run(bundle, {"image": images(1)})


def test_close_lets_the_device_go() -> None:
    device, transport = open_fake()
    with device:
        pass
    assert transport.closed


def test_progress_is_told() -> None:
    device, _ = open_fake()
    said: list[str] = []
    say: Callable[[str], None] = said.append
    device.run(example(TINY), {"image": images(3)}, progress=say)
    assert said[-1] == "fake: 3 of 3 images"
