# SPDX-License-Identifier: Apache-2.0
"""The machine's rules one by one: padding, order, no-ops, state, faults, deadlock, FINISH."""

from __future__ import annotations

import numpy as np
import pytest

from openvta.sim.errors import StateError
from openvta.sim.fsim import Memory
from openvta.sim.fsim import gemm as gemm_module
from openvta.spec import AluOpcode, Cause, Insn, MemId, Opcode, Program, Queue, RequantMode, Unit, load_config, make
from stream_tools import AREA, FINISH, Bench, alu, bench, gemm, load, store, stream

TINY = load_config("tiny")


def run(on: Bench, *insns: Insn, seed: int | None = None):  # type: ignore[no-untyped-def]
    return on.machine.run_stream(stream(on.config, *insns, FINISH), on.bases, seed=seed)


def ok(on: Bench, *insns: Insn) -> None:
    outcome = run(on, *insns)
    assert outcome.fault is None, outcome.fault


@pytest.mark.parametrize(
    ("memory", "fill"),
    [(MemId.ACC, -(2**31)), (MemId.ACC_INT8, -(2**31)), (MemId.ACC_UINT8, -(2**31)), (MemId.INP, -128)],
)
def test_minimum_padding_is_that_of_the_scratchpad_lane(memory: MemId, fill: int) -> None:
    on = bench(TINY)
    ok(on, load(memory, 1, 2, pad_min=1, x_pad_0=1, y_pad_1=1))
    target = Memory.INP if memory is MemId.INP else Memory.ACC
    lanes = on.machine.scratchpad(target)
    assert (lanes[[1, 4, 5, 6]] == fill).all()
    assert (lanes[[0, 7]] == 0).all()


@pytest.mark.parametrize(
    ("memory", "value", "fill"),
    [(MemId.ACC, -3, -3), (MemId.ACC_INT8, 200, -56), (MemId.ACC_UINT8, 200, 200), (MemId.WGT, 5, 5)],
)
def test_pad_values(memory: MemId, value: int, fill: int) -> None:
    on = bench(TINY)
    ok(on, load(memory, 0, 1, pad_value=value, x_pad_1=1))
    assert (on.machine.scratchpad(Memory.WGT if memory is MemId.WGT else Memory.ACC)[1] == fill).all()


def test_a_load_equals_numpy_pad_and_touches_nothing_else() -> None:
    on = bench(TINY)
    before = np.full((TINY.inp_depth, 1, 4), 9)
    data = on.memory.read(on.bases["inp"], AREA).view(np.int8).reshape(-1, 4)
    for pads in np.ndindex(2, 2, 2, 2):
        top, bottom, left, right = pads
        on.machine.set_scratchpad(Memory.INP, 0, before)
        ok(
            on,
            load(
                MemId.INP,
                3,
                5,
                7,
                y_size=2,
                x_stride=6,
                y_pad_0=top,
                y_pad_1=2 * bottom,
                x_pad_0=left,
                x_pad_1=3 * right,
            ),
        )
        rows = np.stack([data[7:12], data[13:18]])
        wanted = np.pad(rows, ((top, 2 * bottom), (left, 3 * right), (0, 0))).reshape(-1, 4)
        got = on.machine.scratchpad(Memory.INP)[:, 0]
        np.testing.assert_array_equal(got[3 : 3 + len(wanted)], wanted)
        assert (got[:3] == 9).all() and (got[3 + len(wanted) :] == 9).all()


def test_stride_zero_repeats_a_row_and_stores_overlap_in_row_order() -> None:
    on = bench(TINY)
    ok(on, load(MemId.INP, 0, 2, y_size=3, x_stride=0))
    lanes = on.machine.scratchpad(Memory.INP)
    assert np.array_equal(lanes[0:2], lanes[2:4]) and np.array_equal(lanes[0:2], lanes[4:6])
    on.machine.set_scratchpad(Memory.OUT, 0, np.arange(6 * 4).reshape(6, 1, 4))
    ok(on, store(0, 3, y_size=2, x_stride=1))
    assert on.memory.read(on.bases["out"], 16).tolist() == [0, 1, 2, 3, *range(12, 24)]


