// SPDX-License-Identifier: Apache-2.0
// Soft reset: waits for the bus, but never longer than its bound.
// dut: SoftReset
// depth: 22
// steps: 2
// internal: v_state = dut.state, v_stalled = dut.stalled, v_calm = dut.calm, v_left = dut.left
// i_state: the state is one of three
// i_shadow: the harness counts as the module does
// i_left: the reset counts down from three
// p_asked: it is busy only after a request, and a request while idle makes it busy
// p_apart: halt and reset never meet
// p_busy: while it halts or resets it is busy
// p_calm: the core is reset only when nothing was outstanding for eight cycles, or nothing moved for the bound
// p_bound: it never waits without progress for longer than the bound
// p_length: a reset lasts four cycles exactly
module harness(
  input clock, input restart, input request, input [31:0] bound, input pending, input progress,
  output p_asked, output p_apart, output p_busy, output p_calm, output p_bound, output p_length,
  output c_asked, output c_apart, output c_busy, output c_calm, output c_bound, output c_length,
  output i_state, output i_shadow, output i_left
);
  reg started = 0;
  always @(posedge clock) started <= 1;
  wire reset = !started | restart;

  wire halt, resets, busy;
  `DUT dut(
    .clock(clock), .reset(reset), .io_request(request), .io_bound(bound), .io_pending(pending), .io_progress(progress),
    .io_halt(halt), .io_reset(resets), .io_busy(busy)
  );
  wire [1:0] v_state, v_left;
  wire [31:0] v_stalled;
  wire [3:0] v_calm;

  wire [31:0] limit = bound == 0 ? `RESET_WATCHDOG : bound;
  reg was_live, was_busy, was_request, was_resets, was_halt, due;
  reg [3:0] calm;
  reg [31:0] stalled;
  reg [2:0] length;
  wire live = started & was_live & !restart;
  always @(posedge clock) begin
    was_live <= !reset;
    was_busy <= busy; was_request <= request; was_resets <= resets; was_halt <= halt;
    calm <= halt & !pending & !reset ? calm + 1 : 0;
    stalled <= halt & !progress & !reset ? stalled + 1 : 0;
    due <= halt & (calm >= 7 | stalled >= limit);
    length <= resets & !reset ? length + 1 : 0;
  end
  assign i_state = !live | v_state != 3;
  assign i_shadow = !live | ((v_state != 1 | (calm == v_calm & stalled == v_stalled & calm < 8))
    & resets == (v_state == 2) & (v_state == 1 | (calm == 0 & stalled == 0) | resets | !busy));
  assign i_left = !live | !resets | length == 3 - v_left;

  assign p_asked = !live | (was_busy | (busy == was_request));
  assign c_asked = live & !was_busy & busy;
  assign p_apart = !live | !(halt & resets);
  assign c_apart = live & was_halt & resets;
  assign p_busy = !live | (busy == (halt | resets));
  assign c_busy = live & busy & resets;
  assign p_calm = !live | !resets | was_resets | due;
  assign c_calm = live & resets & !was_resets & bound == 100;
  assign p_bound = !live | !was_halt | !due | resets;
  assign c_bound = live & due & resets & bound == 3 & pending;
  assign p_length = !live | !was_resets | (resets == (length < 4));
  assign c_length = live & was_resets & !resets;
endmodule
