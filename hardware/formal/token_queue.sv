// SPDX-License-Identifier: Apache-2.0
// Dependence tokens between two units are neither lost nor made.
// dut: TokenQueue_{token_depth}
// depth: 24
// internal: v_count = dut.count
// p_ready: a token can be taken exactly when one is there
// p_empty: "empty" exactly when no token is there
// p_bound: it never holds more tokens than its depth
// p_overflow: a push is reported as lost exactly when the queue is full and nothing is taken
// p_count: the count is that of tokens pushed and not lost, less those taken
module harness(
  input clock, input restart, input push, input pop,
  output p_ready, output p_empty, output p_bound, output p_overflow, output p_count,
  output c_ready, output c_empty, output c_bound, output c_overflow, output c_count
);
  reg started = 0;
  always @(posedge clock) started <= 1;
  wire reset = !started | restart;
  wire live = started & !restart;

  wire ready, overflow, empty;
  `DUT dut(
    .clock(clock), .reset(reset), .io_push(push), .io_pop(pop),
    .io_ready(ready), .io_overflow(overflow), .io_empty(empty)
  );
  wire [$clog2(`TOKEN_DEPTH + 1) - 1:0] v_count;

  reg [15:0] model;
  always @(posedge clock)
    if (reset) model <= 0;
    else model <= model + (push && !overflow) - (pop && ready);

  assign p_ready = !live | (ready == (model != 0));
  assign c_ready = live & ready & pop & push;
  assign p_empty = !live | (empty == (model == 0));
  assign c_empty = live & empty & push;
  assign p_bound = !live | model <= `TOKEN_DEPTH;
  assign c_bound = live & model == `TOKEN_DEPTH;
  assign p_overflow = !live | overflow == (push && model == `TOKEN_DEPTH && !pop);
  assign c_overflow = live & overflow;
  assign p_count = !live | v_count == model;
  assign c_count = live & v_count == 3 & pop & !push;
endmodule
