# SPDX-License-Identifier: Apache-2.0
"""Illegal streams stop with the same cause, unit and instruction on every backend, and the device works again afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import cast

import pytest

from conformance.programs import build
from conformance.programs.builder import Builder, Case
from openvta.driver import BusError, Device, Fault, open_device
from openvta.sim.cosim.session import IDEAL, BusFault
from openvta.sim.cosim.transport import CosimTransport
from openvta.spec import AluOpcode, Cause, HardwareConfig, MemId, Opcode, Program, Unit, load_config, named_configs
from openvta.spec.bundle import Bundle, Segment

BACKENDS = ("fsim", "cosim", "hls")
OPTIONS = {"hls": {"integers": "wide"}}
Open = Callable[[str, HardwareConfig], Device]
Stop = tuple[Cause, Unit, int]
Maker = Callable[[Builder], Stop]

FAR = (1 << 32) - 1
ONE = {"y_size": 1, "x_size": 1, "x_stride": 1}
LOOP = {"iter_out": 1, "iter_in": 1}
FAULTS: dict[str, Maker] = {}


def fault(maker: Maker) -> Maker:
    """Register a faulty program; it returns the cause, the unit and the instruction's number."""
    FAULTS[maker.__name__] = maker
    return maker


def quiet(b: Builder) -> None:
    """An instruction in front, so that the fault is not at number 0."""
    b.op(Opcode.LOAD, memory_id=MemId.UOP)


def with_word(b: Builder, word: int) -> None:
    """A raw word in place of an instruction."""
    b.op(Opcode.LOAD, memory_id=MemId.UOP)
    b.word_bits(word)


@fault
def opcode_5(b: Builder) -> Stop:
    quiet(b)
    with_word(b, 5)
    return Cause.ILLEGAL_OPCODE, Unit.FETCH, 1


@fault
def opcode_7(b: Builder) -> Stop:
    quiet(b)
    with_word(b, 7)
    return Cause.ILLEGAL_OPCODE, Unit.FETCH, 1


@fault
def reserved_bit_of_store(b: Builder) -> Stop:
    quiet(b)
    b.op(Opcode.STORE, memory_id=MemId.OUT)
    b.word_bits(1 << 60)
    return Cause.RESERVED_BITS, Unit.FETCH, 1


@fault
def reserved_immediate(b: Builder) -> Stop:
    b.op(Opcode.ALU, alu_opcode=AluOpcode.MOV, imm=1)
    return Cause.RESERVED_BITS, Unit.FETCH, 0


@fault
def token_of_load(b: Builder) -> Stop:
    quiet(b)
    b.op(Opcode.LOAD, memory_id=MemId.INP, pop_prev=1)
    return Cause.ILLEGAL_TOKEN, Unit.FETCH, 1


@fault
def token_of_store(b: Builder) -> Stop:
    b.op(Opcode.STORE, memory_id=MemId.OUT, push_next=1)
    return Cause.ILLEGAL_TOKEN, Unit.FETCH, 0


@fault
def finish_pushes(b: Builder) -> Stop:
    quiet(b)
    b.op(Opcode.FINISH, push_next=1)
    return Cause.ILLEGAL_TOKEN, Unit.FETCH, 1


@fault
def finish_too_early(b: Builder) -> Stop:
    quiet(b)
    b.op(Opcode.FINISH)
    quiet(b)
    return Cause.FINISH_ORDER, Unit.FETCH, 1


@fault
def load_into_out(b: Builder) -> Stop:
    quiet(b)
    b.op(Opcode.LOAD, memory_id=MemId.OUT, **ONE)
    return Cause.ILLEGAL_MEMORY, Unit.FETCH, 1


@fault
def load_into_memory_7(b: Builder) -> Stop:
    b.op(Opcode.LOAD, memory_id=7, **ONE)
    return Cause.ILLEGAL_MEMORY, Unit.FETCH, 0


@fault
def store_from_acc(b: Builder) -> Stop:
    quiet(b)
    b.op(Opcode.STORE, memory_id=MemId.ACC, **ONE)
    return Cause.ILLEGAL_MEMORY, Unit.FETCH, 1


@fault
def store_with_pads(b: Builder) -> Stop:
    b.op(Opcode.STORE, memory_id=MemId.OUT, **ONE, x_pad_0=1)
    return Cause.ILLEGAL_FIELD, Unit.FETCH, 0


@fault
def two_kinds_of_pad(b: Builder) -> Stop:
    b.op(Opcode.LOAD, memory_id=MemId.INP, **ONE, pad_min=1, pad_value=3)
    return Cause.ILLEGAL_FIELD, Unit.FETCH, 0


