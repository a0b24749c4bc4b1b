# SPDX-License-Identifier: Apache-2.0
"""Micro-programs with their memory and the memory they must leave.

A program is written against a :class:`Builder`, which knows a configuration. Everything a program stores comes with
the values that must arrive; the rest of the output region must keep its filler. ``serial`` programs get their tokens
from the builder (every change of unit is a hand-over); the others set token flags themselves.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from openvta.spec import HardwareConfig, Insn, MemId, Opcode, Program, Unit, encode, make
from openvta.spec.bundle import ALIGNMENT, Bundle, Segment
from openvta.spec.dtypes import DType
from openvta.spec.insn import isa_of

Ints = npt.NDArray[np.int64]
UopWords = Sequence[tuple[int, int, int]]

FILLER = 0xA5
INT32_MIN, INT32_MAX = -(1 << 31), (1 << 31) - 1


@dataclass(frozen=True)
class Case:
    """A program ready to run: a bundle with one segment, and the bytes its output region must hold afterwards."""

    name: str
    bundle: Bundle
    out_offset: int
    expected: bytes

    @property
    def program(self) -> Program:
        """The instruction words."""
        return self.bundle.segments[0].program


class Builder:
    """Collects instructions, data and expectations; see the module."""

    def __init__(self, config: HardwareConfig, name: str) -> None:
        self.c = config
        self.name = name
        self.serial = True
        self.rng = np.random.default_rng(zlib.crc32(name.encode()))
        self.extra: dict[int, int] = {}
        self._insns: list[Insn] = []
        self._data = {memory: bytearray() for memory in ("uop", "inp", "wgt", "acc")}
        self._out = 1
        self._expected: dict[int, bytes] = {}
        self._uop_next = 0

    # data ----------------------------------------------------------------------------------------

    def lanes(self, memory: MemId) -> tuple[DType, tuple[int, int], str]:
        """Lane type, shape of an element, and region of a memory id."""
        c = self.c
        narrow = (c.batch, c.block)
        return {
            MemId.UOP: (DType(32, signed=False), (1, 1), "uop"),
            MemId.INP: (c.inp_type, narrow, "inp"),
            MemId.WGT: (c.wgt_type, (c.block, c.block), "wgt"),
            MemId.ACC: (c.acc_type, narrow, "acc"),
            MemId.OUT: (c.out_type, narrow, "out"),
            MemId.ACC_INT8: (DType(8), narrow, "acc"),
            MemId.ACC_UINT8: (DType(8, signed=False), narrow, "acc"),
        }[memory]

    def random(self, memory: MemId, count: int) -> Ints:
        """Random elements over the lane type's whole range: int64 ``[count, rows, lanes]``."""
        kind, shape, _ = self.lanes(memory)
        return self.rng.integers(kind.minimum, kind.maximum + 1, (count, *shape))

    def place(self, memory: MemId, values: npt.ArrayLike) -> int:
        """Put elements into device memory, after a filler element; returns the element index for ``dram_base``."""
        kind, shape, region = self.lanes(memory)
        array = np.asarray(values, np.int64).reshape(-1, shape[0] * shape[1])
        size = shape[0] * shape[1] * kind.bits // 8
        data = self._data[region]
        data.extend(b"\x5a" * (size + -len(data) % size))
        index = len(data) // size
        data.extend(kind.pack(array).tobytes())
        return index

    def fill_to(self, memory: MemId, before: int) -> None:
        """Filler such that the next :meth:`place` starts ``before`` bytes in front of a multiple of 4096."""
        kind, shape, region = self.lanes(memory)
        size = shape[0] * shape[1] * kind.bits // 8
        data = self._data[region]
        data.extend(b"\x5a" * ((-before - size - len(data)) % 4096))

    def uop_words(self, uops: UopWords) -> list[int]:
        """Encoded micro-ops."""
        layout = isa_of(self.c).uop
        return [layout.encode({"dst": dst, "src": src, "wgt": wgt}) for dst, src, wgt in uops]

    # instructions --------------------------------------------------------------------------------

    def op(self, opcode: Opcode, **fields: int) -> None:
        """Append an instruction."""
        self._insns.append(make(opcode, **fields))

    def word_bits(self, mask: int) -> None:
        """Set further bits in the last instruction's word."""
        self.extra[len(self._insns) - 1] = mask

    def load(self, memory: MemId, sram: int, values: npt.ArrayLike, **fields: int) -> int:
        """Place elements and load them to consecutive scratchpad elements; ``fields`` override. Returns dram_base."""
        _, shape, _ = self.lanes(memory)
        count = np.asarray(values).size // (shape[0] * shape[1])
        base = self.place(memory, values)
        defaults = {"dram_base": base, "y_size": 1, "x_size": count, "x_stride": count}
        self.op(Opcode.LOAD, memory_id=int(memory), sram_base=sram, **{**defaults, **fields})
        return base

    def uops(self, uops: UopWords) -> dict[str, int]:
        """Load micro-ops to free places; returns ``uop_begin`` and ``uop_end``."""
        if self._uop_next + len(uops) > self.c.uop_depth:
            self._uop_next = 0
        begin = self._uop_next
        self._uop_next += len(uops)
        self.load(MemId.UOP, begin, self.uop_words(uops))
        return {"uop_begin": begin, "uop_end": begin + len(uops)}

    def gemm(self, uops: UopWords, **fields: int) -> None:
        """GEMM with its own micro-ops; loop counts default to 1."""
        self.op(Opcode.GEMM, **{**self.uops(uops), "iter_out": 1, "iter_in": 1, **fields})

    def alu(
        self, opcode: int, uops: Sequence[tuple[int, int]], imm: int | None = None, *, unused: int = 0, **fields: int
    ) -> None:
        """ALU with its own micro-ops (dst, src), immediate if ``imm`` is given; else the field holds ``unused``."""
        operand = {"imm": unused} if imm is None else {"use_imm": 1, "imm": imm}
        words = self.uops([(dst, src, 0) for dst, src in uops])
        self.op(Opcode.ALU, **{**words, "iter_out": 1, "iter_in": 1, "alu_opcode": opcode, **operand, **fields})

    def copy(self, dst: int, src: int, count: int, shift: int = 0) -> None:
        """acc[dst + i] = acc[src + i] >> shift (and out)."""
        self.alu(3, [(dst, src)], shift, iter_in=count, dst_factor_in=1, src_factor_in=1)

    def zero(self, first: int, count: int) -> None:
        """acc[first + i] = 0; out keeps what it has."""
        self.gemm([(first, 0, 0)], reset=1, iter_in=count, dst_factor_in=1)

    def store(self, sram: int, values: npt.ArrayLike, **fields: int) -> int:
        """Store consecutive out elements, which must hold ``values`` ``[n, batch, block]``. Returns dram_base."""
        count = np.asarray(values).size // self.c.lanes
        base = self.reserve(count)
        self.op(
            Opcode.STORE,
            **{"memory_id": int(MemId.OUT), "sram_base": sram, "dram_base": base, "y_size": 1}
            | {"x_size": count, "x_stride": count}
            | fields,
        )
        self.expect(base, values)
        return base

    def reserve(self, count: int) -> int:
        """Elements of the output region, with a filler element behind."""
        base = self._out
        self._out += count + 1
        return base

    def expect(self, base: int, values: npt.ArrayLike) -> None:
        """What output elements from ``base`` on must hold: lanes whose low bits count."""
        c = self.c
        array = np.asarray(values, np.int64).reshape(-1, c.lanes)
        narrow = self.narrow(array)
        for number, row in enumerate(c.out_type.pack(narrow)):
            self._expected[base + number] = row.tobytes()

    def narrow(self, values: npt.ArrayLike) -> Ints:
        """The low bits of lanes as signed values of the out type."""
        bits = self.c.out_bits
        array = np.asarray(values, np.int64) & ((1 << bits) - 1)
        return array - ((array >> (bits - 1)) << bits)

    def dump(self, first: int, values: npt.ArrayLike) -> None:
        """Check all bits of acc elements ``[n, batch, block]``: shifted copies at the end of acc, each stored."""
        array = np.asarray(values, np.int64).reshape(-1, self.c.batch, self.c.block)
        scratch = self.c.acc_depth - len(array)
        for shift in range(0, 32, self.c.out_bits):
            self.copy(scratch, first, len(array), shift)
            self.store(scratch, array >> shift)

    # result --------------------------------------------------------------------------------------

    def build(self) -> Case:
        """The program with tokens and FINISH, its image, and what it must leave."""
        insns = list(self._insns)
        extra = dict(self.extra)
        if not insns or insns[-1].opcode is not Opcode.FINISH:
            insns.append(make(Opcode.FINISH))
        if self.serial:
            insns, extra = serialised(insns, extra)
        words = tuple(encode(self.c, insn) | extra.get(at, 0) for at, insn in enumerate(insns))
        program = Program(self.c, words)
        pieces: list[tuple[int, bytes]] = []
        bases: dict[str, int] = {}
        at = _aligned(len(program) * 16)
        for region, data in self._data.items():
            bases[region] = at
            if data:
                pieces.append((at, bytes(data)))
            at += _aligned(len(data) + 1)
        out = bytearray([FILLER]) * ((self._out + 1) * self.c.out_bytes)
        bases["out"] = at
        pieces.append((at, bytes(out)))
        for index, data in self._expected.items():
            out[index * self.c.out_bytes : (index + 1) * self.c.out_bytes] = data
        bundle = Bundle(
            name=self.name,
            config=self.c,
            memory_bytes=at + _aligned(len(out)),
            image=tuple(pieces),
            bases=bases,
            tensors=(),
            segments=(Segment(program, 0),),
            steps=(),
            layers=(),
            inputs={},
            outputs={},
        )
        return Case(self.name, bundle, at, bytes(out))


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


