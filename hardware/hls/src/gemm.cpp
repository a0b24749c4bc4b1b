// SPDX-License-Identifier: Apache-2.0
// GEMM: one micro-op a cycle (II = 1), whatever its indices. A run of operations on the same dst is summed in registers and
// written once, so acc is read only where a run begins.
#include "vta_compute.h"

namespace openvta {

namespace {

// Sums of products of one element: BATCH rows of inp times the wgt tile, whose lanes lie input by input.
void dot_products(const inp_t inp[LANES], const wgt_t wgt[WGT_LANES], dot_t sums[LANES]) {
#pragma HLS inline
    for (uint32_t lane = 0; lane < LANES; ++lane) {
#pragma HLS unroll
        sums[lane] = 0;
    }
    for (uint32_t b = 0; b < BATCH; ++b) {
#pragma HLS unroll
        for (uint32_t k = 0; k < BLOCK; ++k) {
#pragma HLS unroll
            for (uint32_t o = 0; o < BLOCK; ++o) {
#pragma HLS unroll
                sums[b * BLOCK + o] += inp[b * BLOCK + k] * wgt[k * BLOCK + o];
            }
        }
    }
}

acc_t add(acc_t a, dot_t b) {
#pragma HLS inline
    return static_cast<acc_t>(static_cast<int32_t>(static_cast<uint32_t>(static_cast<int32_t>(a)) +
                                                   static_cast<uint32_t>(static_cast<int32_t>(b))));
}

}  // namespace

bool run_gemm(const Command& command, const uint32_t uop_mem[UOP_DEPTH][1], inp_t inp_mem[INP_DEPTH][LANES],
              wgt_t wgt_mem[WGT_DEPTH][WGT_LANES], acc_t acc_mem[ACC_DEPTH][LANES], out_t out_mem[ACC_DEPTH][LANES],
              token_stream& alive, Report& report) {
    const GemmFields f = unpack_gemm(command.word);
    const bool reset = f.reset != 0, saturate = f.sat != 0;
    const uint32_t outer[3] = {f.dst_factor_out, f.src_factor_out, f.wgt_factor_out};
    const uint32_t inner[3] = {f.dst_factor_in, f.src_factor_in, f.wgt_factor_in};
    const uint64_t total = static_cast<uint64_t>(f.iter_out) * f.iter_in * (f.uop_end - f.uop_begin);
    Nest nest = nest_at_start(f.uop_begin);
    Recent recent;
#pragma HLS array_partition variable = recent.index complete
#pragma HLS array_partition variable = recent.value complete dim = 0
    forget(recent);
    acc_t running[LANES];
#pragma HLS array_partition variable = running complete
    for (uint32_t lane = 0; lane < LANES; ++lane) {
#pragma HLS unroll
        running[lane] = 0;
    }
    uint32_t previous = ACC_DEPTH;  // dst of the run in the registers; none yet
    bool fault = false;
    uint64_t writes = 0;
    for (uint64_t n = 0; n < total && !fault; ++n) {
#pragma HLS pipeline II = 1
#pragma HLS loop_tripcount min = 16 max = 65536
#pragma HLS dependence variable = acc_mem type = inter false
        const UopFields uop = unpack_uop(uop_mem[nest.uop][0]);
        const uint64_t dst = nest.first + uop.dst, src = nest.second + uop.src, wgt = nest.third + uop.wgt;
        fault = dst >= ACC_DEPTH || (!reset && (src >= INP_DEPTH || wgt >= WGT_DEPTH));
        if (!fault) {
            const uint32_t at = static_cast<uint32_t>(dst);
            if (!reset) {
                if (at != previous && previous != ACC_DEPTH) {
                    acc_write(acc_mem, recent, previous, running);
                    out_write(out_mem, previous, running, saturate);
                }
                if (at != previous) {
                    acc_read(acc_mem, recent, at, running);
                    writes += 1;
                }
                dot_t sums[LANES];
#pragma HLS array_partition variable = sums complete
                dot_products(inp_mem[src], wgt_mem[wgt], sums);
                for (uint32_t lane = 0; lane < LANES; ++lane) {
#pragma HLS unroll
                    running[lane] = add(running[lane], sums[lane]);
                }
            } else {
                acc_write(acc_mem, recent, at, running);  // zeros
                writes += 1;
            }
            previous = at;
            advance(nest, f.uop_begin, f.uop_end, f.iter_in, outer, inner);
            if (n % LIVE_EVERY == 0) live(alive);
        }
    }
    if (fault) {
        report = fault_of(Cause::INDEX_RANGE, command.index);
        return false;
    }
    if (!reset && previous != ACC_DEPTH) {
        acc_write(acc_mem, recent, previous, running);
        out_write(out_mem, previous, running, saturate);
    }
    report.counter = counter::GEMM_UOPS;
    report.amount = total;
    report.acc_writes = writes;
    return true;
}

}  // namespace openvta
