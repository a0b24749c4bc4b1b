// SPDX-License-Identifier: Apache-2.0
// The static rules of the instruction set. Combinational.
#include "vta_decode.h"

namespace openvta {

namespace {

constexpr uint32_t code(Opcode value) { return static_cast<uint32_t>(value); }
constexpr uint32_t code(MemId value) { return static_cast<uint32_t>(value); }
constexpr uint32_t code(AluOpcode value) { return static_cast<uint32_t>(value); }

bool any(Word128 word, Word128 mask) { return (word.lo & mask.lo) != 0 || (word.hi & mask.hi) != 0; }

bool known_opcode(uint32_t opcode) {
    return opcode == code(Opcode::LOAD) || opcode == code(Opcode::STORE) || opcode == code(Opcode::GEMM) ||
           opcode == code(Opcode::FINISH) || opcode == code(Opcode::ALU) ||
           (HAS_REQUANT && opcode == code(Opcode::REQUANT));
}

// Bits of the immediate that an alu_plus operation does not use.
bool alu_reserved(const AluFields& alu) {
    const uint32_t imm = static_cast<uint32_t>(alu.imm) & 0xffffu;
    if (alu.alu_opcode == code(AluOpcode::RSHR)) return (imm & (alu.use_imm ? 0x7fe0u : 0x7fffu)) != 0;
    if (alu.alu_opcode == code(AluOpcode::MAC) || alu.alu_opcode == code(AluOpcode::MOV)) return !alu.use_imm && imm != 0;
    return false;
}

bool reserved(Word128 word, uint32_t opcode) {
    if (opcode == code(Opcode::LOAD)) return any(word, LOAD_RESERVED);
    if (opcode == code(Opcode::STORE)) return any(word, STORE_RESERVED);
    if (opcode == code(Opcode::GEMM)) return any(word, GEMM_RESERVED);
    if (opcode == code(Opcode::FINISH)) return any(word, FINISH_RESERVED);
    if (opcode == code(Opcode::REQUANT)) return any(word, REQUANT_RESERVED);
    return any(word, ALU_RESERVED) || alu_reserved(unpack_alu(word));
}

bool illegal_token(const FinishFields& head, Unit unit, uint32_t opcode) {
    if (unit == Unit::LOAD) return head.pop_prev != 0 || head.push_prev != 0;
    if (unit == Unit::STORE) return head.pop_next != 0 || head.push_next != 0;
    return opcode == code(Opcode::FINISH) && (head.push_prev != 0 || head.push_next != 0);
}

Cause load_fault(const LoadFields& load) {
    const bool acc8 = load.memory_id == code(MemId::ACC_INT8) || load.memory_id == code(MemId::ACC_UINT8);
    const bool base = load.memory_id == code(MemId::UOP) || load.memory_id == code(MemId::WGT) ||
                      load.memory_id == code(MemId::INP) || load.memory_id == code(MemId::ACC);
    if (!base && !(HAS_ACC8 && acc8)) return Cause::ILLEGAL_MEMORY;
    const bool value = load.pad_value_low != 0 || load.pad_value_high != 0;
    if (load.memory_id == code(MemId::UOP) && (load.pad_min != 0 || value)) return Cause::ILLEGAL_FIELD;
    if (load.pad_min != 0 && value) return Cause::ILLEGAL_FIELD;
    return Cause::NONE;
}

Cause store_fault(const StoreFields& store) {
    if (store.memory_id != code(MemId::OUT)) return Cause::ILLEGAL_MEMORY;
    const bool pads = store.y_pad_0 != 0 || store.y_pad_1 != 0 || store.x_pad_0 != 0 || store.x_pad_1 != 0;
    return pads ? Cause::ILLEGAL_FIELD : Cause::NONE;
}

Cause uop_fault(uint32_t begin, uint32_t end) {
    if (begin > end) return Cause::ILLEGAL_FIELD;
    return end > UOP_DEPTH ? Cause::INDEX_RANGE : Cause::NONE;
}

Cause requant_fault(const RequantFields& requant) {
    if (requant.mode > static_cast<uint32_t>(RequantMode::FLOOR)) return Cause::ILLEGAL_FIELD;
    return requant.clear != 0 && requant.write_acc != 0 ? Cause::ILLEGAL_FIELD : Cause::NONE;
}

}  // namespace

Unit unit_of(Word128 word) {
    const LoadFields load = unpack_load(word);
    if (load.opcode == code(Opcode::STORE)) return Unit::STORE;
    const bool memory = load.memory_id == code(MemId::INP) || load.memory_id == code(MemId::WGT);
    return load.opcode == code(Opcode::LOAD) && memory ? Unit::LOAD : Unit::COMPUTE;
}

Cause static_fault(Word128 word, bool last) {
    const FinishFields head = unpack_finish(word);
    const uint32_t opcode = head.opcode;
    if (!known_opcode(opcode)) return Cause::ILLEGAL_OPCODE;
    if (opcode == code(Opcode::ALU) && !HAS_ALU_PLUS && unpack_alu(word).alu_opcode > code(AluOpcode::MUL))
        return Cause::ILLEGAL_OPCODE;
    if (reserved(word, opcode)) return Cause::RESERVED_BITS;
    if (illegal_token(head, unit_of(word), opcode)) return Cause::ILLEGAL_TOKEN;
    if ((opcode == code(Opcode::FINISH)) != last) return Cause::FINISH_ORDER;
    if (opcode == code(Opcode::LOAD)) {
        const LoadFields load = unpack_load(word);
        return load.x_size == 0 || load.y_size == 0 ? Cause::NONE : load_fault(load);
    }
    if (opcode == code(Opcode::STORE)) {
        const StoreFields store = unpack_store(word);
        return store.x_size == 0 || store.y_size == 0 ? Cause::NONE : store_fault(store);
    }
    if (opcode == code(Opcode::GEMM)) {
        const GemmFields gemm = unpack_gemm(word);
        return uop_fault(gemm.uop_begin, gemm.uop_end);
    }
    if (opcode == code(Opcode::ALU)) {
        const AluFields alu = unpack_alu(word);
        return uop_fault(alu.uop_begin, alu.uop_end);
    }
    if (opcode == code(Opcode::REQUANT)) return requant_fault(unpack_requant(word));
    return Cause::NONE;
}

}  // namespace openvta