def test_store_leaves_the_bytes_between_rows_alone() -> None:
    on = bench(TINY)
    before = on.memory.read(on.bases["out"], 64)
    on.machine.set_scratchpad(Memory.OUT, 0, np.arange(4 * 4).reshape(4, 1, 4))
    ok(on, store(0, 2, 1, y_size=2, x_stride=5))
    wanted = before.copy()
    wanted[4:12], wanted[24:32] = np.arange(8), np.arange(8, 16)
    np.testing.assert_array_equal(on.memory.read(on.bases["out"], 64), wanted)


def test_operations_see_the_ones_before() -> None:
    on = bench(TINY)
    on.machine.set_scratchpad(Memory.ACC, 0, np.arange(1, 7)[:, None, None].repeat(4, 2))
    on.set_uops((1, 0, 0), (2, 1, 0), (3, 2, 0), (3, 3, 0))
    ok(on, alu(AluOpcode.ADD, 0, 4))
    assert on.machine.scratchpad(Memory.ACC)[:6, 0, 0].tolist() == [1, 3, 6, 20, 5, 6]
    assert on.machine.scratchpad(Memory.OUT)[:6, 0, 0].tolist() == [0, 3, 6, 20, 0, 0]


def test_an_immediate_reads_src() -> None:
    on = bench(TINY)
    on.machine.set_scratchpad(Memory.ACC, 0, np.arange(6)[:, None, None].repeat(4, 2))
    on.set_uops((0, 5, 0))
    ok(on, alu(AluOpcode.MUL, use_imm=1, imm=-7))
    assert on.machine.scratchpad(Memory.ACC)[0, 0].tolist() == [-35] * 4


def test_reset_leaves_out_and_load_leaves_out() -> None:
    on = bench(TINY)
    on.machine.set_scratchpad(Memory.OUT, 0, np.full((4, 1, 4), 11))
    on.machine.set_scratchpad(Memory.ACC, 0, np.full((4, 1, 4), 22))
    on.set_uops((0, 0, 0), (1, 0, 0))
    ok(on, gemm(0, 2, reset=1), load(MemId.ACC, 2, 1))
    assert (on.machine.scratchpad(Memory.ACC)[:2] == 0).all()
    assert (on.machine.scratchpad(Memory.OUT)[:4] == 11).all()


def test_saturation_on_the_way_to_out() -> None:
    on = bench(TINY)
    on.machine.set_scratchpad(Memory.ACC, 0, np.array([300, -300, 5, 128]).reshape(1, 1, 4))
    on.set_uops((0, 0, 0))
    ok(on, alu(AluOpcode.ADD, use_imm=1, imm=0))
    assert on.machine.scratchpad(Memory.OUT)[0, 0].tolist() == [44, -44, 5, -128]
    ok(on, alu(AluOpcode.ADD, use_imm=1, imm=0, sat=1))
    assert on.machine.scratchpad(Memory.OUT)[0, 0].tolist() == [127, -128, 5, 127]


def test_requant_clears_after_reading_even_its_own_parameters() -> None:
    on = bench(TINY)
    params = np.zeros((8, 1, 4), np.int64)
    params[0:2] = 40
    params[4], params[5], params[6] = 2, 1, 127 << 24 | 0x80 << 16
    on.machine.set_scratchpad(Memory.ACC, 0, params)
    values = {"data_base": 0, "param_base": 4, "iter_out": 1, "iter_in": 2, "data_factor_in": 1, "mode": 0, "clear": 1}
    ok(on, make(Opcode.REQUANT, **values))
    assert on.machine.scratchpad(Memory.OUT)[:2, 0, 0].tolist() == [42, 42]
    assert (on.machine.scratchpad(Memory.ACC)[:2] == 0).all()


def test_wide_sums_stay_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    """More than 2^24: the float32 product would lose bits."""
    config = load_config("default")
    on = bench(config)
    on.machine.set_scratchpad(Memory.INP, 0, np.full((config.inp_depth, 1, 16), -128))
    on.machine.set_scratchpad(Memory.WGT, 0, np.full((config.wgt_depth, 16, 16), -127))
    on.machine.set_scratchpad(Memory.ACC, 0, np.full((1, 1, 16), 2**31 - 5))
    on.set_uops(*((0, k, k) for k in range(300)))
    for limit in (1 << 17, 64):
        monkeypatch.setattr(gemm_module, "GATHER_LANES", limit)
        on.machine.set_scratchpad(Memory.ACC, 0, np.full((1, 1, 16), 2**31 - 5))
        ok(on, gemm(0, 300))
        wanted = (2**31 - 5 + 300 * 16 * 128 * 127 + 2**31) % 2**32 - 2**31
        assert on.machine.scratchpad(Memory.ACC)[0, 0].tolist() == [wanted] * 16


