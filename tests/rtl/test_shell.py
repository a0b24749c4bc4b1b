# SPDX-License-Identifier: Apache-2.0
"""Registers, errors, watchdog, interrupt state and soft reset of the whole core."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import core_registers as core
import numpy as np
import pytest
from core_registers import AREA, NAMES

from openvta.sim.cosim.session import DRAM, IDEAL, BusFault, MemoryModel
from openvta.sim.cosim.transport import CosimTransport
from openvta.sim.verify.rig import fill_program
from openvta.spec import HardwareConfig, Insn, MemId, Opcode, load_config, make
from openvta.spec.isa import ISA_VERSION, Cause, Queue, Unit
from openvta.spec.registers import ID_MAGIC, OFFSETS, REGISTERS
from openvta.spec.resolve import config_hash, feature_word
from random_programs import Generator

Record = Callable[[str, str], None]
CONFIGS = ("tiny", "default")


@pytest.fixture(scope="module", params=CONFIGS)
def shared(request: pytest.FixtureRequest) -> Iterator[CosimTransport]:
    transport = CosimTransport(load_config(request.param))
    yield transport
    transport.close()


@pytest.fixture
def rtl(shared: CosimTransport, record_coverage: Record) -> CosimTransport:
    """The core after reset, with ideal memory."""
    shared.hard_reset()
    shared.set_memory(IDEAL)
    shared.free_all()
    record_coverage("rtl shell", shared.config.name)
    return shared


def finish(**tokens: int) -> Insn:
    return make(Opcode.FINISH, **tokens)


def noop(memory: MemId, **tokens: int) -> Insn:
    """A transfer of nothing: only its tokens count. ``memory`` decides the unit."""
    return make(Opcode.STORE if memory is MemId.OUT else Opcode.LOAD, memory_id=int(memory), **tokens)


def one(memory: MemId, opcode: Opcode = Opcode.LOAD, **values: int) -> Insn:
    """A transfer of one element, if ``values`` do not say otherwise."""
    return make(opcode, memory_id=int(memory), **{"x_size": 1, "y_size": 1, "x_stride": 1, **values})


def test_register_map(rtl: CosimTransport) -> None:
    """Identity, reset values, access: every register of the specification."""
    config = rtl.config
    identity = {
        "ID": ID_MAGIC, "ISA_VERSION": ISA_VERSION, "FEATURES": feature_word(config),
        "CONFIG_HASH_LO": config_hash(config) & 0xFFFFFFFF, "CONFIG_HASH_HI": config_hash(config) >> 32,
    }  # fmt: skip
    for register in REGISTERS:
        value = rtl.read_register(register.offset)
        assert value == identity.get(register.name, register.reset), f"{register.name} is {value:#x} after reset"
    kept = [r for r in REGISTERS if r.access == "rw" and r.name not in ("CONTROL", "RESET")]
    for number, register in enumerate(kept):
        rtl.write_register(register.offset, 0xA5A5_0003 + (number << 8))
    for number, register in enumerate(kept):
        mask = 3 if register.name == "IRQ_ENABLE" else 0xFFFFFFFF
        assert rtl.read_register(register.offset) == (0xA5A5_0003 + (number << 8)) & mask, register.name
    for register in REGISTERS:
        if register.access == "ro":
            before = rtl.read_register(register.offset)
            rtl.write_register(register.offset, ~before & 0xFFFFFFFF)
            assert rtl.read_register(register.offset) == before, f"{register.name} changed"
    rtl.write_register(0xFFC, 1)
    assert rtl.read_register(0xFFC) == 0


def test_smallest_run(rtl: CosimTransport) -> None:
    """FINISH alone: finished, counted, interrupt state, and once more."""
    placed = core.place(rtl, core.assemble(rtl, [finish()]))
    for _ in range(2):
        assert core.run(rtl, placed)["cause"] == Cause.NONE
        assert rtl.read_register(OFFSETS["CONTROL"]) == 2
        assert rtl.read_register(OFFSETS["IRQ_STATUS"]) == 1
        rtl.write_register(OFFSETS["IRQ_STATUS"], 1)
        assert rtl.read_register(OFFSETS["IRQ_STATUS"]) == 0
        count = core.counters(rtl)
        assert count["insns_retired"] == 1 and count["insn_bytes"] == 16 and 5 < count["cycles"] < 60
        assert not any(core.status(rtl).values())


ERRORS: dict[str, tuple[Cause, Unit, int, Callable[[HardwareConfig], list[Insn | int]]]] = {
    "empty": (Cause.FINISH_ORDER, Unit.FETCH, 0, lambda c: []),
    "finish early": (Cause.FINISH_ORDER, Unit.FETCH, 0, lambda c: [finish(), finish()]),
    "no finish": (Cause.FINISH_ORDER, Unit.FETCH, 1, lambda c: [noop(MemId.INP), noop(MemId.INP)]),
    "opcode": (Cause.ILLEGAL_OPCODE, Unit.FETCH, 1, lambda c: [noop(MemId.INP), 5, finish()]),
    "reserved": (Cause.RESERVED_BITS, Unit.FETCH, 0, lambda c: [int(Opcode.STORE) | 1 << 58, 7]),
    "token": (Cause.ILLEGAL_TOKEN, Unit.FETCH, 0, lambda c: [noop(MemId.INP, pop_prev=1), finish()]),
    "memory": (Cause.ILLEGAL_MEMORY, Unit.FETCH, 0, lambda c: [one(MemId.OUT, Opcode.LOAD), finish()]),
    "field": (Cause.ILLEGAL_FIELD, Unit.FETCH, 0, lambda c: [make(Opcode.ALU, uop_begin=2, uop_end=1), finish()]),
    "uop range": (Cause.INDEX_RANGE, Unit.FETCH, 0, lambda c: [make(Opcode.ALU, uop_end=c.uop_depth + 1), finish()]),
    "inp range": (Cause.INDEX_RANGE, Unit.LOAD, 0, lambda c: [one(MemId.INP, sram_base=c.inp_depth - 1, x_size=2), finish()]),
    "wgt range": (Cause.INDEX_RANGE, Unit.LOAD, 1, lambda c: [noop(MemId.INP), one(MemId.WGT, sram_base=c.wgt_depth), finish()]),
    "acc range": (Cause.INDEX_RANGE, Unit.COMPUTE, 0, lambda c: [one(MemId.ACC, sram_base=c.acc_depth - 1, x_size=2), finish()]),
    "dst range": (
        Cause.INDEX_RANGE, Unit.COMPUTE, 1,
        lambda c: [
            one(MemId.UOP, x_pad_1=1),
            make(Opcode.GEMM, reset=1, uop_end=1, iter_out=3, iter_in=3, dst_factor_out=c.acc_depth // 2),
            finish(),
        ],
    ),
    "out range": (
        Cause.INDEX_RANGE, Unit.STORE, 0,
        lambda c: [one(MemId.OUT, Opcode.STORE, sram_base=c.acc_depth - 1, x_size=2), finish()],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ERRORS)
def test_errors_name_cause_unit_and_instruction(rtl: CosimTransport, name: str) -> None:
    """The core stops, says why, never finishes, and runs again after a soft reset."""
    cause, unit, index, words = ERRORS[name]
    stream = [w if isinstance(w, int) else core.assemble(rtl, [w])[0] for w in words(rtl.config)]
    found = core.run(rtl, core.place(rtl, stream))
    assert (found["cause"], found["unit"], found["index"]) == (cause, unit, index)
    assert (found["channel"], found["address"], found["wait"], found["finish"]) == (0, 0, 0, 0)
    assert rtl.read_register(OFFSETS["CONTROL"]) == 0 and rtl.read_register(OFFSETS["IRQ_STATUS"]) == 2
    assert core.status(rtl)["halted"] == 1
    good = core.place(rtl, core.assemble(rtl, [finish()]))
    core.launch(rtl, good)
    assert not core.status(rtl)["running"], "a launch was heard although an error is held"
    core.soft_reset(rtl)
    assert core.error(rtl)["cause"] == 0 and rtl.read_register(OFFSETS["IRQ_STATUS"]) == 0
    assert core.run(rtl, good)["cause"] == 0
    assert rtl.read_register(OFFSETS["CONTROL"]) == 2


@pytest.mark.parametrize("memory", ["insn", "uop", "inp", "wgt", "acc", "out"])
@pytest.mark.parametrize("response", [2, 3])
def test_bus_errors_name_channel_and_address(rtl: CosimTransport, memory: str, response: int) -> None:
    """SLVERR and DECERR on every channel."""
    ids = {"uop": MemId.UOP, "inp": MemId.INP, "wgt": MemId.WGT, "acc": MemId.ACC, "out": MemId.OUT}
    insns = [noop(MemId.INP) for _ in range(3)]
    if memory != "insn":
        opcode = Opcode.STORE if memory == "out" else Opcode.LOAD
        insns.append(make(opcode, memory_id=int(ids[memory]), x_size=4, y_size=2, x_stride=20, dram_base=2))
    insns.append(finish())
    placed = core.place(rtl, core.assemble(rtl, insns))
    config = rtl.config
    size = {
        "uop": 4,
        "inp": config.inp_bytes,
        "wgt": config.wgt_bytes,
        "acc": config.acc_bytes,
        "out": config.out_bytes,
    }
    if memory == "insn":
        address, expected, index = placed.address + 2 * 16, placed.address + 2 * 16, 2
    else:
        # the second row
        address = placed.bases[memory] + 22 * size[memory]
        expected, index = address // config.axi_data_bytes * config.axi_data_bytes, 3
    rtl.set_memory(IDEAL, (BusFault(address, 1, response, memory == "out"),))
    found = core.run(rtl, placed)
    channel = {"insn": 0, "uop": 1, "inp": 2, "wgt": 3, "acc": 4, "out": 8}[memory]
    cause = Cause.BUS_WRITE if memory == "out" else Cause.BUS_READ
    unit = {"insn": Unit.FETCH, "inp": Unit.LOAD, "wgt": Unit.LOAD, "out": Unit.STORE}.get(memory, Unit.COMPUTE)
    got = tuple(found[key] for key in ("cause", "unit", "channel", "index", "address"))
    assert got == (cause, unit, channel, index, expected)
    rtl.set_memory(IDEAL)
    core.soft_reset(rtl)
    assert core.run(rtl, placed)["cause"] == 0


@pytest.mark.parametrize(
    ("insns", "unit", "index", "queues", "waits"),
    [
        ([noop(MemId.INP), noop(MemId.INP, pop_next=1), finish()], Unit.LOAD, 1, {Queue.COMPUTE_TO_LOAD}, 1),
        ([noop(MemId.OUT, pop_prev=1), finish()], Unit.STORE, 0, {Queue.COMPUTE_TO_STORE}, 1),
        ([noop(MemId.ACC, pop_prev=1, pop_next=1), finish()], Unit.COMPUTE, 0, {Queue.LOAD_TO_COMPUTE, Queue.STORE_TO_COMPUTE}, 0),
        (
            [noop(MemId.INP, pop_next=1), noop(MemId.OUT, pop_prev=1), finish(pop_prev=1)], Unit.LOAD, 0,
            {Queue.COMPUTE_TO_LOAD, Queue.COMPUTE_TO_STORE, Queue.LOAD_TO_COMPUTE}, 0,
        ),
        ([noop(MemId.INP, push_next=1), finish()], Unit.COMPUTE, 1, set(), 1),
    ],
)  # fmt: skip
def test_watchdog_names_who_waits_for_what(
    rtl: CosimTransport, insns: list[Insn], unit: Unit, index: int, queues: set[Queue], waits: int
) -> None:
    """A deadlock ends after the watchdog's bound, with the waiting unit, instruction and queues."""
    rtl.write_register(OFFSETS["WATCHDOG"], 300)
    found = core.run(rtl, core.place(rtl, core.assemble(rtl, insns)), cycles=5000)
    assert (found["cause"], found["unit"], found["index"]) == (Cause.WATCHDOG, unit, index)
    assert found["wait"] == sum(1 << queue for queue in queues) and found["finish"] == waits
    assert 300 <= core.counters(rtl)["cycles"] < 420


