// SPDX-License-Identifier: Apache-2.0
// The read port of the bus, for one client that stands for any of them.
// dut: ReadEngine
// depth: 16
// steps: 2
// internal: v_0 = dut.outstanding_0, v_1 = dut.outstanding_1, v_2 = dut.outstanding_2, v_3 = dut.outstanding_3
// internal: v_4 = dut.outstanding_4, s_0 = dut.stale_0, s_1 = dut.stale_1, s_2 = dut.stale_2, s_3 = dut.stale_3
// internal: s_4 = dut.stale_4
// i_counts: the harness counts the client's bursts as the engine does
// i_stale: bursts of an earlier epoch are among those in flight
// m_answer: the memory sends data only for bursts it was asked for
// p_stable: AR does not change, and stays valid, until it is taken
// p_id: a burst's id is that of a client
// p_limit: no client has more bursts in flight than the configuration allows
// p_route: a beat goes to the client of its id, and to no other
// p_epoch: a beat of a burst asked for before a flush reaches no client
// p_lossless: a beat of this epoch is taken only when its client takes it, and a client is offered only beats of the bus
// p_flush: while it flushes no command is taken and no beat reaches a client
// p_one: at most one command is taken in a cycle
// p_idle: idle only when the client has nothing in flight
module harness(
  input clock, input restart, input [4:0] valid, input [63:0] address0, address1, address2, address3, address4,
  input [3:0] beats0, beats1, beats2, beats3, beats4, input [4:1] data_ready,
  input ar_ready, r_valid, r_last, input [`AXI_ID_BITS - 1:0] r_id, input [`AXI_DATA_BITS - 1:0] r_data, input [1:0] r_resp,
  input flush, input [2:0] any_client,
  output m_answer,
  output p_stable, output p_id, output p_limit, output p_route, output p_epoch, output p_lossless, output p_flush,
  output p_one, output p_idle,
  output c_stable, output c_id, output c_limit, output c_route, output c_epoch, output c_lossless, output c_flush,
  output c_one, output c_idle, output i_counts, output i_stale
);
  reg started = 0;
  always @(posedge clock) started <= 1;
  wire reset = !started | restart;
  wire live = started & !restart;

  wire [4:0] ready, data, last, fault;
  wire ar_valid, r_ready, idle;
  wire [`AXI_ID_BITS - 1:0] ar_id;
  wire [63:0] ar_addr;
  wire [7:0] ar_len;
  wire [`AXI_DATA_BITS - 1:0] d0, d1, d2, d3, d4;
  `DUT dut(
    .clock(clock), .reset(reset),
    .io_clients_0_command_ready(ready[0]), .io_clients_0_command_valid(valid[0]),
    .io_clients_0_command_bits_address(address0), .io_clients_0_command_bits_beats(beats0),
    .io_clients_0_data_valid(data[0]), .io_clients_0_data_bits_data(d0), .io_clients_0_data_bits_fault(fault[0]),
    .io_clients_1_command_ready(ready[1]), .io_clients_1_command_valid(valid[1]),
    .io_clients_1_command_bits_address(address1), .io_clients_1_command_bits_beats(beats1),
    .io_clients_1_data_ready(data_ready[1]), .io_clients_1_data_valid(data[1]), .io_clients_1_data_bits_data(d1),
    .io_clients_1_data_bits_last(last[1]), .io_clients_1_data_bits_fault(fault[1]),
    .io_clients_2_command_ready(ready[2]), .io_clients_2_command_valid(valid[2]),
    .io_clients_2_command_bits_address(address2), .io_clients_2_command_bits_beats(beats2),
    .io_clients_2_data_ready(data_ready[2]), .io_clients_2_data_valid(data[2]), .io_clients_2_data_bits_data(d2),
    .io_clients_2_data_bits_last(last[2]), .io_clients_2_data_bits_fault(fault[2]),
    .io_clients_3_command_ready(ready[3]), .io_clients_3_command_valid(valid[3]),
    .io_clients_3_command_bits_address(address3), .io_clients_3_command_bits_beats(beats3),
    .io_clients_3_data_ready(data_ready[3]), .io_clients_3_data_valid(data[3]), .io_clients_3_data_bits_data(d3),
    .io_clients_3_data_bits_last(last[3]), .io_clients_3_data_bits_fault(fault[3]),
    .io_clients_4_command_ready(ready[4]), .io_clients_4_command_valid(valid[4]),
    .io_clients_4_command_bits_address(address4), .io_clients_4_command_bits_beats(beats4),
    .io_clients_4_data_ready(data_ready[4]), .io_clients_4_data_valid(data[4]), .io_clients_4_data_bits_data(d4),
    .io_clients_4_data_bits_last(last[4]), .io_clients_4_data_bits_fault(fault[4]),
    .io_axi_ar_ready(ar_ready), .io_axi_ar_valid(ar_valid), .io_axi_ar_bits_id(ar_id), .io_axi_ar_bits_addr(ar_addr),
    .io_axi_ar_bits_len(ar_len), .io_axi_r_ready(r_ready), .io_axi_r_valid(r_valid), .io_axi_r_bits_id(r_id),
    .io_axi_r_bits_data(r_data), .io_axi_r_bits_resp(r_resp), .io_axi_r_bits_last(r_last), .io_flush(flush),
    .io_idle(idle)
  );
  wire [$clog2(`AXI_OUTSTANDING + 1) - 1:0] v_0, v_1, v_2, v_3, v_4, s_0, s_1, s_2, s_3, s_4;

  // One client, chosen before the run and never again.
  reg [2:0] me;
  always @(posedge clock) me <= !started ? any_client : me;
  wire [2:0] client = me < 5 ? me : 0;
  wire [7:0] v_me = client == 0 ? v_0 : client == 1 ? v_1 : client == 2 ? v_2 : client == 3 ? v_3 : v_4;
  wire [7:0] s_me = client == 0 ? s_0 : client == 1 ? s_1 : client == 2 ? s_2 : client == 3 ? s_3 : s_4;
  wire [`AXI_DATA_BITS - 1:0] d_me = client == 0 ? d0 : client == 1 ? d1 : client == 2 ? d2 : client == 3 ? d3 : d4;

  reg [7:0] flight, old;
  wire asked = valid[client] & ready[client];
  wire mine = r_valid & r_id == client;
  wire ended = mine & r_ready & r_last;
  wire [7:0] after = flight + asked - ended;
  always @(posedge clock)
    if (reset) begin flight <= 0; old <= 0; end
    else begin
      flight <= after;
      if (flush) old <= after;
      else if (old != 0 & ended) old <= old - 1;
    end
  assign m_answer = !live | !r_valid | (r_id < 5 & (r_id != client | flight != 0));
  assign i_counts = !live | (flight == v_me & old == s_me);
  assign i_stale = !live | old <= flight;

  reg waits;
  reg [71 + `AXI_ID_BITS:0] before;
  always @(posedge clock) begin
    waits <= ar_valid & !ar_ready & !reset;
    before <= {ar_id, ar_addr, ar_len};
  end
  wire takes = client == 0 | data_ready[client == 0 ? 1 : client];

  assign p_stable = !live | !waits | (ar_valid & before == {ar_id, ar_addr, ar_len});
  assign c_stable = live & waits & |(valid & ready);
  assign p_id = !live | !ar_valid | ar_id < 5;
  assign c_id = live & ar_valid & ar_id == 4;
  assign p_limit = !live | flight <= `AXI_OUTSTANDING;
  assign c_limit = live & flight == `AXI_OUTSTANDING;
  assign p_route = !live | ((!data[client] | (mine & d_me == r_data & fault[client] == r_resp[1]))
    & (!mine | (data & ~(5'd1 << client)) == 0));
  assign c_route = live & data[client] & client == 3;
  assign p_epoch = !live | old == 0 | !data[client];
  assign c_epoch = live & old == 1 & mine & r_ready & flight == 2;
  assign p_lossless = !live | !mine | old != 0 | flush | (data[client] & r_ready == takes);
  assign c_lossless = live & mine & data[client] & !takes;
  assign p_flush = !live | !flush | (!asked & !data[client]);
  assign c_flush = live & flush & valid[client] & mine;
  assign p_one = !live | ((valid & ready) & ((valid & ready) - 1)) == 0;
  assign c_one = live & asked & valid == 5'h1f & client == 2;
  assign p_idle = !live | !idle | flight == 0;
  assign c_idle = live & flight == 1 & ended;
endmodule
