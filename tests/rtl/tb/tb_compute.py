# SPDX-License-Identifier: Apache-2.0
"""Tests of the ComputeUnit, inside the simulator."""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import RisingEdge
from compute_bench import ACC_BASE, IDEAL, SLOW, SPAN, UOP_BASE, ComputeBench, Timing

from openvta.sim.cosim.bfm.stream import value
from openvta.spec import AluOpcode, Cause, HardwareConfig, Insn, Opcode, RequantMode, load_config, make
from openvta.spec.arith import RequantParams, parameter_words
from random_programs import Generator, _Draft

CONFIG = load_config(os.environ.get("OPENVTA_CONFIG", "tiny"))
SEED = int(os.environ.get("COCOTB_RANDOM_SEED", "1"))
FULL = CONFIG.name == "tiny"
INT32 = (-(1 << 31), (1 << 31) - 1)
CORNERS = (
    0, 1, -1, 2, -2, 3, 5, 127, 128, -128, -129, 255, 256, 0xFFFFFF, 0x1000000, 0x1000001, 0x1000003, -0x1000001,
    0x7FFFFF80, 0x7FFFFF7F, 0x3FFFFFFF, 0x40000000, *INT32,
)  # fmt: skip


async def bench_of(dut: Any) -> ComputeBench:
    """A fresh bench after reset."""
    bench = ComputeBench(dut, CONFIG, SEED)
    await bench.start()
    return bench


def sat(bench: ComputeBench) -> dict[str, int]:
    """The sat flag, at random, where it is built."""
    return {"sat": bench.random.randrange(2)} if CONFIG.has("sat") else {}


def gemm_uops(bench: ComputeBench, dsts: list[int]) -> list[tuple[int, int, int]]:
    """Micro-ops with these dst and random src and wgt."""
    rng = bench.random
    return [
        (dst, rng.randrange(min(SPAN, CONFIG.inp_depth)), rng.randrange(min(SPAN, CONFIG.wgt_depth))) for dst in dsts
    ]


def plain(**values: int) -> dict[str, int]:
    """Loop counts of one iteration, and what else is given."""
    return {"iter_out": 1, "iter_in": 1, **values}


@cocotb.test()
async def gemm_distances(dut: Any) -> None:
    """K accumulated back to back; the same dst again after 1 to 5 others; from one instruction to the next as well."""
    bench = await bench_of(dut)
    for timing in (IDEAL, SLOW) if FULL else (IDEAL,):
        bench.timing = timing
        for distance in range(1, 6):
            dsts = [k % distance for k in range(16)]
            load, uops = bench.uop_load(gemm_uops(bench, dsts))
            insn = make(Opcode.GEMM, **plain(), **uops, **sat(bench))
            await bench.run([load, insn, insn, insn])
        for _ in range(4):
            dsts = [bench.random.randrange(bench.random.choice((1, 2, 4))) for _ in range(24)]
            load, uops = bench.uop_load(gemm_uops(bench, dsts))
            program = [load]
            for _ in range(5):
                first = uops["uop_begin"] + bench.random.randrange(12)
                ends = {"uop_begin": first, "uop_end": first + 1 + bench.random.randrange(12)}
                reset = int(bench.random.random() < 0.3)
                program.append(make(Opcode.GEMM, **plain(**ends, reset=reset), **sat(bench)))
            await bench.run(program)


@cocotb.test()
async def gemm_loops(dut: Any) -> None:
    """Loop nests with every factor, ranges of one micro-op, zero counts, and gaps between instructions."""
    bench = await bench_of(dut)
    rng = bench.random
    for _ in range(20 if FULL else 4):
        bench.timing = rng.choice((IDEAL, SLOW))
        outer, inner, count = rng.randrange(4), rng.randrange(4), rng.choice((1, 1, 2, 3, 5))
        uops = [(rng.randrange(4), rng.randrange(4), rng.randrange(4)) for _ in range(count)]
        load, ends = bench.uop_load(uops)
        factors = {
            f"{name}_factor_{loop}": rng.randrange(5) for name in ("dst", "src", "wgt") for loop in ("out", "in")
        }
        values = {"iter_out": outer, "iter_in": inner, **ends, **factors}
        program = [
            load,
            make(Opcode.GEMM, **values),
            make(Opcode.GEMM, **values, reset=1),
            make(Opcode.GEMM, **values, **sat(bench)),
        ]
        if rng.random() < 0.3:
            program.insert(2, make(Opcode.GEMM, **{**values, "uop_end": ends["uop_begin"]}))
        await bench.run(program)