def test_watchdog_can_be_off_and_is_not_early(rtl: CosimTransport) -> None:
    """A bound of zero never fires; a slow memory within the bound is no deadlock; one beyond it is."""
    stuck = core.place(rtl, core.assemble(rtl, [noop(MemId.INP, pop_next=1), finish()]))
    rtl.write_register(OFFSETS["WATCHDOG"], 0)
    core.launch(rtl, stuck)
    assert not rtl.wait(cycles=3000) and core.status(rtl)["running"] == 1
    core.soft_reset(rtl)
    rtl.write_register(OFFSETS["WATCHDOG"], 1000)
    slow = core.place(
        rtl, core.assemble(rtl, [make(Opcode.LOAD, memory_id=int(MemId.INP), x_size=4, y_size=1), finish()])
    )
    rtl.set_memory(MemoryModel(read_latency=900))
    assert core.run(rtl, slow)["cause"] == 0
    rtl.set_memory(MemoryModel(read_latency=1200))
    found = core.run(rtl, slow)
    assert (found["cause"], found["unit"], found["wait"]) == (Cause.WATCHDOG, Unit.FETCH, 0)


def test_token_overflow_names_the_pusher(rtl: CosimTransport) -> None:
    """One push more than the queue holds, while compute waits for a store that comes behind the pushes."""
    depth = rtl.config.token_depth
    hold = [noop(MemId.ACC, pop_next=1)]
    chain = [noop(MemId.INP, push_next=1) for _ in range(depth)]
    release = [*(noop(MemId.OUT) for _ in range(20)), noop(MemId.OUT, push_prev=1)]
    drain = [noop(MemId.ACC, pop_prev=1) for _ in range(depth)]
    fits = [*hold, *chain, *release, *drain, finish()]
    assert core.run(rtl, core.place(rtl, core.assemble(rtl, fits)))["cause"] == 0
    one_more = [*hold, *chain, chain[0], *release, *drain, finish(pop_prev=1)]
    found = core.run(rtl, core.place(rtl, core.assemble(rtl, one_more)))
    assert (found["cause"], found["unit"], found["index"]) == (Cause.TOKEN_OVERFLOW, Unit.LOAD, len(hold) + depth)


