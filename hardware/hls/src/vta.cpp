// SPDX-License-Identifier: Apache-2.0
// The top level: five stages in a dataflow region that never ends. A call is one step of each stage.
#include "vta.h"

#ifndef HLS_SIM_STAGE
#define HLS_SIM_STAGE(number)  // our simulation may give each stage a thread of its own
#endif

namespace openvta {

namespace {

// Instructions and tokens: the depths of the configuration are part of the instruction set.
hls::stream<Command, QUEUE_DEPTH> load_commands("load instructions");
hls::stream<Command, QUEUE_DEPTH> compute_commands("compute instructions");
hls::stream<Command, QUEUE_DEPTH> store_commands("store instructions");
hls::stream<token_t, TOKEN_DEPTH> load_to_compute("load_to_compute");
hls::stream<token_t, TOKEN_DEPTH> compute_to_load("compute_to_load");
hls::stream<token_t, TOKEN_DEPTH> compute_to_store("compute_to_store");
hls::stream<token_t, TOKEN_DEPTH> store_to_compute("store_to_compute");

hls::stream<Launch, ORDER_DEPTH> launches("launches");
hls::stream<Order, ORDER_DEPTH> fetch_orders("fetch orders");
hls::stream<Order, ORDER_DEPTH> load_orders("load orders");
hls::stream<Order, ORDER_DEPTH> compute_orders("compute orders");
hls::stream<Order, ORDER_DEPTH> store_orders("store orders");
hls::stream<Report, REPORT_DEPTH> fetch_reports("fetch reports");
hls::stream<Report, REPORT_DEPTH> load_reports("load reports");
hls::stream<Report, REPORT_DEPTH> compute_reports("compute reports");
hls::stream<Report, REPORT_DEPTH> store_reports("store reports");
hls::stream<token_t, 1> load_alive("load alive");
hls::stream<token_t, 1> compute_alive("compute alive");
hls::stream<token_t, 1> store_alive("store alive");

// Scratchpads between stages. Tokens order all accesses, so the memories need no synchronisation of their own.
inp_t inp_mem[INP_DEPTH][LANES];
wgt_t wgt_mem[WGT_DEPTH][WGT_LANES];
out_t out_mem[ACC_DEPTH][LANES];

}  // namespace

}  // namespace openvta

using namespace openvta;

void vta(const insn_word_t* m_axi_insn, const uop_word_t* m_axi_uop, const inp_word_t* m_axi_inp, const wgt_word_t* m_axi_wgt,
         const acc_word_t* m_axi_acc, out_word_t* m_axi_out, uint64_t memory_base, uint64_t memory_bytes,
         hls::stream<axil_address_t>& s_axil_aw, hls::stream<axil_data_t>& s_axil_w, hls::stream<axil_response_t>& s_axil_b,
         hls::stream<axil_address_t>& s_axil_ar, hls::stream<axil_data_t>& s_axil_r, ap_uint<1>* interrupt) {
// Memory: the bundles follow the units; offsets come from a port that the shell ties to the start of the window.
#pragma HLS interface m_axi port = m_axi_insn bundle = insn offset = direct depth = 4096 max_read_burst_length = AXI_BURST_BEATS num_read_outstanding = AXI_OUTSTANDING
#pragma HLS interface m_axi port = m_axi_inp bundle = inp offset = direct depth = 65536 max_read_burst_length = AXI_BURST_BEATS num_read_outstanding = AXI_OUTSTANDING
#pragma HLS interface m_axi port = m_axi_wgt bundle = wgt offset = direct depth = 65536 max_read_burst_length = AXI_BURST_BEATS num_read_outstanding = AXI_OUTSTANDING
#pragma HLS interface m_axi port = m_axi_uop bundle = uop offset = direct depth = 65536 max_read_burst_length = AXI_BURST_BEATS num_read_outstanding = AXI_OUTSTANDING
#pragma HLS interface m_axi port = m_axi_acc bundle = acc offset = direct depth = 65536 max_read_burst_length = AXI_BURST_BEATS num_read_outstanding = AXI_OUTSTANDING
#pragma HLS interface m_axi port = m_axi_out bundle = out offset = direct depth = 65536 max_write_burst_length = AXI_BURST_BEATS num_write_outstanding = AXI_OUTSTANDING
#pragma HLS interface ap_none port = memory_base
#pragma HLS interface ap_none port = memory_bytes
// Registers: the five channels of an AXI4-Lite slave, since the tool's own slave cannot have this register map.
#pragma HLS interface axis port = s_axil_aw
#pragma HLS interface axis port = s_axil_w
#pragma HLS interface axis port = s_axil_b
#pragma HLS interface axis port = s_axil_ar
#pragma HLS interface axis port = s_axil_r
#pragma HLS interface ap_none port = interrupt
// Free running: each stage starts again when it is done, none waits for another to start.
#pragma HLS interface ap_ctrl_none port = return
#pragma HLS dataflow disable_start_propagation
// A scratchpad element is one word; load writes and compute reads at the same time, ordered by tokens alone.
#pragma HLS array_reshape variable = inp_mem dim = 2 complete
#pragma HLS array_reshape variable = wgt_mem dim = 2 complete
#pragma HLS array_reshape variable = out_mem dim = 2 complete
#pragma HLS bind_storage variable = inp_mem type = ram_s2p impl = bram
#pragma HLS bind_storage variable = wgt_mem type = ram_s2p impl = bram
#pragma HLS bind_storage variable = out_mem type = ram_s2p impl = bram
#pragma HLS stream variable = inp_mem type = unsync
#pragma HLS stream variable = wgt_mem type = unsync
#pragma HLS stream variable = out_mem type = unsync

    const Window window = {memory_base, memory_bytes};
    HLS_SIM_STAGE(0)
    control(s_axil_aw, s_axil_w, s_axil_b, s_axil_ar, s_axil_r, interrupt, launches, fetch_orders, load_orders,
            compute_orders, store_orders, fetch_reports, load_reports, compute_reports, store_reports, load_alive,
            compute_alive, store_alive);
    HLS_SIM_STAGE(1)
    fetch(m_axi_insn, window, launches, fetch_orders, fetch_reports, load_commands, compute_commands, store_commands);
    HLS_SIM_STAGE(2)
    load(m_axi_inp, m_axi_wgt, window, load_commands, load_orders, load_reports, load_alive, compute_to_load,
         load_to_compute, inp_mem, wgt_mem);
    HLS_SIM_STAGE(3)
    compute(m_axi_uop, m_axi_acc, window, compute_commands, compute_orders, compute_reports, compute_alive, load_to_compute,
            store_to_compute, compute_to_load, compute_to_store, inp_mem, wgt_mem, out_mem);
    HLS_SIM_STAGE(4)
    store(m_axi_out, window, store_commands, store_orders, store_reports, store_alive, compute_to_store, store_to_compute,
          out_mem);
}
