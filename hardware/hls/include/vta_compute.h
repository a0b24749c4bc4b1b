// SPDX-License-Identifier: Apache-2.0
// The compute stage's parts: one function an instruction, all on the same scratchpads.
#ifndef OPENVTA_VTA_COMPUTE_H
#define OPENVTA_VTA_COMPUTE_H

#include "vta_unit.h"

namespace openvta {

// Writes to acc that the pipeline may not have completed when a later operation reads: it must be larger than the number of
// operations between the read and the write of one operation. Reads look here first, so the loops may be pipelined
// although operations depend on each other through acc.
constexpr uint32_t RECENT = 8;

// How many operations pass between two signs of life to the watchdog.
constexpr uint32_t LIVE_EVERY = 1024;

struct Recent {
    uint32_t index[RECENT];
    acc_t value[RECENT][LANES];
    uint32_t newest;
};

inline void forget(Recent& recent) {
#pragma HLS inline
    recent.newest = 0;
    for (uint32_t n = 0; n < RECENT; ++n) {
#pragma HLS unroll
        recent.index[n] = ACC_DEPTH;
    }
}

inline void acc_read(acc_t acc_mem[ACC_DEPTH][LANES], const Recent& recent, uint32_t index, acc_t value[LANES]) {
#pragma HLS inline
    for (uint32_t lane = 0; lane < LANES; ++lane) {
#pragma HLS unroll
        value[lane] = acc_mem[index][lane];
    }
    for (uint32_t age = RECENT; age > 0; --age) {
#pragma HLS unroll
        const uint32_t at = (recent.newest + age - 1) % RECENT;  // the newest last
        if (recent.index[at] == index) {
            for (uint32_t lane = 0; lane < LANES; ++lane) {
#pragma HLS unroll
                value[lane] = recent.value[at][lane];
            }
        }
    }
}

inline void acc_write(acc_t acc_mem[ACC_DEPTH][LANES], Recent& recent, uint32_t index, const acc_t value[LANES]) {
#pragma HLS inline
    recent.newest = (recent.newest + RECENT - 1) % RECENT;
    recent.index[recent.newest] = index;
    for (uint32_t lane = 0; lane < LANES; ++lane) {
#pragma HLS unroll
        acc_mem[index][lane] = value[lane];
        recent.value[recent.newest][lane] = value[lane];
    }
}

// acc lanes on their way to out: the low bits, or limited to the range of an out lane.
inline out_t narrow(acc_t value, bool saturate) {
#pragma HLS inline
    const int32_t wide = static_cast<int32_t>(value);
    const int32_t most = (1 << (OUT_BITS - 1)) - 1, least = -(1 << (OUT_BITS - 1));
    const int32_t limited = wide > most ? most : wide < least ? least : wide;
    return static_cast<out_t>(saturate ? limited : low_bits<OUT_BITS>(wide));
}

inline void out_write(out_t out_mem[ACC_DEPTH][LANES], uint32_t index, const acc_t value[LANES], bool saturate) {
#pragma HLS inline
    for (uint32_t lane = 0; lane < LANES; ++lane) {
#pragma HLS unroll
        out_mem[index][lane] = narrow(value[lane], saturate);
    }
}

// Position in a loop nest of `outer` by `inner` by micro-op; the indices of an operation without their micro-op's part.
struct Nest {
    uint32_t inner;
    uint32_t uop;
    uint64_t first_outer;   // sums of the factors at the start of the present inner loop
    uint64_t second_outer;
    uint64_t third_outer;
    uint64_t first;
    uint64_t second;
    uint64_t third;
};

inline Nest nest_at_start(uint32_t uop_begin) {
#pragma HLS inline
    const Nest n = {0, uop_begin, 0, 0, 0, 0, 0, 0};
    return n;
}

// One operation on: micro-op innermost, then the inner loop, then the outer.
inline void advance(Nest& n, uint32_t uop_begin, uint32_t uop_end, uint32_t iter_in, const uint32_t outer[3],
                    const uint32_t inner[3]) {
#pragma HLS inline
    n.uop += 1;
    if (n.uop != uop_end) return;
    n.uop = uop_begin;
    n.inner += 1;
    if (n.inner != iter_in) {
        n.first += inner[0];
        n.second += inner[1];
        n.third += inner[2];
        return;
    }
    n.inner = 0;
    n.first = n.first_outer += outer[0];
    n.second = n.second_outer += outer[1];
    n.third = n.third_outer += outer[2];
}

bool run_gemm(const Command& command, const uint32_t uop_mem[UOP_DEPTH][1], inp_t inp_mem[INP_DEPTH][LANES],
              wgt_t wgt_mem[WGT_DEPTH][WGT_LANES], acc_t acc_mem[ACC_DEPTH][LANES], out_t out_mem[ACC_DEPTH][LANES],
              token_stream& alive, Report& report);

bool run_alu(const Command& command, const uint32_t uop_mem[UOP_DEPTH][1], acc_t acc_mem[ACC_DEPTH][LANES],
             out_t out_mem[ACC_DEPTH][LANES], token_stream& alive, Report& report);

bool run_requant(const Command& command, acc_t acc_mem[ACC_DEPTH][LANES], out_t out_mem[ACC_DEPTH][LANES],
                 token_stream& alive, Report& report);

}  // namespace openvta

#endif  // OPENVTA_VTA_COMPUTE_H
