// SPDX-License-Identifier: Apache-2.0
#include "vta_control.h"
#include "vta_stages.h"

namespace openvta {

namespace {

constexpr uint32_t OKAY = 0;
constexpr uint32_t SLVERR = 2;

void count(uint32_t& value, uint64_t amount) {
#pragma HLS inline
    const uint64_t sum = value + amount;
    value = sum > 0xffffffffull ? 0xffffffffu : static_cast<uint32_t>(sum);  // stops at the largest value
}

View& view_of(ControlState& s, Unit unit) {
#pragma HLS inline
    return s.views[static_cast<uint32_t>(unit)];
}

// Queues an instruction needs a token of and finds empty.
uint32_t missing(const ControlState& s, const View& view) {
    uint32_t found = 0;
    if (view.phase != Phase::TAKEN) return found;
    for (uint32_t queue = 0; queue < TOKEN_QUEUES; ++queue) {
#pragma HLS unroll
        if ((view.pops >> queue & 1) != 0 && s.tokens[queue] <= 0) found |= 1u << queue;
    }
    return found;
}

bool waits_for_finish(const ControlState& s, const View& view) {
    return view.phase == Phase::TAKEN && view.opcode == static_cast<uint32_t>(Opcode::FINISH) && missing(s, view) == 0;
}

void hold(ControlState& s, Cause cause, Unit unit, const Report& report) {
    s.held = true;
    s.running = false;
    s.error.cause = static_cast<uint32_t>(cause);
    s.error.unit = static_cast<uint32_t>(unit);
    s.error.channel = report.channel;
    s.error.wait = 0;
    s.error.finish = 0;
    s.error_index = report.index;
    s.error_address = report.address;
    s.irq_status |= IRQ_ERROR;
}

// Who is to blame when nothing moves: the first that waits for a token, else FINISH, else the first that is busy.
void hold_watchdog(ControlState& s) {
    uint32_t wait = 0;
    bool finish = false, found = false;
    uint32_t unit = static_cast<uint32_t>(Unit::FETCH), index = s.dispatched;
    for (uint32_t n = UNITS - 1; n > 0; --n) {  // from store to load: the first busy one is looked at last
#pragma HLS unroll
        if (s.views[n].phase != Phase::EMPTY) {
            unit = n;
            index = s.views[n].index;
        }
    }
    const View& compute_view = s.views[static_cast<uint32_t>(Unit::COMPUTE)];
    if (waits_for_finish(s, compute_view)) {
        finish = true;
        unit = static_cast<uint32_t>(Unit::COMPUTE);
        index = compute_view.index;
    }
    for (uint32_t n = 1; n < UNITS; ++n) {
#pragma HLS unroll
        const uint32_t queues = missing(s, s.views[n]);
        wait |= queues;
        if (queues != 0 && !found) {
            found = true;
            unit = n;
            index = s.views[n].index;
        }
    }
    hold(s, Cause::WATCHDOG, static_cast<Unit>(unit), report_of(ReportKind::FAULT, index));
    s.error.wait = wait;
    s.error.finish = finish ? 1 : 0;
}

}  // namespace

void clear_run(ControlState& s) {
    s.finished = false;
    s.cycles = 0;
    s.acc_writes = 0;
    for (uint32_t n = 0; n < COUNTERS; ++n) {
#pragma HLS unroll
        s.counters[n] = 0;
    }
    s.dispatched = 0;
    s.retired = 0;
    s.fetch_stalled = false;
    s.finish_sent = false;
    s.idle = 0;
}

bool quiet(const ControlState& s) {
    const View& finish = s.views[static_cast<uint32_t>(Unit::COMPUTE)];
    // FINISH may be at hand before fetch's own report of it is.
    bool nothing = waits_for_finish(s, finish) && s.dispatched == s.insn_count && s.retired + 1 == s.insn_count;
    for (uint32_t queue = 0; queue < TOKEN_QUEUES; ++queue) {
#pragma HLS unroll
        nothing = nothing && s.tokens[queue] == static_cast<int32_t>(finish.pops >> queue & 1);
    }
    return nothing;
}

bool handle(ControlState& s, Unit unit, const Report& report) {
    if (report.kind == ReportKind::DONE) {
        s.answers += 1;
        return false;
    }
    if (!s.running) return false;  // what was under way when the run ended
    s.idle = 0;
    View& view = view_of(s, unit);
    switch (report.kind) {
        case ReportKind::FAULT:
            hold(s, static_cast<Cause>(report.cause), unit, report);
            return true;
        case ReportKind::STALLED:
            s.fetch_stalled = true;
            break;
        case ReportKind::DISPATCHED:
            s.fetch_stalled = false;
            s.dispatched += 1;
            count(s.counters[counter::INSN_BYTES], INSN_BYTES);
            break;
        case ReportKind::TAKEN:
            view.phase = Phase::TAKEN;
            view.index = report.index;
            view.opcode = report.opcode;
            view.pops = report.pops;
            break;
        case ReportKind::STARTED:
            view.phase = Phase::STARTED;
            for (uint32_t queue = 0; queue < TOKEN_QUEUES; ++queue) {
#pragma HLS unroll
                if ((report.pops >> queue & 1) != 0) s.tokens[queue] -= 1;
            }
            break;
        default:  // RETIRED
            view.phase = Phase::EMPTY;
            for (uint32_t queue = 0; queue < TOKEN_QUEUES; ++queue) {
#pragma HLS unroll
                if ((report.pushes >> queue & 1) != 0) s.tokens[queue] += 1;
            }
            s.retired += 1;
            count(s.counters[counter::INSNS_RETIRED], 1);
            if (report.amount != 0) count(s.counters[report.counter], report.amount);
            count(s.acc_writes, report.acc_writes);
            if (report.opcode == static_cast<uint32_t>(Opcode::FINISH)) {
                s.running = false;
                s.finished = true;
                s.irq_status |= IRQ_FINISH;
            }
    }
    return false;
}

bool tick(ControlState& s) {
    s.cycles += 1;
    const View &load_view = s.views[static_cast<uint32_t>(Unit::LOAD)],
               &compute_view = s.views[static_cast<uint32_t>(Unit::COMPUTE)],
               &store_view = s.views[static_cast<uint32_t>(Unit::STORE)];
    if (s.dispatched != s.insn_count) count(s.counters[counter::FETCH_BUSY], 1);
    if (s.fetch_stalled) count(s.counters[counter::FETCH_STALL_QUEUE], 1);
    if (load_view.phase == Phase::STARTED) count(s.counters[counter::LOAD_BUSY], 1);
    if (missing(s, load_view) != 0) count(s.counters[counter::LOAD_WAIT_TOKEN], 1);
    if (store_view.phase == Phase::STARTED) count(s.counters[counter::STORE_BUSY], 1);
    if (missing(s, store_view) != 0) count(s.counters[counter::STORE_WAIT_TOKEN], 1);
    if (missing(s, compute_view) != 0) count(s.counters[counter::COMPUTE_WAIT_TOKEN], 1);
    if (compute_view.phase == Phase::EMPTY) count(s.counters[counter::COMPUTE_IDLE], 1);
    if (compute_view.phase == Phase::STARTED) {
        count(s.counters[counter::COMPUTE_BUSY], 1);
        const Opcode opcode = static_cast<Opcode>(compute_view.opcode);
        if (opcode == Opcode::GEMM) count(s.counters[counter::GEMM_BUSY], 1);
        if (opcode == Opcode::ALU) count(s.counters[counter::ALU_BUSY], 1);
        if (opcode == Opcode::REQUANT) count(s.counters[counter::REQUANT_BUSY], 1);
    }
    s.idle += 1;
    if (s.watchdog == 0 || s.idle < s.watchdog) return false;
    hold_watchdog(s);
    return true;
}

void control(hls::stream<axil_address_t>& aw, hls::stream<axil_data_t>& w, hls::stream<axil_response_t>& b,
             hls::stream<axil_address_t>& ar, hls::stream<axil_data_t>& r, ap_uint<1>* interrupt,
             launch_stream& launches, order_stream& fetch_orders, order_stream& load_orders, order_stream& compute_orders,
             order_stream& store_orders, report_stream& fetch_reports, report_stream& load_reports,
             report_stream& compute_reports, report_stream& store_reports, token_stream& load_alive,
             token_stream& compute_alive, token_stream& store_alive) {
    static ControlState s;  // zero: nothing runs, no error
    static bool awake = false;
    if (!awake) {
        s.watchdog = WATCHDOG_RESET;
        awake = true;
    }

    // Registers
    bool stop = false;
    bool reset = false;
    if (!aw.empty() && !w.empty() && !b.full()) {
        const axil_address_t address = aw.read();
        const axil_data_t data = w.read();
        uint32_t mask = 0;
        for (uint32_t n = 0; n < 4; ++n) {
#pragma HLS unroll
            if ((static_cast<uint32_t>(data.strb) >> n & 1) != 0) mask |= 0xffu << (8 * n);
        }
        const uint32_t offset = static_cast<uint32_t>(address) & (REGISTER_SPACE_BYTES - 4);
        const Request request = write_register(s, offset, static_cast<uint32_t>(data.data), mask);
        b.write(axil_response_t(request.mapped ? OKAY : SLVERR));
        reset = request.reset && !s.reset_wanted;
        if (request.launch && !s.running && !s.held && s.stop == Stop::NONE && !reset) {
            clear_run(s);
            s.running = true;
            const Launch launch = {s.insn_count,
                                   s.pointer[0] | static_cast<uint64_t>(s.pointer[1]) << 32,
                                   s.pointer[2] | static_cast<uint64_t>(s.pointer[3]) << 32,
                                   s.pointer[4] | static_cast<uint64_t>(s.pointer[5]) << 32,
                                   s.pointer[6] | static_cast<uint64_t>(s.pointer[7]) << 32,
                                   s.pointer[8] | static_cast<uint64_t>(s.pointer[9]) << 32,
                                   s.pointer[10] | static_cast<uint64_t>(s.pointer[11]) << 32};
            launches.write(launch);
        }
    }
    if (!ar.empty() && !r.full()) {
        const axil_address_t address = ar.read();
        bool mapped = false;
        axil_data_t answer;
        answer.data = read_register(s, static_cast<uint32_t>(address) & (REGISTER_SPACE_BYTES - 4), mapped);
        answer.user = mapped ? OKAY : SLVERR;
        answer.keep = 15;
        answer.strb = 15;
        answer.last = 1;
        answer.id = 0;
        answer.dest = 0;
        r.write(answer);
    }

    // Reports
    Report report;
    if (fetch_reports.read_nb(report)) stop |= handle(s, Unit::FETCH, report);
    if (load_reports.read_nb(report)) stop |= handle(s, Unit::LOAD, report);
    if (compute_reports.read_nb(report)) stop |= handle(s, Unit::COMPUTE, report);
    if (store_reports.read_nb(report)) stop |= handle(s, Unit::STORE, report);
    token_t sign;
    if (load_alive.read_nb(sign)) s.idle = 0;
    if (compute_alive.read_nb(sign)) s.idle = 0;
    if (store_alive.read_nb(sign)) s.idle = 0;

    // The run
    if (s.running && !s.finish_sent && quiet(s)) {
        compute_orders.write(Order::FINISH);
        s.finish_sent = true;
    }
    if (s.running) stop |= tick(s);

    // Stopping: on an error, and for a reset
    if (reset) {
        s.reset_wanted = true;
        s.running = false;
        stop |= s.stop == Stop::NONE;
    }
    bool all = false;
    Order order = Order::HALT;
    if (stop && s.stop == Stop::NONE) {
        s.stop = Stop::HALTING;
        all = true;
    } else if (s.stop == Stop::HALTING && s.answers == UNITS) {
        s.stop = Stop::HALTED;
    } else if (s.stop == Stop::HALTED && s.reset_wanted) {
        s.stop = Stop::DRAINING;
        order = Order::DRAIN;
        all = true;
    } else if (s.stop == Stop::DRAINING && s.answers == UNITS) {
        s.stop = Stop::NONE;
        s.reset_wanted = false;
        s.held = false;
        s.irq_status = 0;
        clear_run(s);
        for (uint32_t n = 0; n < UNITS; ++n) {
#pragma HLS unroll
            s.views[n].phase = Phase::EMPTY;
        }
        for (uint32_t n = 0; n < TOKEN_QUEUES; ++n) {
#pragma HLS unroll
            s.tokens[n] = 0;
        }
    }
    if (all) {
        s.answers = 0;
        fetch_orders.write(order);
        load_orders.write(order);
        compute_orders.write(order);
        store_orders.write(order);
    }
    *interrupt = ap_uint<1>((s.irq_status & s.irq_enable) != 0 ? 1 : 0);
}

}  // namespace openvta