@fault
def uops_backwards(b: Builder) -> Stop:
    quiet(b)
    b.op(Opcode.GEMM, uop_begin=3, uop_end=2, **LOOP)
    return Cause.ILLEGAL_FIELD, Unit.FETCH, 1


@fault
def requant_mode_7(b: Builder) -> Stop:
    b.op(Opcode.REQUANT, mode=7, **LOOP)
    return Cause.ILLEGAL_FIELD, Unit.FETCH, 0


@fault
def uop_end_beyond_depth(b: Builder) -> Stop:
    b.op(Opcode.ALU, uop_begin=b.c.uop_depth - 1, uop_end=b.c.uop_depth + 1, **LOOP)
    return Cause.INDEX_RANGE, Unit.FETCH, 0


def _beyond(b: Builder, memory: MemId, depth: int) -> None:
    count = 4
    b.load(memory, depth - count + 1, [[0]] * count if memory is MemId.UOP else b.random(memory, count))


@fault
def load_inp_beyond_depth(b: Builder) -> Stop:
    _beyond(b, MemId.INP, b.c.inp_depth)
    return Cause.INDEX_RANGE, Unit.LOAD, 0


@fault
def load_wgt_beyond_depth(b: Builder) -> Stop:
    _beyond(b, MemId.WGT, b.c.wgt_depth)
    return Cause.INDEX_RANGE, Unit.LOAD, 0


@fault
def load_acc_beyond_depth(b: Builder) -> Stop:
    _beyond(b, MemId.ACC, b.c.acc_depth)
    return Cause.INDEX_RANGE, Unit.COMPUTE, 0


@fault
def load_uop_beyond_depth(b: Builder) -> Stop:
    _beyond(b, MemId.UOP, b.c.uop_depth)
    return Cause.INDEX_RANGE, Unit.COMPUTE, 0


@fault
def pads_beyond_depth(b: Builder) -> Stop:
    b.load(MemId.INP, b.c.inp_depth - 3, b.random(MemId.INP, 2), x_pad_0=1, x_pad_1=1)
    return Cause.INDEX_RANGE, Unit.LOAD, 0


@fault
def store_beyond_depth(b: Builder) -> Stop:
    base = b.reserve(4)
    b.op(Opcode.STORE, memory_id=MemId.OUT, sram_base=b.c.acc_depth - 3, dram_base=base, y_size=1, x_size=4, x_stride=4)
    return Cause.INDEX_RANGE, Unit.STORE, 0


@fault
def gemm_dst_beyond_depth(b: Builder) -> Stop:
    b.gemm([(b.c.acc_depth - 1, 0, 0)], reset=1, iter_in=2, dst_factor_in=1)
    return Cause.INDEX_RANGE, Unit.COMPUTE, 1


@fault
def gemm_dst_far_beyond_depth(b: Builder) -> Stop:
    """A factor so large that an index which wrapped would be legal again."""
    b.gemm(
        [(0, 0, 0)], reset=1, iter_out=3, dst_factor_out=b.c.acc_depth - 1, iter_in=3, dst_factor_in=b.c.acc_depth // 2
    )
    return Cause.INDEX_RANGE, Unit.COMPUTE, 1


@fault
def alu_src_beyond_depth(b: Builder) -> Stop:
    b.load(MemId.ACC, b.c.acc_depth - 1, b.random(MemId.ACC, 1))
    b.alu(AluOpcode.ADD, [(0, b.c.acc_depth - 1)], 0, iter_in=2, src_factor_in=1)
    return Cause.INDEX_RANGE, Unit.COMPUTE, 2


@fault
def requant_parameters_beyond_depth(b: Builder) -> Stop:
    b.load(MemId.ACC, b.c.acc_depth - 2, b.random(MemId.ACC, 2))
    b.op(Opcode.REQUANT, data_base=b.c.acc_depth - 2, param_base=b.c.acc_depth - 2, **LOOP)
    return Cause.INDEX_RANGE, Unit.COMPUTE, 1


@fault
def too_many_tokens(b: Builder) -> Stop:
    b.serial = False
    for _ in range(b.c.token_depth + 1):
        b.op(Opcode.LOAD, memory_id=MemId.INP, push_next=1)
    return Cause.TOKEN_OVERFLOW, Unit.LOAD, b.c.token_depth


@fault
def load_from_nowhere(b: Builder) -> Stop:
    b.op(Opcode.LOAD, memory_id=MemId.WGT, dram_base=FAR, **ONE)
    return Cause.BUS_READ, Unit.LOAD, 0


@fault
def load_acc_from_nowhere(b: Builder) -> Stop:
    quiet(b)
    b.op(Opcode.LOAD, memory_id=MemId.ACC, dram_base=FAR, **ONE)
    return Cause.BUS_READ, Unit.COMPUTE, 1


