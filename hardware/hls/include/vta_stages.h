// SPDX-License-Identifier: Apache-2.0
// The stages of the core. Each call is one step: it never waits, and does at most one instruction. The top level calls all of
// them in a dataflow region, where each starts again as soon as it is done.
#ifndef OPENVTA_VTA_STAGES_H
#define OPENVTA_VTA_STAGES_H

#include "vta_channels.h"

namespace openvta {

// AXI4-Lite channels as streams: a beat of each is one transfer of that channel. Addresses are byte offsets of registers;
// W carries WDATA and WSTRB (strb), R carries RDATA and RRESP (user).
typedef ap_uint<16> axil_address_t;
typedef ap_axiu<32, 2, 1, 1> axil_data_t;
typedef ap_uint<8> axil_response_t;


// Registers, errors, counters and the watchdog; starts runs and ends them. One register access and one report of each
// unit a step.
void control(hls::stream<axil_address_t>& aw, hls::stream<axil_data_t>& w, hls::stream<axil_response_t>& b,
             hls::stream<axil_address_t>& ar, hls::stream<axil_data_t>& r, ap_uint<1>* interrupt,
             launch_stream& launches, order_stream& fetch_orders, order_stream& load_orders, order_stream& compute_orders,
             order_stream& store_orders, report_stream& fetch_reports, report_stream& load_reports,
             report_stream& compute_reports, report_stream& store_reports, token_stream& load_alive,
             token_stream& compute_alive, token_stream& store_alive);

// Reads the stream, checks every word, sends it to its unit. One instruction a step.
void fetch(const insn_word_t* memory, Window window, launch_stream& launches, order_stream& orders, report_stream& reports,
           command_stream& load_commands, command_stream& compute_commands, command_stream& store_commands);

// LOAD of inp and wgt.
void load(const inp_word_t* inp_memory, const wgt_word_t* wgt_memory, Window window, command_stream& commands,
          order_stream& orders, report_stream& reports, token_stream& alive, token_stream& from_compute,
          token_stream& to_compute, inp_t inp_mem[INP_DEPTH][LANES], wgt_t wgt_mem[WGT_DEPTH][WGT_LANES]);

// LOAD of uop and acc, GEMM, ALU, REQUANT, FINISH.
void compute(const uop_word_t* uop_memory, const acc_word_t* acc_memory, Window window, command_stream& commands,
             order_stream& orders, report_stream& reports, token_stream& alive, token_stream& from_load,
             token_stream& from_store, token_stream& to_load, token_stream& to_store, inp_t inp_mem[INP_DEPTH][LANES],
             wgt_t wgt_mem[WGT_DEPTH][WGT_LANES], out_t out_mem[ACC_DEPTH][LANES]);

// STORE of out.
void store(out_word_t* memory, Window window, command_stream& commands, order_stream& orders, report_stream& reports,
           token_stream& alive, token_stream& from_compute, token_stream& to_compute, out_t out_mem[ACC_DEPTH][LANES]);

}  // namespace openvta

#endif  // OPENVTA_VTA_STAGES_H
