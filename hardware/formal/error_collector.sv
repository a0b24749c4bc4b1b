// SPDX-License-Identifier: Apache-2.0
// The error register: first error wins, and nothing but a reset changes it.
// dut: ErrorCollector
// depth: 6
// p_sticky: once an error is held it stays held until reset
// p_frozen: cause, unit, index, channel and address of a held error do not change
// p_first: of several reports in one cycle the first in the list is held, with its cause, index and address
// p_caused: nothing is held that was not reported
// p_prompt: a report is held in the next cycle
module harness(
  input clock, input restart,
  input [7:0] valid, input [7:0] cause0, cause1, cause2, cause3,
  input [31:0] index0, index1, index2, index3, index4, index5, index6, index7,
  input [3:0] channel1, channel2, channel3, unit7, wait7, input finish7,
  input [63:0] address0, address1, address2, address3,
  output p_sticky, output p_frozen, output p_first, output p_caused, output p_prompt,
  output c_sticky, output c_frozen, output c_first, output c_caused, output c_prompt
);
  reg started = 0;
  always @(posedge clock) started <= 1;
  wire reset = !started | restart;

  wire held, finish;
  wire [3:0] unit, channel, waits;
  wire [7:0] cause;
  wire [31:0] index;
  wire [63:0] address;
  `DUT dut(
    .clock(clock), .reset(reset),
    .io_reports_0_valid(valid[0]), .io_reports_0_bits_detail_cause(cause0),
    .io_reports_0_bits_detail_index(index0), .io_reports_0_bits_detail_address(address0),
    .io_reports_1_valid(valid[1]), .io_reports_1_bits_detail_cause(cause1), .io_reports_1_bits_detail_index(index1),
    .io_reports_1_bits_detail_channel(channel1), .io_reports_1_bits_detail_address(address1),
    .io_reports_2_valid(valid[2]), .io_reports_2_bits_detail_cause(cause2), .io_reports_2_bits_detail_index(index2),
    .io_reports_2_bits_detail_channel(channel2), .io_reports_2_bits_detail_address(address2),
    .io_reports_3_valid(valid[3]), .io_reports_3_bits_detail_cause(cause3), .io_reports_3_bits_detail_index(index3),
    .io_reports_3_bits_detail_channel(channel3), .io_reports_3_bits_detail_address(address3),
    .io_reports_4_valid(valid[4]), .io_reports_4_bits_detail_index(index4),
    .io_reports_5_valid(valid[5]), .io_reports_5_bits_detail_index(index5),
    .io_reports_6_valid(valid[6]), .io_reports_6_bits_detail_index(index6),
    .io_reports_7_valid(valid[7]), .io_reports_7_bits_unit(unit7), .io_reports_7_bits_detail_index(index7),
    .io_reports_7_bits_wait_(wait7), .io_reports_7_bits_finish(finish7),
    .io_held_valid(held), .io_held_bits_unit(unit), .io_held_bits_detail_cause(cause),
    .io_held_bits_detail_index(index), .io_held_bits_detail_channel(channel), .io_held_bits_detail_address(address),
    .io_held_bits_wait_(waits), .io_held_bits_finish(finish)
  );

  wire [116:0] now = {unit, cause, index, channel, address, waits, finish};
  reg live, was_held;
  reg [116:0] before;
  reg [7:0] reports;
  reg [31:0] first_index;
  reg [7:0] first_cause;
  reg [63:0] first_address;
  reg [3:0] first_unit;
  always @(posedge clock) begin
    live <= !reset;
    was_held <= held & !reset;
    before <= now;
    reports <= valid;
    first_index <= valid[0] ? index0 : valid[1] ? index1 : valid[2] ? index2 : valid[3] ? index3
                 : valid[4] ? index4 : valid[5] ? index5 : valid[6] ? index6 : index7;
    first_cause <= valid[0] ? cause0 : valid[1] ? cause1 : valid[2] ? cause2 : valid[3] ? cause3
                 : |valid[6:4] ? `CAUSE_TOKEN_OVERFLOW : `CAUSE_WATCHDOG;
    first_address <= valid[0] ? address0 : valid[1] ? address1 : valid[2] ? address2 : valid[3] ? address3 : 0;
    first_unit <= valid[0] ? `UNIT_FETCH : valid[1] ? `UNIT_LOAD : valid[2] ? `UNIT_COMPUTE : valid[3] ? `UNIT_STORE
                : valid[4] ? `UNIT_LOAD : valid[5] ? `UNIT_COMPUTE : valid[6] ? `UNIT_STORE : unit7;
  end
  wire ok = started & live;
  wire fresh = !was_held & held;

  assign p_sticky = !ok | !was_held | held;
  assign c_sticky = ok & was_held & |valid;
  assign p_frozen = !ok | !was_held | now == before;
  assign c_frozen = ok & was_held & |reports;
  assign p_first = !ok | !fresh
    | (index == first_index && cause == first_cause && address == first_address && unit == first_unit);
  assign c_first = ok & fresh & reports[3] & reports[6];
  assign p_caused = !ok | !fresh | |reports;
  assign c_caused = ok & fresh & !reports[0];
  assign p_prompt = !ok | !(|reports) | held;
  assign c_prompt = ok & reports[7] & held;
endmodule
