// SPDX-License-Identifier: Apache-2.0
// One lane of the requantizer with its multiplier, always enabled: a value enters every cycle. Bits set in `upset` are
// inverted in the product on its way to the lane, to see that a wrong bit is noticed.
`timescale 1ns/1ps
module requant_bench (
  input clock, input reset, input [2:0] mode, input unsigned_out,
  input [31:0] acc, input [31:0] word0, input [31:0] word1, input [31:0] word2, input [63:0] upset,
  output [8:0] result
);
  wire [31:0] a, b;
  wire [63:0] product;
  RequantLane lane (
    .clock(clock), .io_enable_0(1'b1), .io_enable_1(1'b1), .io_enable_2(1'b1), .io_enable_3(1'b1), .io_enable_4(1'b1),
    .io_enable_5(1'b1), .io_enable_6(1'b1), .io_mode(mode), .io_unsignedOut(unsigned_out), .io_acc(acc),
    .io_words_0(word0), .io_words_1(word1), .io_words_2(word2), .io_a(a), .io_b(b), .io_product(product ^ upset), .io_result(result)
  );
  `BANK bank (
    .clock(clock), .reset(reset), .io_alu_valid(1'b0), .io_requant_valid(1'b1),
    .io_requant_a_0(a), .io_requant_b_0(b), .io_requant_product_0(product)
  );
endmodule
