// SPDX-License-Identifier: Apache-2.0
#include "vta_compute.h"
#include "vta_rows.h"
#include "vta_stages.h"

namespace openvta {

namespace {

bool run_load(const Command& command, const uop_word_t* uop_memory, const acc_word_t* acc_memory, Window window,
              uint32_t uop_mem[UOP_DEPTH][1], acc_t acc_mem[ACC_DEPTH][LANES], token_stream& alive, Report& report) {
    const LoadFields f = unpack_load(command.word);
    if (f.x_size == 0 || f.y_size == 0) return true;
    if (f.memory_id == static_cast<uint32_t>(MemId::UOP)) {
        report.counter = counter::UOP_LOAD_BYTES;
        return load_rows<32, 32, 1, 1, UOP_DEPTH, UOP_WORD_BITS>(f, command, uop_memory, window, channel::UOP, uop_mem, alive,
                                                              report);
    }
    report.counter = counter::ACC_LOAD_BYTES;
    if (f.memory_id == static_cast<uint32_t>(MemId::ACC)) {
        return load_rows<ACC_BITS, ACC_BITS, LANES, LANES, ACC_DEPTH, ACC_WORD_BITS>(f, command, acc_memory, window, channel::ACC,
                                                                              acc_mem, alive, report);
    }
    return load_rows<8, ACC_BITS, LANES, LANES, ACC_DEPTH, ACC_WORD_BITS>(f, command, acc_memory, window, channel::ACC, acc_mem,
                                                                   alive, report);
}

bool execute(const Command& command, const uop_word_t* uop_memory, const acc_word_t* acc_memory, Window window,
             uint32_t uop_mem[UOP_DEPTH][1], inp_t inp_mem[INP_DEPTH][LANES], wgt_t wgt_mem[WGT_DEPTH][WGT_LANES],
             acc_t acc_mem[ACC_DEPTH][LANES], out_t out_mem[ACC_DEPTH][LANES], token_stream& alive, Report& report) {
    switch (static_cast<Opcode>(opcode_of(command.word))) {
        case Opcode::LOAD:
            return run_load(command, uop_memory, acc_memory, window, uop_mem, acc_mem, alive, report);
        case Opcode::GEMM:
            return run_gemm(command, uop_mem, inp_mem, wgt_mem, acc_mem, out_mem, alive, report);
        case Opcode::ALU:
            return run_alu(command, uop_mem, acc_mem, out_mem, alive, report);
        case Opcode::REQUANT:
            return run_requant(command, acc_mem, out_mem, alive, report);
        default:
            return true;  // FINISH
    }
}

}  // namespace

void compute(const uop_word_t* uop_memory, const acc_word_t* acc_memory, Window window, command_stream& commands,
             order_stream& orders, report_stream& reports, token_stream& alive, token_stream& from_load,
             token_stream& from_store, token_stream& to_load, token_stream& to_store, inp_t inp_mem[INP_DEPTH][LANES],
             wgt_t wgt_mem[WGT_DEPTH][WGT_LANES], out_t out_mem[ACC_DEPTH][LANES]) {
    static UnitState state = {Phase::EMPTY, false, {{0u, 0u}, 0u, 0u}};
    static bool finish = false;  // everything but FINISH is done
    static uint32_t uop_mem[UOP_DEPTH][1];
    static acc_t acc_mem[ACC_DEPTH][LANES];
#pragma HLS array_reshape variable = acc_mem dim = 2 complete
#pragma HLS bind_storage variable = acc_mem type = ram_s2p impl = bram

    Order order;
    if (orders.read_nb(order)) {
        finish = order == Order::FINISH;
        if (finish) return;
        state.phase = Phase::EMPTY;
        state.halted = order == Order::HALT;
        if (order == Order::DRAIN) {
            drain<QUEUE_DEPTH>(commands);
            drain<TOKEN_DEPTH>(from_load);
            drain<TOKEN_DEPTH>(from_store);
        }
        reports.write(report_of(ReportKind::DONE, 0));
        return;
    }
    if (state.halted || reports.full()) return;
    if (state.phase == Phase::EMPTY && !commands.read_nb(state.command)) return;

    const Tokens tokens = tokens_of(state.command.word);
    const uint32_t pops =
        queue_bit(Queue::LOAD_TO_COMPUTE, tokens.pop_prev) | queue_bit(Queue::STORE_TO_COMPUTE, tokens.pop_next);
    const uint32_t pushes =
        queue_bit(Queue::COMPUTE_TO_LOAD, tokens.push_prev) | queue_bit(Queue::COMPUTE_TO_STORE, tokens.push_next);
    if (state.phase == Phase::EMPTY) {
        state.phase = Phase::TAKEN;
        finish = false;
        reports.write(about(ReportKind::TAKEN, state.command, pops, pushes));
        return;
    }
    if (state.phase == Phase::TAKEN) {
        if (opcode_of(state.command.word) == static_cast<uint32_t>(Opcode::FINISH) && !finish) return;
        if ((tokens.pop_prev && from_load.empty()) || (tokens.pop_next && from_store.empty())) return;
        if (tokens.pop_prev) take(from_load);
        if (tokens.pop_next) take(from_store);
        state.phase = Phase::STARTED;
        reports.write(about(ReportKind::STARTED, state.command, pops, pushes));
        return;
    }
    Report report = about(ReportKind::RETIRED, state.command, pops, pushes);
    bool good = execute(state.command, uop_memory, acc_memory, window, uop_mem, inp_mem, wgt_mem, acc_mem, out_mem, alive,
                        report);
    if (good && ((tokens.push_prev && !to_load.write_nb(token_t(1))) || (tokens.push_next && !to_store.write_nb(token_t(1))))) {
        report = fault_of(Cause::TOKEN_OVERFLOW, state.command.index);
        good = false;
    }
    state.halted = !good;
    state.phase = Phase::EMPTY;
    reports.write(report);
}

}  // namespace openvta