@cocotb.test()
async def gemm_rate(dut: Any) -> None:
    """One micro-op a cycle inside an instruction and from one to the next."""
    bench = await bench_of(dut)
    load, ends = bench.uop_load(gemm_uops(bench, [0, 0, 1, 0, 2, 2, 2, 1]))
    insn = make(Opcode.GEMM, **ends, iter_out=2, iter_in=5, dst_factor_in=1)
    await bench.run([load])
    bench.pulses = True
    log = await bench.run([insn] * 4)
    pulses = log.pulses["gemmUop"]
    assert len(pulses) == 4 * 80
    assert pulses[-1] - pulses[0] == 4 * 80 - 1, f"{pulses[-1] - pulses[0] + 1} cycles for 320 micro-ops"


def alu_cases() -> list[tuple[AluOpcode, int | None]]:
    """Opcode and immediate (None: tensor form)."""
    ops = [op for op in AluOpcode if op < AluOpcode.MAC or CONFIG.has("alu_plus")]
    cases: list[tuple[AluOpcode, int | None]] = []
    for op in ops:
        if op is AluOpcode.RSHR:
            cases += [(op, k | mode) for k in (0, 1, 2, 8, 30, 31) for mode in (0, -0x8000)] + [(op, None)]
        elif op is AluOpcode.SHR:
            cases += [(op, k) for k in (0, 1, -1, 7, 16, 31, 32, 33, -31, -32, -40, 32767, -32768)] + [(op, None)]
        else:
            cases += [(op, k) for k in (0, 1, -1, 100, -32768, 32767)] + [(op, None)]
    return cases


def acc_values(bench: ComputeBench, count: int) -> Any:
    """Corner values, small values and anything."""
    shape = bench.acc_shape(count)
    rng = bench.rng
    kinds = [rng.choice(CORNERS, shape), rng.integers(-40, 41, shape), rng.integers(*INT32, shape)]
    return np.choose(rng.integers(0, 3, shape), kinds)


def alu_insn(op: AluOpcode, imm: int | None, **values: int) -> Insn:
    """An ALU instruction; None is the tensor form (RSHR: half to even)."""
    form = {"use_imm": 1, "imm": imm} if imm is not None else {"imm": -0x8000 if op is AluOpcode.RSHR else 0}
    return make(Opcode.ALU, alu_opcode=int(op), **form, **values)


@cocotb.test()
async def alu_opcodes(dut: Any) -> None:
    """Every operation, immediate and tensor, over corner values; results of 0 to 6 operations ago are used."""
    bench = await bench_of(dut)
    window = 12
    for number, (op, imm) in enumerate(alu_cases()):
        bench.timing = SLOW if number % 4 == 3 else IDEAL
        distance = number % 7
        uops = [(k % window, (k - distance) % window) for k in range(20)]
        load, ends = bench.uop_load(uops)
        program = [bench.acc_load(0, acc_values(bench, 16)), load, alu_insn(op, imm, **plain(), **ends, **sat(bench))]
        await bench.run(program)


@cocotb.test()
async def alu_mixed(dut: Any) -> None:
    """Instructions of different operations one after the other, all dependent on each other."""
    bench = await bench_of(dut)
    cases = alu_cases()
    for round_ in range(12 if FULL else 4):
        bench.timing = SLOW if round_ % 3 == 2 else IDEAL
        spread = bench.random.choice((1, 2, 3, 8))
        uops = [(bench.random.randrange(spread), bench.random.randrange(spread)) for _ in range(16)]
        load, ends = bench.uop_load(uops)
        program = [bench.acc_load(0, acc_values(bench, 8)), load]
        for _ in range(12):
            op, imm = bench.random.choice(cases)
            first = ends["uop_begin"] + bench.random.randrange(16)
            last = min(ends["uop_end"], first + bench.random.choice((1, 2, 5)))
            program.append(alu_insn(op, imm, **plain(uop_begin=first, uop_end=last), **sat(bench)))
        await bench.run(program)