@pytest.mark.parametrize(
    ("memory", "bound"), [(IDEAL, 1 << 16), (DRAM, 1 << 16), (MemoryModel(read_latency=400, write_latency=400), 40)]
)
def test_soft_reset_at_any_time_then_an_exact_run(
    rtl: CosimTransport, memory: MemoryModel, bound: int, rng: np.random.Generator
) -> None:
    """Stopped anywhere, waited for or given up, the next run leaves exactly what an undisturbed one leaves."""
    found = Generator(rtl.config, rng).program(40)
    placed = core.place(rtl, list(found.program), found.areas)
    fill = core.add_program(rtl, list(fill_program(rtl.config)), placed)
    rtl.set_memory(memory)

    def again() -> dict[str, np.ndarray]:
        rtl.write_register(OFFSETS["WATCHDOG"], 1 << 16)
        for name in NAMES:
            rtl.write(placed.bases[name], found.areas[name])
        for program in (fill, placed):
            assert core.run(rtl, program)["cause"] == 0
        return {name: rtl.read(placed.bases[name], AREA) for name in NAMES}

    expected = again()
    retired = core.counters(rtl)["insns_retired"]
    span = core.counters(rtl)["cycles"]
    for number in range(24):
        rtl.write_register(OFFSETS["WATCHDOG"], bound)
        core.launch(rtl, placed)
        rtl.wait(cycles=int(rng.integers(1, span)))
        core.soft_reset(rtl)
        state = core.status(rtl)
        assert not state["running"] and not state["halted"]
        assert bound < 100 or not (state["reads_pending"] or state["writes_pending"])
        after = again()
        for name in NAMES:
            different = np.flatnonzero(after[name] != expected[name])
            assert different.size == 0, f"reset {number}: {name} differs in {different.size} bytes from {different[0]}"
        assert core.counters(rtl)["insns_retired"] == retired


def test_settings_do_not_change_during_a_run(rtl: CosimTransport) -> None:
    """Bases and count are held while the core runs."""
    stuck = core.place(rtl, core.assemble(rtl, [noop(MemId.INP, pop_next=1), finish()]))
    core.launch(rtl, stuck)
    rtl.write_register(OFFSETS["INSN_COUNT"], 99)
    rtl.write_register(OFFSETS["OUT_BASE_LO"], 0x123000)
    assert rtl.read_register(OFFSETS["INSN_COUNT"]) == stuck.count
    assert rtl.read_register(OFFSETS["OUT_BASE_LO"]) == stuck.bases["out"]
    core.soft_reset(rtl)
    rtl.write_register(OFFSETS["INSN_COUNT"], 99)
    assert rtl.read_register(OFFSETS["INSN_COUNT"]) == 99
