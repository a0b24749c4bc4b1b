// SPDX-License-Identifier: Apache-2.0
// Reset and compiled host and memory around the accelerator. `wake` toggles when the host side is done with a request; it is
// the only signal that leaves compiled code. The clock comes from the main program.
`timescale 1ns/1ps
module fast_top(input bit clock, output bit wake_out);
  bit wake = 0;
  assign wake_out = wake;

  bit aresetn = 0;

  // AXI4-Lite, host side
  bit [11:0] s_awaddr, s_araddr;
  bit s_awvalid, s_wvalid, s_bready, s_arvalid, s_rready;
  bit [31:0] s_wdata;
  wire s_awready, s_wready, s_bvalid, s_arready, s_rvalid;
  wire [1:0] s_bresp, s_rresp;
  wire [31:0] s_rdata;

  // AXI4, memory side
  wire [`ID_BITS-1:0] m_awid, m_arid;
  wire [63:0] m_awaddr, m_araddr;
  wire [7:0] m_awlen, m_arlen;
  wire m_awvalid, m_wvalid, m_wlast, m_bready, m_arvalid, m_rready;
  wire [`DATA_BITS-1:0] m_wdata;
  wire [`DATA_BITS/8-1:0] m_wstrb;
  bit m_awready, m_wready, m_bvalid, m_arready, m_rvalid, m_rlast;
  bit [`ID_BITS-1:0] m_bid, m_rid;
  bit [1:0] m_bresp, m_rresp;
  bit [`DATA_BITS-1:0] m_rdata;

  wire interrupt;
  wire trace_load_valid, trace_compute_valid, trace_store_valid, trace_gemm_last;
  wire [31:0] trace_load_index, trace_compute_index, trace_store_index;
`ifdef TRACE
  wire [31:0] trace_aw_tag;
`else
  wire [31:0] trace_aw_tag = 0;
`endif

  VtaTop dut (
    .clock(clock), .aresetn(aresetn), .interrupt(interrupt),
    .s_axil_awaddr(s_awaddr), .s_axil_awvalid(s_awvalid), .s_axil_awready(s_awready),
    .s_axil_wdata(s_wdata), .s_axil_wstrb(4'hf), .s_axil_wvalid(s_wvalid), .s_axil_wready(s_wready),
    .s_axil_bresp(s_bresp), .s_axil_bvalid(s_bvalid), .s_axil_bready(s_bready),
    .s_axil_araddr(s_araddr), .s_axil_arvalid(s_arvalid), .s_axil_arready(s_arready),
    .s_axil_rdata(s_rdata), .s_axil_rresp(s_rresp), .s_axil_rvalid(s_rvalid), .s_axil_rready(s_rready),
    .m_axi_awid(m_awid), .m_axi_awaddr(m_awaddr), .m_axi_awlen(m_awlen), .m_axi_awsize(), .m_axi_awburst(),
    .m_axi_awcache(), .m_axi_awprot(), .m_axi_awlock(), .m_axi_awqos(),
    .m_axi_awvalid(m_awvalid), .m_axi_awready(m_awready),
    .m_axi_wdata(m_wdata), .m_axi_wstrb(m_wstrb), .m_axi_wlast(m_wlast), .m_axi_wvalid(m_wvalid), .m_axi_wready(m_wready),
    .m_axi_bid(m_bid), .m_axi_bresp(m_bresp), .m_axi_bvalid(m_bvalid), .m_axi_bready(m_bready),
    .m_axi_arid(m_arid), .m_axi_araddr(m_araddr), .m_axi_arlen(m_arlen), .m_axi_arsize(), .m_axi_arburst(),
    .m_axi_arcache(), .m_axi_arprot(), .m_axi_arlock(), .m_axi_arqos(),
    .m_axi_arvalid(m_arvalid), .m_axi_arready(m_arready),
    .m_axi_rid(m_rid), .m_axi_rdata(m_rdata), .m_axi_rresp(m_rresp), .m_axi_rlast(m_rlast),
    .m_axi_rvalid(m_rvalid), .m_axi_rready(m_rready),
    .trace_load_valid(trace_load_valid), .trace_load_index(trace_load_index),
    .trace_compute_valid(trace_compute_valid), .trace_compute_index(trace_compute_index),
`ifdef TRACE
    .trace_aw_tag(trace_aw_tag),
