// SPDX-License-Identifier: Apache-2.0
#include "vta_stages.h"
#include "vta_unit.h"

namespace openvta {

namespace {

constexpr uint32_t OUT_PER_WORD = OUT_WORD_BITS / OUT_BITS;
constexpr uint32_t OUT_WORDS = LANES / OUT_PER_WORD;

// Rows of out elements; a word of memory in a cycle.
bool run_store(const Command& command, out_word_t* memory, Window window, out_t out_mem[ACC_DEPTH][LANES],
               token_stream& alive, Report& report) {
    const StoreFields f = unpack_store(command.word);
    if (f.x_size == 0 || f.y_size == 0) return true;
    if (f.sram_base + static_cast<uint64_t>(f.y_size) * f.x_size > ACC_DEPTH) {
        report = fault_of(Cause::INDEX_RANGE, command.index);
        return false;
    }
    const uint64_t element_bytes = OUT_BYTES;
    const uint64_t row_bytes = f.x_size * element_bytes;
    uint64_t address = command.base + f.dram_base * element_bytes;
    uint32_t at = f.sram_base;
    for (uint32_t y = 0; y < f.y_size; ++y) {
#pragma HLS loop_tripcount min = 1 max = 64
        const Span span = inside(window, address, row_bytes, true);
        if (!span.ok) {
            report = bus_fault(Cause::BUS_WRITE, command.index, channel::OUT, span.outside);
            return false;
        }
        uint64_t word = span.offset / (OUT_WORD_BITS / 8);
        for (uint32_t x = 0; x < f.x_size; ++x) {
#pragma HLS loop_tripcount min = 1 max = 64
            for (uint32_t n = 0; n < OUT_WORDS; ++n) {
#pragma HLS pipeline II = 1
                out_word_t value{};
                for (uint32_t k = 0; k < OUT_PER_WORD; ++k) {
#pragma HLS unroll
                    set_lane<OUT_BITS>(value, k, static_cast<uint32_t>(static_cast<int32_t>(out_mem[at][n * OUT_PER_WORD + k])));
                }
                memory[word + n] = value;
            }
            word += OUT_WORDS;
            at += 1;
        }
        address += f.x_stride * element_bytes;
        live(alive);
    }
    report.counter = counter::OUT_STORE_BYTES;
    report.amount = f.y_size * row_bytes;
    return true;
}

}  // namespace

void store(out_word_t* memory, Window window, command_stream& commands, order_stream& orders, report_stream& reports,
           token_stream& alive, token_stream& from_compute, token_stream& to_compute, out_t out_mem[ACC_DEPTH][LANES]) {
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
    const uint32_t pops = queue_bit(Queue::COMPUTE_TO_STORE, tokens.pop_prev);
    const uint32_t pushes = queue_bit(Queue::STORE_TO_COMPUTE, tokens.push_prev);
    if (state.phase == Phase::EMPTY) {
        state.phase = Phase::TAKEN;
        reports.write(about(ReportKind::TAKEN, state.command, pops, pushes));
        return;
    }
    if (state.phase == Phase::TAKEN) {
        if (tokens.pop_prev && from_compute.empty()) return;
        if (tokens.pop_prev) take(from_compute);
        state.phase = Phase::STARTED;
        reports.write(about(ReportKind::STARTED, state.command, pops, pushes));
        return;
    }
    Report report = about(ReportKind::RETIRED, state.command, pops, pushes);
    bool good = run_store(state.command, memory, window, out_mem, alive, report);
    if (good && tokens.push_prev && !to_compute.write_nb(token_t(1))) {
        report = fault_of(Cause::TOKEN_OVERFLOW, state.command.index);
        good = false;
    }
    state.halted = !good;
    state.phase = Phase::EMPTY;
    reports.write(report);
}

}  // namespace openvta