def test_packed_weights_follow_the_scratchpad() -> None:
    on = bench(TINY)
    on.machine.set_scratchpad(Memory.INP, 0, np.ones((1, 1, 4), np.int64))
    on.set_uops((0, 0, 0))
    program = stream(TINY, gemm(), FINISH)
    for value in (3, -4, 3):
        on.machine.set_scratchpad(Memory.ACC, 0, np.zeros((1, 1, 4), np.int64))
        on.machine.set_scratchpad(Memory.WGT, 0, np.full((1, 4, 4), value))
        assert on.machine.run_stream(program, on.bases).fault is None
        assert on.machine.scratchpad(Memory.ACC)[0, 0].tolist() == [4 * value] * 4


def test_weights_changed_in_device_memory_are_seen() -> None:
    on = bench(TINY)
    program = stream(TINY, load(MemId.WGT, 0, 2), FINISH)
    for value in (1, 2, 1):
        on.memory.write(on.bases["wgt"], np.full(32, value, np.uint8))
        assert on.machine.run_stream(program, on.bases).fault is None
        assert (on.machine.scratchpad(Memory.WGT)[:2] == value).all()
    moved = on.bases | {"wgt": on.bases["wgt"] + 64}
    assert on.machine.run_stream(program, moved).fault is None
    wanted = on.memory.read(moved["wgt"], 32).view(np.int8).reshape(2, 4, 4)
    np.testing.assert_array_equal(on.machine.scratchpad(Memory.WGT)[:2], wanted)


NOOPS = [
    make(Opcode.LOAD, memory_id=7, x_size=0, y_size=4),
    make(Opcode.LOAD, memory_id=2, x_size=4, y_size=0, y_pad_0=3, x_pad_0=2, sram_base=8191),
    make(Opcode.STORE, memory_id=0),
    make(Opcode.GEMM, uop_end=4),
    make(Opcode.GEMM, uop_begin=3, uop_end=3, iter_out=1, iter_in=1),
    make(Opcode.ALU, uop_end=1, iter_out=5),
    make(Opcode.REQUANT, iter_in=5, data_base=63, param_base=63),
]


@pytest.mark.parametrize("insn", NOOPS)
def test_noops_change_nothing(insn: Insn) -> None:
    on = bench(TINY)
    outcome = run(on, insn)
    assert outcome.fault is None and outcome.retired == 2
    assert not any(on.machine.scratchpad(memory).any() for memory in Memory if memory is not Memory.DRAM)


@pytest.mark.parametrize("word", [5, 7, 5 | 1 << 100])
def test_unknown_opcodes(word: int) -> None:
    on = bench(TINY)
    program = Program(TINY, (0, word, int.from_bytes(stream(TINY, FINISH), "little")))
    fault = on.machine.run_stream(program.to_bytes(), on.bases).fault
    assert fault is not None and (fault.cause, fault.unit, fault.index) == (Cause.ILLEGAL_OPCODE, Unit.FETCH, 1)


RUNTIME = [
    (load(MemId.INP, TINY.inp_depth - 1, 1, x_pad_1=1), Unit.LOAD),
    (load(MemId.WGT, 0, TINY.wgt_depth + 1), Unit.LOAD),
    (load(MemId.ACC_INT8, TINY.acc_depth, 1), Unit.COMPUTE),
    (load(MemId.UOP, TINY.uop_depth - 2, 3), Unit.COMPUTE),
    (store(TINY.acc_depth - 1, 2), Unit.STORE),
    (gemm(dst_factor_out=1, iter_out=TINY.acc_depth + 1), Unit.COMPUTE),
    (gemm(src_factor_in=TINY.inp_depth - 1, iter_in=3), Unit.COMPUTE),
    (gemm(wgt_factor_in=1, iter_in=TINY.wgt_depth + 1), Unit.COMPUTE),
    (alu(AluOpcode.MAX, src_factor_out=1, iter_out=TINY.acc_depth + 1), Unit.COMPUTE),
    (make(Opcode.REQUANT, data_base=TINY.acc_depth - 1, data_factor_in=1, iter_out=1, iter_in=2), Unit.COMPUTE),
    (make(Opcode.REQUANT, param_base=TINY.acc_depth - 2, iter_out=1, iter_in=1), Unit.COMPUTE),
]