@cocotb.test()
async def alu_rate(dut: Any) -> None:
    """One immediate operation a cycle, a tensor operation in two, a multiplication in ``requant_cycles``."""
    bench = await bench_of(dut)
    load, ends = bench.uop_load([(k, k) for k in range(16)])
    await bench.run([load])
    bench.pulses = True
    cycles = max(1, CONFIG.requant_cycles)
    cases = [(AluOpcode.MAX, 3, 1), (AluOpcode.ADD, None, 2), (AluOpcode.SHR, 2, 1), (AluOpcode.MUL, 3, cycles)]
    if CONFIG.has("alu_plus"):
        cases.append((AluOpcode.MOV, 3, 1))
    for op, imm, each in cases:
        log = await bench.run(
            [alu_insn(op, imm, **ends, iter_out=1, iter_in=2, dst_factor_in=16, src_factor_in=16)] * 2
        )
        pulses = log.pulses["aluUop"]
        assert len(pulses) == 64
        # The second instruction uses what the first wrote 32 operations before.
        assert pulses[-1] - pulses[0] <= 63 * each, f"{op.name}: {pulses[-1] - pulses[0]} cycles"


def requant_params(bench: ComputeBench, mode: RequantMode, unsigned: bool, kind: int) -> list[RequantParams]:
    """Parameters of every lane: corners, usual scales, or anything."""
    rng = bench.random
    found = []
    for _ in range(CONFIG.lanes):
        if mode is RequantMode.FLOAT32:
            exponent = (
                rng.choice((0, 1, 90, 126, 127, 130, 150, 151, 200, 254, 255)) if kind == 0 else rng.randrange(95, 135)
            )
            fraction = rng.choice((0, 1, 0x400000, 0x7FFFFF)) if kind == 0 else rng.randrange(1 << 23)
            multiplier, shift = exponent << 23 | fraction | rng.randrange(2) << 31, rng.randrange(64)
        elif kind == 0:
            multiplier = rng.choice(
                (0, 1, 2, 3, 0x3FFFFFFF, 0x40000000, 0x40000001, 0x7FFFFFFF, 0x80000001, 0xFFFFFFFF)
            )
            shift = rng.choice((0, 1, 2, 7, 30, 31, 32, 33, 46, 61, 62, 63))
        elif kind == 1:
            multiplier, shift = rng.randrange(1 << 30, 1 << 31), rng.randrange(31, 50)
        else:
            multiplier, shift = rng.randrange(1 << 32), rng.randrange(64)
        low, high = (0, 255) if unsigned else (-128, 127)
        bounds = [low, high] if kind == 1 else [rng.randint(low, high), rng.randint(low, high)]
        bias = rng.choice((0, 1, -1, *INT32)) if kind == 0 else rng.randint(-(1 << 20), 1 << 20)
        found.append(RequantParams(bias, multiplier, shift, rng.randint(low, high), bounds[0], bounds[1]))
    return found


def requant_values(bench: ComputeBench, kind: int, count: int) -> Any:
    """Accumulators that fit the kind of parameters."""
    shape = bench.acc_shape(count)
    if kind == 1:
        return bench.rng.integers(-(1 << 22), 1 << 22, shape)
    return acc_values(bench, count)


@cocotb.test()
async def requant_modes(dut: Any) -> None:
    """Every mode over corner grids and random values, signed and unsigned, with and without the flags."""
    if not CONFIG.has("requant"):
        return
    bench = await bench_of(dut)
    count = min(CONFIG.acc_depth - 8, 56)
    flags: list[dict[str, int]] = [{}, {"clear": 1}, {"write_acc": 1}]
    rounds = 8 if FULL else 3
    for mode, unsigned, kind, turn in itertools.product(RequantMode, (False, True), range(3), range(rounds)):
        words = parameter_words(requant_params(bench, mode, unsigned, kind)).reshape(bench.acc_shape(3))
        program = [bench.acc_load(0, np.concatenate([words.astype(np.int64), requant_values(bench, kind, count)]))]
        program.append(
            make(
                Opcode.REQUANT, data_base=3, param_base=0, iter_out=1, iter_in=count, data_factor_in=1, mode=int(mode),
                unsigned_out=int(unsigned), **flags[turn % 3],
            )
        )  # fmt: skip
        await bench.run(program)


@cocotb.test()
async def requant_ties(dut: Any) -> None:
    """Halves, in every mode: small multipliers and shifts make ties on both sides of zero."""
    if not CONFIG.has("requant"):
        return
    bench = await bench_of(dut)
    count = min(CONFIG.acc_depth - 8, 56)
    for mode, shift in itertools.product(RequantMode, (0, 1, 2, 3, 5, 31, 32, 33, 36)):
        multiplier = 1 << 30 if shift >= 31 else 3
        if mode is RequantMode.FLOAT32:
            multiplier = (127 - shift % 8) << 23
        params = [RequantParams(k, multiplier, shift, 0, -128, 127) for k in range(CONFIG.lanes)]
        words = parameter_words(params).reshape(bench.acc_shape(3)).astype(np.int64)
        scale = 1 if shift < 31 else 1 << (shift - 31)
        data = np.arange(-count // 2, count - count // 2)[:, None, None] * scale + np.zeros(
            bench.acc_shape(count), np.int64
        )
        program = [bench.acc_load(0, np.concatenate([words, data]))]
        program.append(make(Opcode.REQUANT, data_base=3, iter_out=1, iter_in=count, data_factor_in=1, mode=int(mode)))
        await bench.run(program)


