# SPDX-License-Identifier: Apache-2.0
"""Small recorded sessions for a vendor's C simulation: every unit and every built extension, results from fsim."""

from __future__ import annotations

import numpy as np

from openvta.sim.fsim.machine import Machine
from openvta.sim.hls.session import Session
from openvta.sim.memory import DeviceMemory
from openvta.spec import AluOpcode, HardwareConfig, Insn, MemId, Opcode, Program, RequantMode, make
from openvta.spec.insn import isa_of

BASE = 0x1000_0000
AREA = 1 << 14
NAMES = ("insn", "uop", "inp", "wgt", "acc", "out")
SEED = 20
ROWS = 4


def _load(memory: MemId, count: int, sram: int = 0, dram: int = 0, **fields: int) -> Insn:
    values = {
        "memory_id": int(memory),
        "sram_base": sram,
        "dram_base": dram,
        "y_size": 1,
        "x_size": count,
        "x_stride": count,
    }
    return make(Opcode.LOAD, **{**values, **fields})


def _store(count: int, dram: int = 0, **fields: int) -> Insn:
    values = {"memory_id": int(MemId.OUT), "dram_base": dram, "y_size": 1, "x_size": count, "x_stride": count}
    return make(Opcode.STORE, **{**values, **fields})


def _gemm() -> list[Insn]:
    loops = {"uop_begin": 0, "uop_end": 1, "iter_out": 1, "iter_in": ROWS, "dst_factor_in": 1}
    return [
        _load(MemId.INP, ROWS),
        _load(MemId.WGT, 1, push_next=1),
        _load(MemId.UOP, 1, pop_prev=1),
        make(Opcode.GEMM, **loops, reset=1),
        make(Opcode.GEMM, **loops, src_factor_in=1, push_next=1),
        _store(ROWS, pop_prev=1),
    ]


def _alu(config: HardwareConfig) -> list[Insn]:
    loops = {"uop_begin": 0, "uop_end": 1, "iter_out": 1, "iter_in": ROWS, "dst_factor_in": 1, "src_factor_in": 1}
    opcodes = (AluOpcode.MIN, AluOpcode.MAX, AluOpcode.ADD, AluOpcode.SHR, AluOpcode.MUL)
    extra = (AluOpcode.MAC, AluOpcode.RSHR, AluOpcode.MOV) if config.has("alu_plus") else ()
    insns = [_load(MemId.UOP, 1), _load(MemId.ACC, ROWS)]
    insns += [make(Opcode.ALU, **loops, alu_opcode=int(op), use_imm=1, imm=5) for op in (*opcodes, *extra)]
    return [*insns[:-1], make(Opcode.ALU, **{**insns[-1].fields, "push_next": 1}), _store(ROWS, pop_prev=1)]


def _requant() -> list[Insn]:
    insns = [_load(MemId.ACC, ROWS + 3)]
    for mode in RequantMode:
        last = mode is max(RequantMode)
        fields = {"data_base": 0, "param_base": ROWS, "iter_out": 1, "iter_in": ROWS, "data_factor_in": 1}
        insns.append(make(Opcode.REQUANT, **fields, mode=int(mode), write_acc=1, push_next=int(last)))
    return [*insns, _store(ROWS, pop_prev=1)]


def sample_sessions(config: HardwareConfig) -> dict[str, Session]:
    """Sessions by name."""
    programs = {"gemm": _gemm(), "alu": _alu(config)}
    if config.has("requant"):
        programs["requant"] = _requant()
    return {name: _record(config, insns, number) for number, (name, insns) in enumerate(programs.items())}


def _record(config: HardwareConfig, insns: list[Insn], number: int) -> Session:
    program = Program.assemble(config, [*insns, make(Opcode.FINISH)])
    rng = np.random.default_rng([SEED, number])
    memory = DeviceMemory()
    memory.map(BASE, AREA * len(NAMES))
    bases = {name: BASE + AREA * place for place, name in enumerate(NAMES)}
    contents = {name: rng.integers(0, 256, AREA, dtype=np.uint8) for name in NAMES}
    contents["insn"][: 16 * len(program)] = np.frombuffer(program.to_bytes(), np.uint8)
    first = isa_of(config).uop.encode({})
    contents["uop"][:4] = np.array([first], "<u4").view(np.uint8)
    session = Session(BASE, AREA * len(NAMES))
    for name, data in contents.items():
        memory.write(bases[name], data)
        session.put(bases[name], data.tobytes())
    regions = {name: address for name, address in bases.items() if name != "insn"}
    session.launch(bases["insn"], len(program), regions)
    outcome = Machine(config, memory).run(bases["insn"], len(program), regions)
    if outcome.fault is not None:
        raise RuntimeError(f"sample session: {outcome.fault.detail}")
    session.expect(bases["out"], memory.read(bases["out"], AREA).tobytes())
    session.expect_register("COUNTER_INSNS_RETIRED", len(program))
    return session
