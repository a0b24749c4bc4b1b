// SPDX-License-Identifier: Apache-2.0
#include "vta_bus.h"
#include "vta_decode.h"
#include "vta_stages.h"

namespace openvta {

namespace {

constexpr uint32_t INSN_WORDS = 8 * INSN_BYTES / INSN_WORD_BITS;

Word128 read_instruction(const insn_word_t* memory, uint64_t at) {
    uint32_t part[4];
    for (uint32_t n = 0; n < INSN_WORDS; ++n) {
#pragma HLS pipeline II = 1
        const insn_word_t word = memory[at + n];
        for (uint32_t k = 0; k < 4 / INSN_WORDS; ++k) {
#pragma HLS unroll
            part[n * (4 / INSN_WORDS) + k] = get_lane<32>(word, k);
        }
    }
    Word128 result;
    result.lo = part[0] | static_cast<uint64_t>(part[1]) << 32;
    result.hi = part[2] | static_cast<uint64_t>(part[3]) << 32;
    return result;
}

// Base address of the memory an instruction touches; only LOAD and STORE look at it.
uint64_t base_of(const Launch& launch, Word128 word) {
    const LoadFields fields = unpack_load(word);
    if (fields.opcode == static_cast<uint32_t>(Opcode::STORE)) return launch.out;
    if (fields.memory_id == static_cast<uint32_t>(MemId::UOP)) return launch.uop;
    if (fields.memory_id == static_cast<uint32_t>(MemId::INP)) return launch.inp;
    if (fields.memory_id == static_cast<uint32_t>(MemId::WGT)) return launch.wgt;
    return launch.acc;
}

}  // namespace

void fetch(const insn_word_t* memory, Window window, launch_stream& launches, order_stream& orders, report_stream& reports,
           command_stream& load_commands, command_stream& compute_commands, command_stream& store_commands) {
    static Launch launch;
    static bool running = false;
    static bool held = false;     // a command waits for room in its queue
    static bool stalled = false;  // control knows
    static uint32_t next = 0;
    static Command command;

    Order order;
    if (orders.read_nb(order)) {
        running = false;
        held = false;
        stalled = false;
        if (order == Order::DRAIN) drain<ORDER_DEPTH>(launches);
        reports.write(report_of(ReportKind::DONE, 0));
        return;
    }
    if (reports.full()) return;
    if (!running) {
        if (!launches.read_nb(launch)) return;
        running = true;
        next = 0;
        if (launch.count == 0) {
            running = false;
            reports.write(fault_of(Cause::FINISH_ORDER, 0));
        }
        return;
    }
    if (!held) {
        const uint64_t address = launch.insn + static_cast<uint64_t>(next) * INSN_BYTES;
        const Span span = inside(window, address, INSN_BYTES, false);
        if (!span.ok) {
            running = false;
            Report r = fault_of(Cause::BUS_READ, next);
            r.channel = channel::INSN;
            r.address = span.outside;
            reports.write(r);
            return;
        }
        command.word = read_instruction(memory, span.offset / (INSN_WORD_BITS / 8));
        command.index = next;
        const Cause cause = static_fault(command.word, next + 1 == launch.count);
        if (cause != Cause::NONE) {
            running = false;
            reports.write(fault_of(cause, next));
            return;
        }
        command.base = base_of(launch, command.word);
        held = true;
    }
    const Unit unit = unit_of(command.word);
    const bool sent = unit == Unit::LOAD    ? load_commands.write_nb(command)
                      : unit == Unit::STORE ? store_commands.write_nb(command)
                                            : compute_commands.write_nb(command);
    if (!sent) {
        if (!stalled) reports.write(report_of(ReportKind::STALLED, next));
        stalled = true;
        return;
    }
    held = false;
    stalled = false;
    reports.write(report_of(ReportKind::DISPATCHED, next));
    next += 1;
    running = next != launch.count;
}

}  // namespace openvta