@cocotb.test()
async def requant_overlaps(dut: Any) -> None:
    """Data that repeat or are parameters themselves, and changing parameters; with clear, write_acc or neither."""
    if not CONFIG.has("requant"):
        return
    bench = await bench_of(dut)
    rng = bench.random
    flags: list[dict[str, int]] = [{}, {"clear": 1}, {"write_acc": 1}]
    for turn in range(60 if FULL else 12):
        bench.timing = rng.choice((IDEAL, SLOW))
        program = [bench.acc_load(0, acc_values(bench, 16))]
        for _ in range(3):
            values = {
                "data_base": rng.randrange(8), "data_factor_out": rng.randrange(3), "data_factor_in": rng.randrange(3),
                "param_base": rng.randrange(8), "param_factor_out": rng.randrange(3),
                "param_factor_in": rng.choice((0, 0, 1)), "iter_out": rng.randrange(4), "iter_in": rng.randrange(5),
                "mode": rng.randrange(len(RequantMode)), "unsigned_out": rng.randrange(2), **flags[turn % 3],
            }  # fmt: skip
            program.append(make(Opcode.REQUANT, **values))
        await bench.run(program)


@cocotb.test()
async def requant_rate(dut: Any) -> None:
    """An element in ``requant_cycles`` cycles."""
    if not CONFIG.has("requant"):
        return
    bench = await bench_of(dut)
    bench.pulses = True
    half = min(16, (CONFIG.acc_depth - 3) // 2)
    insn = make(Opcode.REQUANT, data_base=3, iter_out=2, iter_in=half, data_factor_out=half, data_factor_in=1, mode=0)
    for extra in ({}, {"clear": 1}, {"write_acc": 1}):
        log = await bench.run([make(Opcode.REQUANT, **insn.fields, **extra)])
        pulses = log.pulses["requantVector"]
        assert len(pulses) == 2 * half
        cycles = pulses[-1] - pulses[0]
        assert cycles == (2 * half - 1) * CONFIG.requant_cycles, f"{cycles} cycles for {2 * half - 1} elements"


@cocotb.test()
async def overlap_rate(dut: Any) -> None:
    """REQUANT and loads work beside GEMM, which keeps one micro-op a cycle across them; what they touch waits."""
    bench = await bench_of(dut)
    bench.pulses = True
    span = min(8, (CONFIG.acc_depth - 8) // 2)
    # Runs of four micro-ops for elements 0 .. span-1; REQUANT has the tile behind them.
    load, ends = bench.uop_load(gemm_uops(bench, [k // 4 for k in range(4 * span)]))
    near = make(Opcode.GEMM, **plain(iter_in=2), **ends)
    requant = make(
        Opcode.REQUANT, data_base=span, param_base=2 * span, iter_out=1, iter_in=span, data_factor_in=1, clear=1
    )
    fill = bench.acc_load(0, acc_values(bench, 2 * span + 3))
    params = bench.acc_load(2 * span, acc_values(bench, 3))
    beside = [params, requant] if CONFIG.has("requant") else [params]
    await bench.run([fill, load])
    log = await bench.run([near, *beside, near, near])
    pulses = log.pulses["gemmUop"]
    assert len(pulses) == 3 * 8 * span
    assert pulses[-1] - pulses[0] == len(pulses) - 1, f"{pulses[-1] - pulses[0] + 1} cycles for {len(pulses)} micro-ops"
    if CONFIG.has("requant"):
        assert log.pulses["requantVector"][0] < pulses[-1], "REQUANT did not run beside GEMM"
    # The same REQUANT on the elements of the GEMM behind it: that one waits for every element.
    if CONFIG.has("requant"):
        same = make(Opcode.REQUANT, **{**requant.fields, "data_base": 0})
        for timing in (IDEAL, SLOW):
            bench.timing = timing
            for spread in (1, 3):
                log = await bench.run([near, same, near, params, requant, near] * spread)


class ComputePrograms(Generator):
    """Random programs of the compute unit alone, on elements with known contents."""

    def _gemm(self) -> None:
        c = self.config
        loops = self._loops({"dst": self.window, "src": min(SPAN, c.inp_depth), "wgt": min(SPAN, c.wgt_depth)})
        self.drafts.append(_Draft(Opcode.GEMM, {**loops, **self._sat(), "reset": self._maybe(0.2)}))

    def draw(self, length: int) -> tuple[list[Insn], list[int]]:
        """About ``length`` instructions and the micro-ops they load from address 0 on."""
        kinds = [self._load_acc, self._gemm, self._gemm, self._alu, self._alu]
        if self.config.has("requant"):
            kinds.append(self._requant)
        while len(self.drafts) < length:
            kinds[int(self.rng.integers(len(kinds)))]()
        for draft in self.drafts:
            for flag in ("pop_prev", "pop_next", "push_prev", "push_next"):
                if self._maybe(0.25):
                    draft.values[flag] = 1
            if draft.values.get("dram_base", 0) * self.config.acc_bytes > 1 << 14 and draft.opcode is Opcode.LOAD:
                draft.values["dram_base"] %= 64
        return [make(draft.opcode, **draft.values) for draft in self.drafts], self.uops


@cocotb.test()
async def random_programs(dut: Any) -> None:
    """Random instructions of every kind with random tokens and memory timing."""
    bench = await bench_of(dut)
    for turn in range(12 if FULL else 3):
        bench.timing = (IDEAL, SLOW, Timing(insn_gap=0.8, token_gap=0.1, stall=0.1, gap=0.7, latency=60))[turn % 3]
        program, uops = ComputePrograms(CONFIG, bench.rng).draw(40)
        bench.areas.parts[UOP_BASE][: 4 * len(uops)] = np.array(uops, "<u4").tobytes()
        acc = bench.areas.parts[ACC_BASE]
        acc[: 1 << 14] = bench.rng.integers(0, 256, min(len(acc), 1 << 14), dtype=np.uint8).tobytes()
        await bench.run(program)


@cocotb.test()
async def out_read(dut: Any) -> None:
    """The store unit's port gives consecutive elements of out, one read a cycle, from any index on."""
    bench = await bench_of(dut)
    load, ends = bench.uop_load([(0, 0)])
    count = min(SPAN, CONFIG.acc_depth)
    await bench.run(
        [load, alu_insn(AluOpcode.ADD, 0, **ends, iter_out=1, iter_in=count, dst_factor_in=1, src_factor_in=1)]
    )
    elems = max(1, CONFIG.axi_data_bytes // CONFIG.out_bytes)
    before: int | None = None
    for _ in range(200):
        index = bench.random.randrange(count - elems + 1)
        dut.io_outRead_index.value, dut.io_outRead_enable.value = index, 1
        await RisingEdge(dut.clock)
        if before is not None:
            raw = value(dut.io_outRead_data).to_bytes(elems * CONFIG.out_bytes, "little")
            got = CONFIG.out_type.unpack(np.frombuffer(raw, np.uint8)).reshape(bench.acc_shape(elems))
            assert np.array_equal(got, bench.naive.out[before : before + elems]), f"out[{before}] = {got.tolist()}"
        before = index
    dut.io_outRead_enable.value = 0


def range_faults(config: HardwareConfig) -> list[tuple[Sequence[tuple[int, ...]], Insn]]:
    """Micro-ops and instructions that leave a scratchpad by one, or by far more than an index can say."""
    a, i, w = config.acc_depth, config.inp_depth, config.wgt_depth
    far = (1 << 14) - 1
    one = plain(uop_begin=0, uop_end=1)
    cases: list[tuple[Sequence[tuple[int, ...]], Insn]] = [
        ([(a - 1, 0, 0)], make(Opcode.GEMM, **{**one, "iter_in": 2}, dst_factor_in=1)),
        ([(a - 1, 0, 0)], make(Opcode.GEMM, **{**one, "iter_in": 2}, dst_factor_in=1, reset=1)),
        ([(0, i - 1, 0)], make(Opcode.GEMM, **{**one, "iter_out": 2}, src_factor_out=1)),
        ([(0, 0, w - 1)], make(Opcode.GEMM, **{**one, "iter_in": 2}, wgt_factor_in=1)),
        ([(0, 0, 0)], make(Opcode.GEMM, uop_begin=0, uop_end=1, iter_out=far, iter_in=1, wgt_factor_out=w - 1)),
        ([(0, 0, 0)], make(Opcode.GEMM, uop_begin=0, uop_end=1, iter_out=1, iter_in=far, src_factor_in=i // 2)),
        ([(a - 1, 0)], alu_insn(AluOpcode.ADD, 1, **{**one, "iter_in": 2}, dst_factor_in=1)),
        ([(0, a - 1)], alu_insn(AluOpcode.MAX, None, **{**one, "iter_out": 2}, src_factor_out=1)),
    ]
    if config.has("requant"):
        cases += [
            ([(0,)], make(Opcode.REQUANT, data_base=a - 1, iter_out=1, iter_in=2, data_factor_in=1)),
            ([(0,)], make(Opcode.REQUANT, param_base=a - 2, iter_out=1, iter_in=1)),
            ([(0,)], make(Opcode.REQUANT, param_base=0, iter_out=2, iter_in=1, param_factor_out=a - 1)),
            ([(0,)], make(Opcode.REQUANT, data_base=0, iter_out=far, iter_in=1, data_factor_out=a // 2)),
        ]
    return cases


@cocotb.test()
async def index_range(dut: Any) -> None:
    """What is out of range is an error of that instruction; those before retire, those after do not start."""
    bench = await bench_of(dut)
    for uops, insn in range_faults(CONFIG):
        await bench.reset()
        load, ends = bench.uop_load(uops, place=0)
        fine = make(Opcode.GEMM, **plain(**ends), reset=1) if len(uops[0]) > 2 else load
        first = bench.index
        log = await bench.drive([load, fine, insn, load], bound=100_000, until=4, extra=20)
        assert log.retired == [first, first + 1], f"{insn}: retired {log.retired} from {first} on"
        assert len(log.errors) == 1 and log.errors[0]["cause"] == Cause.INDEX_RANGE, f"{insn}: {log.errors}"
        assert log.errors[0]["index"] == first + 2
    await bench.reset()
    if CONFIG.has("alu_plus"):  # nothing is read from src: it may be anything
        bench.forget()
        load, ends = bench.uop_load([(1, CONFIG.acc_depth - 1)])
        move = alu_insn(AluOpcode.MOV, 7, iter_out=1, iter_in=3, src_factor_in=1, **ends)
        await bench.run([bench.acc_load(0, acc_values(bench, min(SPAN, CONFIG.acc_depth))), load, move])


@cocotb.test()
async def bus_fault(dut: Any) -> None:
    """A read error is reported with its channel and address, and nothing retires."""
    bench = await bench_of(dut)
    load, _ = bench.uop_load([(0, 0, 0)] * 8)
    beat = (UOP_BASE + 4 * load["dram_base"]) // CONFIG.axi_data_bytes * CONFIG.axi_data_bytes
    bench.ports[0].faults.add(beat)
    log = await bench.drive([load, load], bound=2000, until=2, extra=40)
    assert log.retired == []
    assert [(e["cause"], e["channel"], e["address"]) for e in log.errors] == [(Cause.BUS_READ, 1, beat)], log.errors


@cocotb.test()
async def finish_waits(dut: Any) -> None:
    """FINISH takes its tokens, then waits until all is quiet; a second run needs no reset."""
    bench = await bench_of(dut)
    bench.timing = SLOW
    for _ in range(2):
        load, ends = bench.uop_load(gemm_uops(bench, [1, 2, 3]))
        program = [load, make(Opcode.GEMM, **plain(**ends), push_next=1), make(Opcode.FINISH, pop_prev=1, pop_next=1)]
        log = await bench.drive(program, bound=3000, until=3, quiet_after=400)
        assert log.finished == 1 and len(log.retired) == 3 and log.cycles >= 400
        assert log.pops == [1, 1] and log.pushes == [0, 1]


@cocotb.test()
async def halt_stops(dut: Any) -> None:
    """After halt nothing starts or retires, and reads in flight are taken."""
    bench = await bench_of(dut)
    load, ends = bench.uop_load(gemm_uops(bench, [1, 2, 3, 4]))
    long = make(Opcode.GEMM, **ends, iter_out=1000, iter_in=10)
    await bench.run([load])
    bench.pulses = True

    async def stop() -> None:
        for _ in range(200):
            await RisingEdge(dut.clock)
        dut.io_halt.value = 1

    cocotb.start_soon(stop())
    try:
        await bench.drive([long, load], bound=600, until=2)
    except AssertionError as error:
        assert "0 of 2 retired" in str(error), error
    else:
        raise AssertionError("retired after halt")
