# SPDX-License-Identifier: Apache-2.0
"""REQUANT: every rounding mode, parameters a lane and a block, clear and write back, interlocks with its neighbours."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from conformance.programs.builder import Builder, Ints, Maker, program
from openvta.spec import MemId, Opcode, RequantMode
from openvta.spec.arith import RequantParams, float32_bits, requant

PARAMS = 3


@dataclass(frozen=True)
class Parameters:
    """Parameters of every lane of an element: ``lanes`` ``[batch * block]``."""

    lanes: tuple[RequantParams, ...]

    def elements(self, b: Builder) -> npt.NDArray[np.int64]:
        """The three acc elements: int64 ``[3, batch, block]``."""
        words = np.array([lane.words() for lane in self.lanes], np.int64).T
        return words.reshape(PARAMS, b.c.batch, b.c.block)

    def apply(self, mode: RequantMode, acc: Ints) -> Ints:
        """The results for one element ``[batch, block]``."""
        flat = acc.reshape(-1).tolist()
        return np.array([requant(mode, x, lane) for x, lane in zip(flat, self.lanes, strict=True)]).reshape(acc.shape)


def draw(b: Builder, mode: RequantMode, *, unsigned: bool = False) -> Parameters:
    """Random parameters that keep many results inside the clamp."""
    low, high = (0, 255) if unsigned else (-128, 127)
    lanes = []
    for _ in range(b.c.lanes):
        shift = int(b.rng.integers(0, 12)) + (31 if mode in (RequantMode.TFLITE_DOUBLE, RequantMode.TFLITE_RUY) else 0)
        multiplier = int(b.rng.integers(1 << 30, 1 << 31)) if shift >= 31 else int(b.rng.integers(1, 8))
        if mode is RequantMode.FLOAT32:
            multiplier = float32_bits(float(np.float32(b.rng.uniform(0.001, 0.5))))
        ends = sorted(int(x) for x in b.rng.integers(low, high + 1, 2)) if b.rng.integers(0, 3) == 0 else (low, high)
        lanes.append(
            RequantParams(
                bias=int(b.rng.integers(-2000, 2001)),
                multiplier=multiplier,
                shift=shift,
                zero_point=int(b.rng.integers(low, high + 1)) // 4,
                low=ends[0],
                high=ends[1],
            )
        )
    return Parameters(tuple(lanes))


def plain(b: Builder) -> Parameters:
    """Multiplier 1, no shift: the clamped value."""
    return Parameters(tuple(RequantParams(0, 1, 0, 0, -128, 127) for _ in range(b.c.lanes)))


def accumulators(b: Builder, count: int) -> Ints:
    """Numbers of the size sums of products have, with ties among them."""
    values = b.rng.integers(-4000, 4001, (count, b.c.batch, b.c.block))
    values[:, :, ::2] &= ~7
    return values


def _mode(mode: RequantMode) -> Maker:
    def maker(b: Builder) -> None:
        values, parameters = accumulators(b, 6), draw(b, mode)
        values[0, 0, :2] = (-(1 << 31), (1 << 31) - 1)
        b.load(MemId.ACC, 0, values)
        b.load(MemId.ACC, 8, parameters.elements(b))
        b.op(Opcode.REQUANT, data_base=0, param_base=8, iter_out=1, iter_in=6, data_factor_in=1, mode=mode)
        b.store(0, np.stack([parameters.apply(mode, element) for element in values]))
        b.dump(0, values)

    return maker


for _item in RequantMode:
    program("requant", name=f"requant_{_item.name.lower()}")(_mode(_item))


@program("requant")
def requant_unsigned(b: Builder) -> None:
    values, parameters = accumulators(b, 4), draw(b, RequantMode.HALF_EVEN, unsigned=True)
    b.load(MemId.ACC, 0, values)
    b.load(MemId.ACC, 8, parameters.elements(b))
    b.op(
        Opcode.REQUANT, data_base=0, param_base=8, iter_out=4, iter_in=1, data_factor_out=1, mode=1,
        unsigned_out=1, write_acc=1,
    )  # fmt: skip
    results = np.stack([parameters.apply(RequantMode.HALF_EVEN, element) for element in values])
    b.store(0, results)
    b.dump(0, results & ((1 << b.c.out_bits) - 1))


@program("requant")
def requant_writes_acc(b: Builder) -> None:
    values, parameters = accumulators(b, 4), draw(b, RequantMode.HALF_UP)
    b.load(MemId.ACC, 0, values)
    b.load(MemId.ACC, 8, parameters.elements(b))
    b.op(Opcode.REQUANT, param_base=8, iter_out=2, iter_in=2, data_factor_out=2, data_factor_in=1, write_acc=1)
    results = np.stack([parameters.apply(RequantMode.HALF_UP, element) for element in values])
    b.store(0, results)
    b.dump(0, b.narrow(results))


@program("requant")
def requant_clears(b: Builder) -> None:
    values, parameters = accumulators(b, 4), draw(b, RequantMode.FLOOR)
    b.load(MemId.ACC, 0, values)
    b.load(MemId.ACC, 8, parameters.elements(b))
    b.op(Opcode.REQUANT, param_base=8, iter_out=1, iter_in=3, data_factor_in=1, mode=5, clear=1)
    b.store(0, np.stack([parameters.apply(RequantMode.FLOOR, element) for element in values[:3]]))
    values[:3] = 0
    b.dump(0, values)


@program("requant")
def requant_parameters_of_every_block(b: Builder) -> None:
    """The outer loop steps to the next parameters; the inner loop walks the block's elements."""
    values = accumulators(b, 9)
    sets = [draw(b, RequantMode.HALF_EVEN) for _ in range(3)]
    b.load(MemId.ACC, 1, values)
    b.load(MemId.ACC, 12, np.concatenate([each.elements(b) for each in sets]))
    b.op(
        Opcode.REQUANT, data_base=1, param_base=12, iter_out=3, iter_in=3, data_factor_out=3, data_factor_in=1,
        param_factor_out=3, mode=1,
    )  # fmt: skip
    results = [sets[n // 3].apply(RequantMode.HALF_EVEN, values[n]) for n in range(9)]
    b.store(1, np.stack(results))


@program("requant")
def requant_parameters_of_every_element(b: Builder) -> None:
    """The inner loop steps to other parameters each time."""
    values = accumulators(b, 6)
    sets = [draw(b, RequantMode.HALF_UP) for _ in range(2)]
    b.load(MemId.ACC, 0, values)
    b.load(MemId.ACC, 8, np.concatenate([each.elements(b) for each in sets]))
    b.op(
        Opcode.REQUANT, param_base=8, iter_out=3, iter_in=2, data_factor_out=2, data_factor_in=1, param_factor_in=3
    )  # fmt: skip
    b.store(0, np.stack([sets[n % 2].apply(RequantMode.HALF_UP, values[n]) for n in range(6)]))


@program("requant")
def requant_nothing(b: Builder) -> None:
    values = accumulators(b, 2)
    b.load(MemId.ACC, 0, values)
    b.copy(0, 0, 2)
    b.load(MemId.ACC, 8, plain(b).elements(b))
    b.op(Opcode.REQUANT, param_base=8, iter_out=0, iter_in=2, data_factor_in=1, clear=1)
    b.op(Opcode.REQUANT, param_base=8, iter_out=2, iter_in=0, data_factor_in=1, clear=1)
    b.store(0, values)
    b.dump(0, values)


@program("requant")
def requant_between_gemms(b: Builder) -> None:
    """GEMM, REQUANT with clear and GEMM again on the same elements, without a pause."""
    inp, wgt = b.random(MemId.INP, 4), b.random(MemId.WGT, 2)
    b.load(MemId.INP, 0, inp)
    b.load(MemId.WGT, 0, wgt)
    parameters = draw(b, RequantMode.HALF_EVEN)
    b.load(MemId.ACC, 8, parameters.elements(b))
    b.zero(0, 4)
    words = b.uops([(0, 0, 0), (0, 0, 1)])
    begin = words["uop_begin"]
    span = {"iter_out": 1, "iter_in": 4, "dst_factor_in": 1, "src_factor_in": 1}
    b.op(Opcode.GEMM, uop_begin=begin, uop_end=begin + 2, **span)
    b.op(Opcode.REQUANT, param_base=8, iter_out=1, iter_in=4, data_factor_in=1, mode=1, clear=1)
    b.op(Opcode.GEMM, uop_begin=begin + 1, uop_end=begin + 2, **span)
    both = np.stack([x @ wgt[0].T + x @ wgt[1].T for x in inp])
    second = np.stack([x @ wgt[1].T for x in inp])
    b.store(0, second)
    b.dump(0, second)
    b.load(MemId.ACC, 0, both)
    b.op(Opcode.REQUANT, param_base=8, iter_out=1, iter_in=4, data_factor_in=1, mode=1, clear=1)
    b.store(0, np.stack([parameters.apply(RequantMode.HALF_EVEN, element) for element in both]))


@program("requant")
def requant_reads_fresh_parameters(b: Builder) -> None:
    """Parameters that an ALU operation has just written."""
    values, parameters = accumulators(b, 3), draw(b, RequantMode.FLOOR)
    b.load(MemId.ACC, 0, values)
    b.load(MemId.ACC, 8, parameters.elements(b))
    b.copy(16, 8, PARAMS)
    b.op(Opcode.REQUANT, param_base=16, iter_out=1, iter_in=3, data_factor_in=1, mode=5)
    b.store(0, np.stack([parameters.apply(RequantMode.FLOOR, element) for element in values]))


@program("requant")
def requant_last_indices(b: Builder) -> None:
    c = b.c
    values = accumulators(b, 1)
    b.load(MemId.ACC, c.acc_depth - 4, values)
    b.load(MemId.ACC, c.acc_depth - 3, plain(b).elements(b))
    b.op(Opcode.REQUANT, data_base=c.acc_depth - 4, param_base=c.acc_depth - 3, iter_out=1, iter_in=1)
    b.store(c.acc_depth - 4, np.clip(values, -128, 127))