@fault
def store_to_nowhere(b: Builder) -> Stop:
    b.load(MemId.ACC, 0, b.random(MemId.ACC, 1))
    b.copy(0, 0, 1)
    b.op(Opcode.STORE, memory_id=MemId.OUT, dram_base=FAR, **ONE)
    return Cause.BUS_WRITE, Unit.STORE, 3


@pytest.fixture(scope="module")
def devices() -> Iterator[Open]:
    """Opens each (backend, configuration) once."""
    opened: dict[tuple[str, str], Device] = {}

    def get(backend: str, config: HardwareConfig) -> Device:
        key = backend, config.name
        if key not in opened:
            opened[key] = open_device(backend, config=config, **OPTIONS.get(backend, {}))
        return opened[key]

    yield get
    for device in opened.values():
        device.close()


def made(config: HardwareConfig, name: str) -> tuple[Case, Stop]:
    builder = Builder(config, name)
    stop = FAULTS[name](builder)
    return builder.build(), stop


@pytest.mark.parametrize("config_name", named_configs())
@pytest.mark.parametrize("name", FAULTS)
@pytest.mark.parametrize("backend", BACKENDS)
def test_fault(
    backend: str, name: str, config_name: str, devices: Open, record_coverage: Callable[[str, str], None]
) -> None:
    config = load_config(config_name)
    case, (cause, unit, index) = made(config, name)
    device = devices(backend, config)
    with pytest.raises(Fault) as caught:
        device.launch(case.bundle)
    found = caught.value
    assert (found.cause, found.unit, found.index) == (cause, unit, index), str(found)
    assert found.instruction in str(found) and cause.name.lower() in str(found)
    if cause in (Cause.BUS_READ, Cause.BUS_WRITE):
        assert isinstance(found, BusError)
        assert found.address >= FAR * config.out_bytes
    good = build(config, "gemm_single")
    placed = device.load(good.bundle)
    device.launch(good.bundle)
    assert placed.read(good.out_offset, len(good.expected)).tobytes() == good.expected
    record_coverage(backend, config_name)


@pytest.mark.parametrize("config_name", named_configs())
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_stream_without_finish(backend: str, config_name: str, devices: Open) -> None:
    config = load_config(config_name)
    case = build(config, "gemm_single")
    segment = case.bundle.segments[0]
    cut = Segment(Program(config, segment.program.words[:-1]), segment.insn_offset)
    with pytest.raises(Fault, match="finish_order") as caught:
        devices(backend, config).launch(Bundle(**{**vars(case.bundle), "segments": (cut,)}))
    assert caught.value.index == len(cut.program) - 1


SERVED: dict[str, tuple[str, str, Cause, Unit]] = {
    "insn": ("insn", "gemm_single", Cause.BUS_READ, Unit.FETCH),
    "uop": ("uop", "gemm_single", Cause.BUS_READ, Unit.COMPUTE),
    "inp": ("inp", "gemm_single", Cause.BUS_READ, Unit.LOAD),
    "wgt": ("wgt", "gemm_single", Cause.BUS_READ, Unit.LOAD),
    "acc": ("acc", "gemm_single", Cause.BUS_READ, Unit.COMPUTE),
    "out": ("out", "gemm_single", Cause.BUS_WRITE, Unit.STORE),
}
"""Region that answers with an error, program, and what the device must say."""


@pytest.mark.parametrize("response", [2, 3])
@pytest.mark.parametrize("region", SERVED)
@pytest.mark.parametrize("config_name", named_configs())
def test_a_bus_error_of_every_client(config_name: str, region: str, response: int, devices: Open) -> None:
    """SLVERR and DECERR from memory that answers everything else."""
    config = load_config(config_name)
    where, name, cause, unit = SERVED[region]
    case = build(config, name)
    device = devices("cosim", config)
    placed = device.load(case.bundle)
    start = placed.base + (0 if where == "insn" else case.bundle.bases[where])
    bad = BusFault(start, 4096, response, where == "out")
    transport = cast(CosimTransport, device.transport)
    transport.set_memory(IDEAL, (bad,))
    try:
        with pytest.raises(BusError) as caught:
            device.launch(case.bundle)
    finally:
        transport.set_memory(IDEAL)
    assert (caught.value.cause, caught.value.unit) == (cause, unit), str(caught.value)
    assert where in caught.value.channel or (where == "insn" and caught.value.channel == "instruction read")
    assert start <= caught.value.address < start + 4096
    device.launch(case.bundle)
    assert placed.read(case.out_offset, len(case.expected)).tobytes() == case.expected
