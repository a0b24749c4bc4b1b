// SPDX-License-Identifier: Apache-2.0
// ALU: an operation a cycle with an immediate; operations that read two elements take two, those that multiply REQUANT_CYCLES
// where that is more (multipliers are shared between lanes).
#include "vta_compute.h"

namespace openvta {

namespace {

// Arithmetic right for y >= 0, left for y < 0, the amount limited to SHIFT_MAX.
acc_t shift(acc_t x, acc_t y) {
#pragma HLS inline
    const int32_t value = static_cast<int32_t>(x), amount = static_cast<int32_t>(y);
    const int32_t most = static_cast<int32_t>(SHIFT_MAX);
    const int32_t limited = amount > most ? most : amount < -most ? -most : amount;
    if (limited >= 0) return static_cast<acc_t>(value >> limited);
    return static_cast<acc_t>(static_cast<int32_t>(static_cast<uint32_t>(value) << -limited));
}

// x / 2^amount to the nearest integer, ties up or to even.
acc_t rounded(acc_t x, uint32_t amount, bool even) {
#pragma HLS inline
    if (amount == 0) return x;
    const int64_t wide = static_cast<int64_t>(static_cast<int32_t>(x));
    const int64_t quotient = wide >> amount;
    const int64_t rest = wide & ((int64_t{1} << amount) - 1), half = int64_t{1} << (amount - 1);
    const bool up = even ? rest > half || (rest == half && (quotient & 1) != 0) : rest >= half;
    return static_cast<acc_t>(static_cast<int32_t>(quotient + (up ? 1 : 0)));
}

acc_t product(acc_t x, acc_t y) {
#pragma HLS inline
    const wide_t wide = static_cast<wide_t>(static_cast<wide_t>(x) * static_cast<wide_t>(y));
    return static_cast<acc_t>(static_cast<int32_t>(static_cast<uint32_t>(static_cast<int64_t>(wide))));
}

acc_t sum(acc_t x, acc_t y) {
#pragma HLS inline
    return static_cast<acc_t>(static_cast<int32_t>(static_cast<uint32_t>(static_cast<int32_t>(x)) +
                                                   static_cast<uint32_t>(static_cast<int32_t>(y))));
}

// One lane: x and y as the instruction set names them, dst for MAC.
acc_t operate(AluOpcode op, acc_t dst, acc_t x, acc_t y, uint32_t amount, bool even) {
#pragma HLS inline
    switch (op) {
        case AluOpcode::MIN:
            return x < y ? x : y;
        case AluOpcode::MAX:
            return x > y ? x : y;
        case AluOpcode::ADD:
            return sum(x, y);
        case AluOpcode::SHR:
            return shift(x, y);
        case AluOpcode::MUL:
            return product(x, y);
        case AluOpcode::MAC:
            return sum(dst, product(x, y));
        case AluOpcode::RSHR:
            return rounded(x, amount, even);
        default:
            return y;
    }
}

// RSHR's amount where an element gives it: limited to 0 .. SHIFT_MAX.
uint32_t lane_amount(acc_t y) {
#pragma HLS inline
    const int32_t value = static_cast<int32_t>(y), most = static_cast<int32_t>(SHIFT_MAX);
    return static_cast<uint32_t>(value < 0 ? 0 : value > most ? most : value);
}

}  // namespace

bool run_alu(const Command& command, const uint32_t uop_mem[UOP_DEPTH][1], acc_t acc_mem[ACC_DEPTH][LANES],
             out_t out_mem[ACC_DEPTH][LANES], token_stream& alive, Report& report) {
    const AluFields f = unpack_alu(command.word);
    const AluOpcode op = static_cast<AluOpcode>(f.alu_opcode);
    const bool use_imm = f.use_imm != 0, saturate = f.sat != 0;
    const bool reads_src = !(use_imm && op == AluOpcode::MOV);
    const bool even = f.imm < 0;  // bit 15
    const uint32_t outer[3] = {f.dst_factor_out, f.src_factor_out, 0};
    const uint32_t inner[3] = {f.dst_factor_in, f.src_factor_in, 0};
    const uint64_t total = static_cast<uint64_t>(f.iter_out) * f.iter_in * (f.uop_end - f.uop_begin);
    Nest nest = nest_at_start(f.uop_begin);
    Recent recent;
#pragma HLS array_partition variable = recent.index complete
#pragma HLS array_partition variable = recent.value complete dim = 0
    forget(recent);
    bool fault = false;
    for (uint64_t n = 0; n < total && !fault; ++n) {
#pragma HLS pipeline II = 2
#pragma HLS loop_tripcount min = 16 max = 65536
#pragma HLS dependence variable = acc_mem type = inter false
        const UopFields uop = unpack_uop(uop_mem[nest.uop][0]);
        const uint64_t dst = nest.first + uop.dst, src = nest.second + uop.src;
        fault = dst >= ACC_DEPTH || (reads_src && src >= ACC_DEPTH);
        if (!fault) {
            const uint32_t at = static_cast<uint32_t>(dst), from = reads_src ? static_cast<uint32_t>(src) : at;
            acc_t before[LANES], source[LANES], result[LANES];
#pragma HLS array_partition variable = before complete
#pragma HLS array_partition variable = source complete
#pragma HLS array_partition variable = result complete
            acc_read(acc_mem, recent, at, before);
            acc_read(acc_mem, recent, from, source);
            for (uint32_t lane = 0; lane < LANES; ++lane) {
#pragma HLS unroll
                const acc_t x = use_imm ? source[lane] : before[lane];
                const acc_t y = use_imm ? static_cast<acc_t>(f.imm) : source[lane];
                const uint32_t amount = use_imm ? static_cast<uint32_t>(f.imm) & SHIFT_MAX : lane_amount(source[lane]);
                result[lane] = operate(op, before[lane], x, y, amount, even);
            }
            acc_write(acc_mem, recent, at, result);
            out_write(out_mem, at, result, saturate);
            advance(nest, f.uop_begin, f.uop_end, f.iter_in, outer, inner);
            if (n % LIVE_EVERY == 0) live(alive);
        }
    }
    if (fault) {
        report = fault_of(Cause::INDEX_RANGE, command.index);
        return false;
    }
    report.counter = counter::ALU_UOPS;
    report.amount = total;
    report.acc_writes = total;
    return true;
}

}  // namespace openvta
