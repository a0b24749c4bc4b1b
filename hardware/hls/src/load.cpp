// SPDX-License-Identifier: Apache-2.0
#include "vta_rows.h"
#include "vta_stages.h"

namespace openvta {

namespace {

bool run_load(const Command& command, const inp_word_t* inp_memory, const wgt_word_t* wgt_memory, Window window,
              inp_t inp_mem[INP_DEPTH][LANES], wgt_t wgt_mem[WGT_DEPTH][WGT_LANES], token_stream& alive, Report& report) {
    const LoadFields f = unpack_load(command.word);
    if (f.x_size == 0 || f.y_size == 0) return true;
    if (f.memory_id == static_cast<uint32_t>(MemId::INP)) {
        report.counter = counter::INP_LOAD_BYTES;
        return load_rows<INP_BITS, INP_BITS, LANES, LANES, INP_DEPTH, INP_WORD_BITS>(f, command, inp_memory, window,
                                                                             channel::INP, inp_mem, alive, report);
    }
    report.counter = counter::WGT_LOAD_BYTES;
    return load_rows<WGT_BITS, WGT_BITS, WGT_LANES, BLOCK, WGT_DEPTH, WGT_WORD_BITS>(f, command, wgt_memory, window,
                                                                              channel::WGT, wgt_mem, alive, report);
}

}  // namespace

void load(const inp_word_t* inp_memory, const wgt_word_t* wgt_memory, Window window, command_stream& commands,
          order_stream& orders, report_stream& reports, token_stream& alive, token_stream& from_compute,
          token_stream& to_compute, inp_t inp_mem[INP_DEPTH][LANES], wgt_t wgt_mem[WGT_DEPTH][WGT_LANES]) {
    static UnitState state = {Phase::EMPTY, false, {{0u, 0u}, 0u, 0u}};

    Order order;
    if (orders.read_nb(order)) {
        state.phase = Phase::EMPTY;
        state.halted = order == Order::HALT;
        if (order == Order::DRAIN) {
            drain<QUEUE_DEPTH>(commands);
            drain<TOKEN_DEPTH>(from_compute);
        }
        reports.write(report_of(ReportKind::DONE, 0));
        return;
    }
    if (state.halted || reports.full()) return;
    if (state.phase == Phase::EMPTY && !commands.read_nb(state.command)) return;

    const Tokens tokens = tokens_of(state.command.word);
    const uint32_t pops = queue_bit(Queue::COMPUTE_TO_LOAD, tokens.pop_next);
    const uint32_t pushes = queue_bit(Queue::LOAD_TO_COMPUTE, tokens.push_next);
    if (state.phase == Phase::EMPTY) {
        state.phase = Phase::TAKEN;
        reports.write(about(ReportKind::TAKEN, state.command, pops, pushes));
        return;
    }
    if (state.phase == Phase::TAKEN) {
        if (tokens.pop_next && from_compute.empty()) return;
        if (tokens.pop_next) take(from_compute);
        state.phase = Phase::STARTED;
        reports.write(about(ReportKind::STARTED, state.command, pops, pushes));
        return;
    }
    Report report = about(ReportKind::RETIRED, state.command, pops, pushes);
    bool good = run_load(state.command, inp_memory, wgt_memory, window, inp_mem, wgt_mem, alive, report);
    if (good && tokens.push_next && !to_compute.write_nb(token_t(1))) {
        report = fault_of(Cause::TOKEN_OVERFLOW, state.command.index);
        good = false;
    }
    state.halted = !good;
    state.phase = Phase::EMPTY;
    reports.write(report);
}

}  // namespace openvta