def serialised(insns: Sequence[Insn], extra: dict[int, int]) -> tuple[list[Insn], dict[int, int]]:
    """Tokens at every change of unit, so that instructions run one after the other; load and store meet in compute."""
    result: list[Insn] = []
    moved: dict[int, int] = {}
    for at, insn in enumerate(insns):
        if result and {result[-1].unit, insn.unit} == {Unit.LOAD, Unit.STORE}:
            _hand_over(result, make(Opcode.LOAD, memory_id=int(MemId.UOP)))
        if at in extra:
            moved[len(result)] = extra[at]
        _hand_over(result, insn)
    return result, moved


def _hand_over(result: list[Insn], insn: Insn) -> None:
    if result and result[-1].unit != insn.unit:
        forward = insn.unit > result[-1].unit
        before = result[-1]
        result[-1] = Insn(before.opcode, {**before.fields, "push_next" if forward else "push_prev": 1})
        insn = Insn(insn.opcode, {**insn.fields, "pop_prev" if forward else "pop_next": 1})
    result.append(insn)


Maker = Callable[[Builder], None]


@dataclass(frozen=True)
class Entry:
    """A program of the catalogue and the extensions it needs."""

    make: Maker
    needs: frozenset[str]


CATALOGUE: dict[str, Entry] = {}


def program(*needs: str, name: str | None = None) -> Callable[[Maker], Maker]:
    """Register a program under its function's name."""

    def register(maker: Maker) -> Maker:
        key = name or maker.__name__
        if key in CATALOGUE:
            raise ValueError(f"program {key} is there twice")
        CATALOGUE[key] = Entry(maker, frozenset(needs))
        return maker

    return register


def build(config: HardwareConfig, name: str) -> Case:
    """One program of the catalogue for a configuration."""
    builder = Builder(config, name)
    CATALOGUE[name].make(builder)
    return builder.build()


def names(config: HardwareConfig) -> list[str]:
    """Programs a configuration can run."""
    return [name for name, entry in CATALOGUE.items() if entry.needs <= set(config.extensions)]
