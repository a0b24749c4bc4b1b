// SPDX-License-Identifier: Apache-2.0
// The write port of the bus: nothing changes under back-pressure, nothing of an earlier epoch reaches the client.
// dut: WriteEngine
// depth: 16
// steps: 2
// free: ram_2x73
// internal: v_responses = dut.responses, v_old = dut.oldOnes, v_owed_old = dut.owedOld, v_sent = dut.beatsSent
// i_responses: the harness counts bursts in flight as the engine does
// i_old: bursts of an earlier epoch are among those in flight
// m_response: the memory answers only bursts it was asked for
// p_address: AW does not change, and stays valid, until it is taken
// p_data: W stays valid until it is taken
// p_limit: no more bursts are in flight than the configuration allows
// p_idle: idle exactly when no response is outstanding
// p_epoch: a response of a burst asked for before a flush never reaches the client
// p_answer: a response of a burst of this epoch reaches the client in the cycle it comes
// p_flush: while it flushes nothing is taken from the client
// p_made_up: beats that bursts of an earlier epoch still owe are not taken from the client
module harness(
  input clock, input restart, input aw_valid, input [`AXI_ID_BITS - 1:0] aw_id, input [63:0] aw_addr, input [7:0] aw_len,
  input w_valid, input [`AXI_DATA_BITS - 1:0] w_data, input [`AXI_DATA_BITS / 8 - 1:0] w_strb, input b_ready,
  input bus_aw_ready, bus_w_ready, bus_b_valid, input [1:0] bus_b_resp, input flush,
  output m_response,
  output p_address, output p_data, output p_limit, output p_idle, output p_epoch, output p_answer, output p_flush,
  output p_made_up,
  output c_address, output c_data, output c_limit, output c_idle, output c_epoch, output c_answer, output c_flush,
  output c_made_up, output i_responses, output i_old
);
  reg started = 0;
  always @(posedge clock) started <= 1;
  wire reset = !started | restart;
  wire live = started & !restart;

  wire aw_ready, w_ready, b_valid, bus_aw_valid, bus_w_valid, bus_w_last, bus_b_ready, idle;
  wire [1:0] b_resp;
  wire [`AXI_ID_BITS - 1:0] bus_aw_id;
  wire [63:0] bus_aw_addr;
  wire [7:0] bus_aw_len;
  wire [`AXI_DATA_BITS - 1:0] bus_w_data;
  wire [`AXI_DATA_BITS / 8 - 1:0] bus_w_strb;
  `DUT dut(
    .clock(clock), .reset(reset), .io_client_aw_ready(aw_ready), .io_client_aw_valid(aw_valid),
    .io_client_aw_bits_id(aw_id), .io_client_aw_bits_addr(aw_addr), .io_client_aw_bits_len(aw_len),
    .io_client_w_ready(w_ready), .io_client_w_valid(w_valid), .io_client_w_bits_data(w_data),
    .io_client_w_bits_strb(w_strb), .io_client_b_ready(b_ready), .io_client_b_valid(b_valid),
    .io_client_b_bits_resp(b_resp), .io_axi_aw_ready(bus_aw_ready), .io_axi_aw_valid(bus_aw_valid),
    .io_axi_aw_bits_id(bus_aw_id), .io_axi_aw_bits_addr(bus_aw_addr), .io_axi_aw_bits_len(bus_aw_len),
    .io_axi_w_ready(bus_w_ready), .io_axi_w_valid(bus_w_valid), .io_axi_w_bits_data(bus_w_data),
    .io_axi_w_bits_strb(bus_w_strb), .io_axi_w_bits_last(bus_w_last), .io_axi_b_ready(bus_b_ready),
    .io_axi_b_valid(bus_b_valid), .io_axi_b_bits_resp(bus_b_resp), .io_flush(flush), .io_idle(idle)
  );
  wire [$clog2(`AXI_OUTSTANDING + 1) - 1:0] v_responses, v_old, v_owed_old;
  wire [7:0] v_sent;

  reg [7:0] flight, old;
  wire asked = aw_valid & aw_ready, answered = bus_b_valid & bus_b_ready;
  wire [7:0] after = flight + asked - answered;
  always @(posedge clock)
    if (reset) begin flight <= 0; old <= 0; end
    else begin
      flight <= after;
      if (flush) old <= after;
      else if (old != 0 & answered) old <= old - 1;
    end
  assign m_response = !live | !bus_b_valid | flight != 0;
  assign i_responses = !live | (flight == v_responses & old == v_old);
  assign i_old = !live | old <= flight;

  reg aw_waits, w_waits;
  reg [71 + `AXI_ID_BITS:0] aw_before;
  always @(posedge clock) begin
    aw_waits <= bus_aw_valid & !bus_aw_ready & !reset;
    w_waits <= bus_w_valid & !bus_w_ready & !reset;
    aw_before <= {bus_aw_id, bus_aw_addr, bus_aw_len};
  end
  assign p_address = !live | !aw_waits | (bus_aw_valid & aw_before == {bus_aw_id, bus_aw_addr, bus_aw_len});
  assign c_address = live & aw_waits & asked & flush == 0;
  assign p_data = !live | !w_waits | bus_w_valid;
  assign c_data = live & w_waits & flush;
  assign p_limit = !live | flight <= `AXI_OUTSTANDING;
  assign c_limit = live & flight == `AXI_OUTSTANDING;
  assign p_idle = !live | idle == (flight == 0);
  assign c_idle = live & flight == 1 & answered;
  assign p_epoch = !live | old == 0 | !b_valid;
  assign c_epoch = live & old == 1 & flight == 2 & answered;
  assign p_answer = !live | !bus_b_valid | old != 0 | flush | (b_valid & b_resp == bus_b_resp & bus_b_ready == b_ready);
  assign c_answer = live & b_valid & bus_b_resp == 2;
  assign p_flush = !live | !flush | (!aw_ready & !w_ready & !b_valid);
  assign c_flush = live & flush & aw_valid & w_valid & bus_b_valid;
  assign p_made_up = !live | v_owed_old == 0 | !w_ready;
  assign c_made_up = live & v_owed_old == 2 & w_valid;
endmodule