`endif
    .trace_store_valid(trace_store_valid), .trace_store_index(trace_store_index),
    .trace_gemm_last(trace_gemm_last)
  );

  import "DPI-C" function bit fast_host(
    input bit awready, input bit wready, input bit bvalid, input bit arready, input bit rvalid, input int rdata,
    output bit aresetn, output bit awvalid, output bit wvalid, output bit bready, output bit arvalid, output bit rready,
    output int awaddr, output int wdata, output int araddr);
  import "DPI-C" function void fast_read(
    input bit arvalid, input bit rready, input int arid, input longint araddr, input int arlen,
    output bit arready, output bit rvalid, output bit rlast, output int rid, output int rresp,
    output bit [`DATA_BITS-1:0] rdata);
  import "DPI-C" function void fast_write(
    input bit awvalid, input bit wvalid, input bit wlast, input bit bready, input int awid, input longint awaddr,
    input int awlen, input int awtag, input bit [`DATA_BITS-1:0] wdata, input longint wstrb,
    output bit awready, output bit wready, output bit bvalid, output int bid, output int bresp);
  import "DPI-C" function void fast_retire(
    input bit load_valid, input bit compute_valid, input bit store_valid,
    input int load_index, input int compute_index, input int store_index);
  import "DPI-C" function void fast_gemm_last();

  bit n_aresetn, n_awvalid, n_wvalid, n_bready, n_arvalid, n_rready;
  int n_awaddr, n_wdata, n_araddr;
  bit n_m_arready, n_m_rvalid, n_m_rlast, n_m_awready, n_m_wready, n_m_bvalid;
  int n_rid, n_rresp, n_bid, n_bresp;
  bit [`DATA_BITS-1:0] n_rdata;

  always @(posedge clock) begin
    if (trace_load_valid | trace_compute_valid | trace_store_valid)
      fast_retire(trace_load_valid, trace_compute_valid, trace_store_valid,
                  trace_load_index, trace_compute_index, trace_store_index);
    if (trace_gemm_last) fast_gemm_last();
    fast_read(m_arvalid, m_rready, 32'(m_arid), m_araddr, 32'(m_arlen),
              n_m_arready, n_m_rvalid, n_m_rlast, n_rid, n_rresp, n_rdata);
    fast_write(m_awvalid, m_wvalid, m_wlast, m_bready, 32'(m_awid), m_awaddr, 32'(m_awlen), trace_aw_tag, m_wdata, 64'(m_wstrb),
               n_m_awready, n_m_wready, n_m_bvalid, n_bid, n_bresp);
    if (fast_host(s_awready, s_wready, s_bvalid, s_arready, s_rvalid, s_rdata,
                  n_aresetn, n_awvalid, n_wvalid, n_bready, n_arvalid, n_rready, n_awaddr, n_wdata, n_araddr))
      wake <= ~wake;
    aresetn <= n_aresetn;
    s_awvalid <= n_awvalid; s_wvalid <= n_wvalid; s_bready <= n_bready;
    s_arvalid <= n_arvalid; s_rready <= n_rready;
    s_awaddr <= n_awaddr[11:0]; s_araddr <= n_araddr[11:0]; s_wdata <= n_wdata;
    m_arready <= n_m_arready; m_rvalid <= n_m_rvalid; m_rlast <= n_m_rlast;
    m_rid <= n_rid[`ID_BITS-1:0]; m_rresp <= n_rresp[1:0]; m_rdata <= n_rdata;
    m_awready <= n_m_awready; m_wready <= n_m_wready; m_bvalid <= n_m_bvalid;
    m_bid <= n_bid[`ID_BITS-1:0]; m_bresp <= n_bresp[1:0];
  end
endmodule
