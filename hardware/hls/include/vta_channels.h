// SPDX-License-Identifier: Apache-2.0
// What the stages say to each other. Every stream has a declared depth; dependence queues and instruction queues have those
// of the configuration.
#ifndef OPENVTA_VTA_CHANNELS_H
#define OPENVTA_VTA_CHANNELS_H

#include "vta_types.h"

namespace openvta {

constexpr uint32_t UNITS = 4;        // fetch, load, compute, store
constexpr uint32_t TOKEN_QUEUES = 4;
constexpr int REPORT_DEPTH = 4;      // reports a unit may be ahead of the control stage
constexpr int ORDER_DEPTH = 2;

// Where device memory begins and how many bytes the core may touch. m_axi ports carry no error response, so an address
// outside is found here, before it reaches the bus.
struct Window {
    uint64_t base;
    uint64_t bytes;
};

// Control to fetch: run a stream.
struct Launch {
    uint32_t count;
    uint64_t insn;
    uint64_t uop;
    uint64_t inp;
    uint64_t wgt;
    uint64_t acc;
    uint64_t out;
};

// Fetch to a unit: one legal instruction, and the base address of the memory it touches.
struct Command {
    Word128 word;
    uint32_t index;
    uint64_t base;
};

// Control to a unit.
enum class Order : uint32_t {
    HALT = 0,    // drop what you hold, start nothing more
    DRAIN = 1,   // empty the streams that lead to you, then work again
    FINISH = 2,  // everything else is done: FINISH may retire (compute only)
};

enum class ReportKind : uint32_t {
    TAKEN = 0,    // an instruction is at hand, its tokens may be missing
    STARTED = 1,  // its tokens are taken
    RETIRED = 2,
    FAULT = 3,
    DONE = 4,      // an order was carried out
    STALLED = 5,   // fetch: the unit's queue is full
    DISPATCHED = 6  // fetch: one more instruction is on its way
};

// A unit to control.
struct Report {
    ReportKind kind;
    uint32_t index;       // instruction
    uint32_t opcode;
    uint32_t pops;        // one bit a dependence queue
    uint32_t pushes;
    uint32_t cause;
    uint32_t channel;
    uint64_t address;     // of a bus fault
    uint32_t counter;     // which counter `amount` belongs to
    uint64_t amount;
    uint64_t acc_writes;
};

typedef ap_uint<1> token_t;

typedef hls::stream<Launch> launch_stream;
typedef hls::stream<Command> command_stream;
typedef hls::stream<Order> order_stream;
typedef hls::stream<Report> report_stream;
typedef hls::stream<token_t> token_stream;

inline Report report_of(ReportKind kind, uint32_t index) {
#pragma HLS inline
    Report r;
    r.kind = kind;
    r.index = index;
    r.opcode = 0;
    r.pops = 0;
    r.pushes = 0;
    r.cause = 0;
    r.channel = 0;
    r.address = 0;
    r.counter = 0;
    r.amount = 0;
    r.acc_writes = 0;
    return r;
}

inline Report fault_of(Cause cause, uint32_t index) {
#pragma HLS inline
    Report r = report_of(ReportKind::FAULT, index);
    r.cause = static_cast<uint32_t>(cause);
    return r;
}

// The token flags every instruction has, from the layout all of them share.
struct Tokens {
    bool pop_prev;
    bool pop_next;
    bool push_prev;
    bool push_next;
};

inline Tokens tokens_of(Word128 word) {
#pragma HLS inline
    const FinishFields head = unpack_finish(word);
    Tokens t;
    t.pop_prev = head.pop_prev != 0;
    t.pop_next = head.pop_next != 0;
    t.push_prev = head.push_prev != 0;
    t.push_next = head.push_next != 0;
    return t;
}

inline uint32_t queue_bit(Queue queue, bool set) {
#pragma HLS inline
    return set ? 1u << static_cast<uint32_t>(queue) : 0u;
}

// Take at most `bound` tokens that are left over.
template <int BOUND, class T>
inline void drain(hls::stream<T>& stream) {
    for (int n = 0; n < BOUND; ++n) {
#pragma HLS pipeline II = 1
        T left;
        if (!stream.read_nb(left)) break;
    }
}

}  // namespace openvta

#endif  // OPENVTA_VTA_CHANNELS_H
