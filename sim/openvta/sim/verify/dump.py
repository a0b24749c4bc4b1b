# SPDX-License-Identifier: Apache-2.0
"""Programs that bring the contents of acc and out to device memory, where both sides are compared.

What inp, wgt and uop hold is compared as it is written, and used by what follows; it has no way out of the core.
"""

from __future__ import annotations

from openvta.spec import AluOpcode, HardwareConfig, Insn, MemId, Opcode, Program, make


def _uop() -> Insn:
    """A micro-op of zeros, as padding."""
    return make(Opcode.LOAD, memory_id=int(MemId.UOP), y_size=1, x_size=1, x_stride=1, x_pad_0=1)


def _store(config: HardwareConfig, **tokens: int) -> Insn:
    depth = config.acc_depth
    return make(Opcode.STORE, memory_id=int(MemId.OUT), y_size=1, x_size=depth, x_stride=depth, **tokens)


def dump_programs(config: HardwareConfig) -> list[Program]:
    """The first stores out as it is; each further one moves the next bits of acc to out, and stores them.

    Afterwards acc holds nothing of what it held.
    """
    depth = config.acc_depth
    inner = min(16, depth // 2)
    programs = [Program.assemble(config, [_store(config), make(Opcode.FINISH)])]
    for step in range(config.acc_bits // config.out_bits):
        shift = make(
            Opcode.ALU, alu_opcode=int(AluOpcode.SHR), use_imm=1, imm=config.out_bits if step else 0, uop_begin=0,
            uop_end=1, iter_out=depth // inner, iter_in=inner, dst_factor_out=inner, dst_factor_in=1,
            src_factor_out=inner, src_factor_in=1, push_next=1,
        )  # fmt: skip
        insns = [_uop(), shift, _store(config, pop_prev=1), make(Opcode.FINISH)]
        programs.append(Program.assemble(config, insns))
    return programs