@pytest.mark.parametrize(("insn", "unit"), RUNTIME)
def test_index_beyond_the_depth(insn: Insn, unit: Unit) -> None:
    on = bench(TINY)
    outcome = run(on, make(Opcode.GEMM), insn)
    fault = outcome.fault
    assert fault is not None and (fault.cause, fault.unit, fault.index) == (Cause.INDEX_RANGE, unit, 1)
    assert outcome.retired <= 1
    assert str(TINY.acc_depth) in fault.detail or "depth is" in fault.detail


def test_what_is_not_read_is_not_checked() -> None:
    on = bench(TINY)
    ok(on, gemm(reset=1, src_factor_in=TINY.inp_depth - 1, wgt_factor_in=TINY.wgt_depth - 1, iter_in=5))
    ok(on, alu(AluOpcode.MOV, use_imm=1, imm=3, src_factor_in=TINY.acc_depth - 1, iter_in=5))
    assert run(on, alu(AluOpcode.MOV, src_factor_in=TINY.acc_depth - 1, iter_in=5)).fault is not None


def test_bus_faults_name_channel_and_address() -> None:
    on = bench(TINY)
    edge = 5 * AREA // TINY.inp_bytes
    fault = run(on, load(MemId.INP, 0, 3, edge + 10000)).fault
    assert fault is not None and (fault.cause, fault.unit, fault.channel) == (Cause.BUS_READ, Unit.LOAD, 2)
    assert fault.address == on.bases["inp"] + (edge + 10000) * TINY.inp_bytes
    fault = run(on, store(0, 2, (1 << 32) - 1)).fault
    assert fault is not None and (fault.cause, fault.unit, fault.channel) == (Cause.BUS_WRITE, Unit.STORE, 8)


def test_fetch_beyond_memory() -> None:
    on = bench(TINY)
    fault = on.machine.run(on.bases["out"] + AREA + 16, 4, on.bases).fault
    assert fault is not None and (fault.cause, fault.unit) == (Cause.BUS_READ, Unit.FETCH)


def test_tokens_order_units_and_are_counted() -> None:
    on = bench(TINY)
    insns = [
        load(MemId.INP, 0, 1, push_next=1),
        load(MemId.UOP, 0, 1, pop_prev=1, push_next=1),
        store(0, 1, pop_prev=1),
    ]
    assert run(on, *insns).fault is None
    assert not any(on.machine.tokens.values())


def test_missing_push_is_a_deadlock_that_names_the_waiting_unit() -> None:
    on = bench(TINY)
    fault = run(on, load(MemId.INP, 0, 1), load(MemId.UOP, 0, 1, pop_prev=1)).fault
    assert fault is not None
    assert (fault.cause, fault.unit, fault.index) == (Cause.WATCHDOG, Unit.COMPUTE, 1)
    assert fault.wait == 1 << Queue.LOAD_TO_COMPUTE and not fault.finish
    assert "load_to_compute 0" in fault.detail


def test_a_token_left_over_keeps_finish_waiting() -> None:
    on = bench(TINY)
    fault = run(on, load(MemId.INP, 0, 1, push_next=1)).fault
    assert fault is not None and (fault.cause, fault.unit, fault.index) == (Cause.WATCHDOG, Unit.COMPUTE, 1)
    assert fault.finish and fault.wait == 0


def test_finish_honours_its_pops() -> None:
    on = bench(TINY)
    program = stream(TINY, load(MemId.INP, 0, 1, push_next=1), make(Opcode.FINISH, pop_prev=1))
    assert on.machine.run_stream(program, on.bases).fault is None


