// SPDX-License-Identifier: Apache-2.0
// A small bus master with the accelerator's ports, to test memories, hosts and sessions without the accelerator.
// It copies COUNT bursts of four beats from SOURCE to TARGET, several in flight in each direction.
`ifndef DATA_BITS
`define DATA_BITS 64
`endif
`ifndef ID_BITS
`define ID_BITS 4
`endif
module VtaTop (
  input clock, input aresetn, output interrupt,
  input [11:0] s_axil_awaddr, input s_axil_awvalid, output s_axil_awready,
  input [31:0] s_axil_wdata, input [3:0] s_axil_wstrb, input s_axil_wvalid, output s_axil_wready,
  output [1:0] s_axil_bresp, output reg s_axil_bvalid, input s_axil_bready,
  input [11:0] s_axil_araddr, input s_axil_arvalid, output s_axil_arready,
  output reg [31:0] s_axil_rdata, output [1:0] s_axil_rresp, output reg s_axil_rvalid, input s_axil_rready,
  output [`ID_BITS-1:0] m_axi_awid, output [63:0] m_axi_awaddr, output [7:0] m_axi_awlen, output [2:0] m_axi_awsize,
  output [1:0] m_axi_awburst, output [3:0] m_axi_awcache, output [2:0] m_axi_awprot, output m_axi_awlock,
  output [3:0] m_axi_awqos, output m_axi_awvalid, input m_axi_awready,
  output [`DATA_BITS-1:0] m_axi_wdata, output [`DATA_BITS/8-1:0] m_axi_wstrb, output m_axi_wlast, output m_axi_wvalid,
  input m_axi_wready,
  input [`ID_BITS-1:0] m_axi_bid, input [1:0] m_axi_bresp, input m_axi_bvalid, output m_axi_bready,
  output [`ID_BITS-1:0] m_axi_arid, output [63:0] m_axi_araddr, output [7:0] m_axi_arlen, output [2:0] m_axi_arsize,
  output [1:0] m_axi_arburst, output [3:0] m_axi_arcache, output [2:0] m_axi_arprot, output m_axi_arlock,
  output [3:0] m_axi_arqos, output m_axi_arvalid, input m_axi_arready,
  input [`ID_BITS-1:0] m_axi_rid, input [`DATA_BITS-1:0] m_axi_rdata, input [1:0] m_axi_rresp, input m_axi_rlast,
  input m_axi_rvalid, output m_axi_rready,
  output trace_load_valid, output [31:0] trace_load_index,
  output trace_compute_valid, output [31:0] trace_compute_index,
  output trace_store_valid, output [31:0] trace_store_index, output trace_gemm_last
);
  localparam int BEATS = 4;
  localparam int BYTES = `DATA_BITS / 8;
  localparam int ROOM = 64;

  // Registers: 0 launch, 4 cycles, 8 count, 12/16 source, 20/24 target, 28 responses seen (sticky or), 32 tail strobes,
  // 84 running, 88 a register that never answers a read.
  reg [31:0] cycles, count, tail_strobes;
  reg [63:0] source, target;
  reg [1:0] responses;
  reg running;
  wire host_write = s_axil_awvalid & s_axil_wvalid & ~s_axil_bvalid;
  wire launch = host_write & (s_axil_awaddr == 0) & s_axil_wdata[0];
  wire silent = s_axil_araddr == 12'd88;
  assign s_axil_awready = host_write;
  assign s_axil_wready = host_write;
  assign s_axil_arready = ~s_axil_rvalid;
  assign s_axil_bresp = 0;
  assign s_axil_rresp = 0;

  // Bursts requested and finished, beats held between the directions.
  reg [31:0] ar_count, r_count, aw_count, w_beats, b_count, beats_in;
  reg [`DATA_BITS-1:0] hold [ROOM];
  wire [31:0] held = beats_in - w_beats;
  wire r_take = m_axi_rvalid & m_axi_rready;
  wire w_take = m_axi_wvalid & m_axi_wready;
  wire b_take = m_axi_bvalid & m_axi_bready;

  assign m_axi_arvalid = running & (ar_count != count) & ((ar_count * BEATS - w_beats) <= ROOM - BEATS);
  assign m_axi_araddr = source + 64'(ar_count) * BEATS * BYTES;
  assign m_axi_arid = ar_count[`ID_BITS-1:0];
  assign m_axi_arlen = BEATS - 1;
  assign m_axi_rready = 1;
  assign m_axi_awvalid = running & (aw_count != count);
  assign m_axi_awaddr = target + 64'(aw_count) * BEATS * BYTES;
  assign m_axi_awid = aw_count[`ID_BITS-1:0];
  assign m_axi_awlen = BEATS - 1;
  assign m_axi_wvalid = running & (held != 0);
  assign m_axi_wdata = hold[w_beats % ROOM];
  wire last_beat = (w_beats + 1) == count * BEATS;
  assign m_axi_wstrb = last_beat & (tail_strobes != 0) ? tail_strobes[BYTES-1:0] : {BYTES{1'b1}};
  assign m_axi_wlast = (w_beats % BEATS) == BEATS - 1;
  assign m_axi_bready = 1;
  assign {m_axi_arsize, m_axi_awsize} = {2{3'($clog2(BYTES))}};
  assign {m_axi_arburst, m_axi_awburst} = {2{2'b01}};
  assign {m_axi_arcache, m_axi_awcache, m_axi_arqos, m_axi_awqos} = 0;
  assign {m_axi_arprot, m_axi_awprot, m_axi_arlock, m_axi_awlock} = 0;
  assign interrupt = ~running;

  assign trace_load_valid = r_take & m_axi_rlast;
  assign trace_load_index = r_count;
  assign trace_store_valid = b_take;
  assign trace_store_index = b_count;
  assign trace_compute_valid = b_take & (b_count + 1 == count);
  assign trace_compute_index = count;
  assign trace_gemm_last = b_take;

  always @(posedge clock) begin
    if (~aresetn) begin
      s_axil_bvalid <= 0;
      s_axil_rvalid <= 0;
      running <= 0;
      count <= 0;
      tail_strobes <= 0;
    end else begin
      if (host_write) begin
        s_axil_bvalid <= 1;
        case (s_axil_awaddr)
          12'd8: count <= s_axil_wdata;
          12'd12: source[31:0] <= s_axil_wdata;
          12'd16: source[63:32] <= s_axil_wdata;
          12'd20: target[31:0] <= s_axil_wdata;
          12'd24: target[63:32] <= s_axil_wdata;
          12'd32: tail_strobes <= s_axil_wdata;
          default: ;
        endcase
      end else if (s_axil_bready) s_axil_bvalid <= 0;
      if (s_axil_arvalid & s_axil_arready & ~silent) begin
        s_axil_rvalid <= 1;
        case (s_axil_araddr)
          12'd4: s_axil_rdata <= cycles;
          12'd8: s_axil_rdata <= count;
          12'd28: s_axil_rdata <= 32'(responses);
          12'd84: s_axil_rdata <= 32'(running);
          default: s_axil_rdata <= 32'h0badc0de;
        endcase
      end else if (s_axil_rready) s_axil_rvalid <= 0;
      if (launch) begin
        running <= count != 0;
        {cycles, ar_count, r_count, aw_count, w_beats, b_count, beats_in} <= 0;
        responses <= 0;
      end else if (running) begin
        cycles <= cycles + 1;
        if (m_axi_arvalid & m_axi_arready) ar_count <= ar_count + 1;
        if (m_axi_awvalid & m_axi_awready) aw_count <= aw_count + 1;
        if (r_take) begin
          hold[beats_in % ROOM] <= m_axi_rdata;
          beats_in <= beats_in + 1;
          responses <= responses | m_axi_rresp;
          if (m_axi_rlast) r_count <= r_count + 1;
        end
        if (w_take) w_beats <= w_beats + 1;
        if (b_take) begin
          responses <= responses | m_axi_bresp;
          b_count <= b_count + 1;
          if (b_count + 1 == count) running <= 0;
        end
      end
    end
  end
endmodule