def test_token_overflow() -> None:
    on = bench(TINY)
    pushes = [load(MemId.INP, 0, 0, push_next=1)] * TINY.token_depth
    pops = [load(MemId.UOP, 0, 0, pop_prev=1)] * TINY.token_depth
    wait = load(MemId.UOP, 0, 0, pop_next=1)
    assert run(on, *pushes, *pops).fault is None
    fault = run(on, wait, *pushes, pushes[0], make(Opcode.STORE, push_prev=1), *pops, pops[0]).fault
    assert fault is not None and (fault.cause, fault.unit) == (Cause.TOKEN_OVERFLOW, Unit.LOAD)
    assert fault.index == TINY.token_depth + 1


def test_a_full_instruction_queue_can_deadlock() -> None:
    """The push that the load unit waits for cannot be fetched past a full load queue."""
    on = bench(TINY)
    waiting = [load(MemId.INP, 0, 0, pop_next=1)]
    push = [load(MemId.UOP, 0, 0, push_prev=1)]
    filler = [load(MemId.INP, 0, 0)]
    assert run(on, *waiting, *filler * (TINY.queue_depth - 1), *push).fault is None
    fault = run(on, *waiting, *filler * TINY.queue_depth, *push).fault
    assert fault is not None and (fault.cause, fault.unit, fault.index) == (Cause.WATCHDOG, Unit.LOAD, 0)


def test_an_empty_stream_does_not_finish() -> None:
    on = bench(TINY)
    fault = on.machine.run_stream(b"", on.bases).fault
    assert fault is not None and (fault.cause, fault.unit) == (Cause.FINISH_ORDER, Unit.FETCH)


def test_state_can_be_set_and_read_back() -> None:
    on = bench(TINY)
    rng = np.random.default_rng(3)
    for memory in (Memory.UOP, Memory.WGT, Memory.INP, Memory.ACC, Memory.OUT):
        now = on.machine.scratchpad(memory)
        values = rng.integers(0, 100, now[2:5].shape)
        on.machine.set_scratchpad(memory, 2, values)
        np.testing.assert_array_equal(on.machine.scratchpad(memory)[2:5], values)
        with pytest.raises(StateError, match="depth"):
            on.machine.set_scratchpad(memory, len(now) - 1, values)
    with pytest.raises(StateError, match="must be -128"):
        on.machine.set_scratchpad(Memory.INP, 0, np.full((1, 1, 4), 128))
    with pytest.raises(StateError, match="shape"):
        on.machine.set_scratchpad(Memory.INP, 0, np.zeros((1, 4)))
    on.machine.set_tokens({Queue.LOAD_TO_COMPUTE: 2})
    assert on.machine.tokens[Queue.LOAD_TO_COMPUTE] == 2
    assert run(on, *[load(MemId.UOP, 0, 0, pop_prev=1)] * 2).fault is None
    with pytest.raises(StateError, match="tokens"):
        on.machine.set_tokens({Queue.LOAD_TO_COMPUTE: TINY.token_depth + 1})


def test_counters_are_exact() -> None:
    on = bench(TINY)
    on.set_uops((0, 0, 0), (0, 1, 1), (1, 0, 0))
    requant = make(Opcode.REQUANT, iter_out=2, iter_in=3, param_base=40, mode=int(RequantMode.FLOOR))
    outcome = run(
        on,
        load(MemId.INP, 0, 3, y_size=2, x_pad_0=2),
        load(MemId.WGT, 0, 2),
        load(MemId.ACC_INT8, 0, 2),
        load(MemId.ACC, 0, 2),
        load(MemId.UOP, 10, 5),
        gemm(0, 3, iter_out=4),
        alu(AluOpcode.ADD, 0, 3, iter_in=2),
        requant,
        store(0, 3),
    )
    wanted = {
        "inp_load_bytes": 24,
        "wgt_load_bytes": 32,
        "acc_load_bytes": 8 + 32,
        "uop_load_bytes": 20,
        "gemm_uops": 12,
        "alu_uops": 6,
        "requant_vectors": 6,
        "out_store_bytes": 12,
        "insns_retired": 10,
        "insn_bytes": 160,
        "acc_writes": 8 + 6,
    }
    assert outcome.fault is None
    assert dict(outcome.counters) == wanted
