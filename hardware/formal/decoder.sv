// SPDX-License-Identifier: Apache-2.0
// Every 128-bit word is either an instruction of one unit or has a cause, for all 2^128 words.
// dut: Decoder
// mutants: 250
// depth: 2
// p_total: a word without a cause belongs to load, compute or store; causes are those of decode
// p_opcode: an opcode that the configuration does not have is ILLEGAL_OPCODE, and nothing else is
// p_reserved: a word without a cause has zeros in every bit that must be zero
// p_tokens: a word without a cause has only token flags that its unit can use
// p_memory: a STORE or LOAD that does something and has no cause names a memory that it can use
// p_range: a GEMM or ALU without a cause has a micro-op range that is ordered and inside the buffer
// p_requant: a REQUANT without a cause has a mode of the specification, and does not both clear and write acc
// p_unit: a word without a cause goes to the unit that the specification names
// p_order: the lowest cause is reported
module harness(
  input clock, input [127:0] word, input last,
  output p_total, output p_opcode, output p_reserved, output p_tokens, output p_memory, output p_range,
  output p_requant, output p_unit, output p_order,
  output c_total, output c_opcode, output c_reserved, output c_tokens, output c_memory, output c_range,
  output c_requant, output c_unit, output c_order
);
  wire [7:0] cause;
  wire [3:0] unit;
  `DUT dut(.io_word(word), .io_last(last), .io_cause(cause), .io_unit(unit));

  wire [2:0] opcode = word[`F_LOAD_OPCODE];
  wire load = opcode == `OPCODE_LOAD, store = opcode == `OPCODE_STORE, gemm = opcode == `OPCODE_GEMM;
  wire alu = opcode == `OPCODE_ALU, finish = opcode == `OPCODE_FINISH;
`ifdef HAS_REQUANT
  wire requant = opcode == `OPCODE_REQUANT;
  wire [2:0] mode = word[`F_REQUANT_MODE];
  wire requant_fits = mode <= `REQUANTMODE_FLOOR & !(word[`F_REQUANT_CLEAR] & word[`F_REQUANT_WRITE_ACC]);
  wire requant_zero = (word & `RESERVED_REQUANT) == 0;
`else
  wire requant = 0, requant_fits = 1, requant_zero = 1;
`endif
  wire [2:0] op = word[`F_ALU_ALU_OPCODE];
  wire plus = op == `ALUOPCODE_MAC | op == `ALUOPCODE_RSHR | op == `ALUOPCODE_MOV;
`ifdef HAS_ALU_PLUS
  wire op_known = 1;
`else
  wire op_known = !(alu & plus);
`endif
  wire known = (load | store | gemm | alu | finish | requant) & op_known;
  wire [15:0] imm = word[`F_ALU_IMM];
  wire use_imm = word[`F_ALU_USE_IMM];
  wire stray = alu & (use_imm ? op == `ALUOPCODE_RSHR & |imm[14:5]
    : op == `ALUOPCODE_RSHR ? |imm[14:0] : plus & |imm);
  wire zeros = !stray
    & (!load | (word & `RESERVED_LOAD) == 0) & (!store | (word & `RESERVED_STORE) == 0)
    & (!gemm | (word & `RESERVED_GEMM) == 0) & (!alu | (word & `RESERVED_ALU) == 0)
    & (!finish | (word & `RESERVED_FINISH) == 0) & (!requant | requant_zero);
  wire [2:0] memory = word[`F_LOAD_MEMORY_ID];
  wire works = |word[`F_LOAD_X_SIZE] & |word[`F_LOAD_Y_SIZE];
  wire to_load = load & (memory == `MEMID_INP | memory == `MEMID_WGT);
`ifdef HAS_ACC8
  wire loadable = memory != `MEMID_OUT & memory <= `MEMID_ACC_UINT8;
`else
  wire loadable = memory <= `MEMID_ACC;
`endif
  wire tokens_fit = !(to_load & (word[`F_LOAD_POP_PREV] | word[`F_LOAD_PUSH_PREV]))
    & !(store & (word[`F_STORE_POP_NEXT] | word[`F_STORE_PUSH_NEXT]))
    & !(finish & (word[`F_FINISH_PUSH_PREV] | word[`F_FINISH_PUSH_NEXT]));
  wire memory_fits = !works | (load ? loadable : store ? memory == `MEMID_OUT : 1'b1);
  wire order_fits = word[`F_GEMM_UOP_BEGIN] <= word[`F_GEMM_UOP_END];
  wire range_fits = word[`F_GEMM_UOP_END] <= `UOP_DEPTH;
  wire none = cause == `CAUSE_NONE;

  assign p_total = none ? unit == `UNIT_LOAD | unit == `UNIT_COMPUTE | unit == `UNIT_STORE : cause <= `CAUSE_INDEX_RANGE;
  assign c_total = none & unit == `UNIT_COMPUTE;
  assign p_opcode = (cause == `CAUSE_ILLEGAL_OPCODE) == !known;
  assign c_opcode = cause == `CAUSE_ILLEGAL_OPCODE;
  assign p_reserved = !none | zeros;
  assign c_reserved = cause == `CAUSE_RESERVED_BITS & alu & stray;
  assign p_tokens = !none | tokens_fit;
  assign c_tokens = none & to_load & word[`F_LOAD_PUSH_NEXT];
  assign p_memory = !none | memory_fits;
  assign c_memory = none & store & works;
  assign p_range = !none | !(gemm | alu) | (order_fits & range_fits);
  assign c_range = none & gemm & word[`F_GEMM_UOP_END] == `UOP_DEPTH;
  assign p_requant = !none | !requant | requant_fits;
  assign c_requant = none &
`ifdef HAS_REQUANT
    requant;
`else
    !requant;
`endif
  assign p_unit = !none | unit == (to_load ? `UNIT_LOAD : store ? `UNIT_STORE : `UNIT_COMPUTE);
  assign c_unit = none & unit == `UNIT_LOAD;
  assign p_order = (cause != `CAUSE_RESERVED_BITS | (known & !zeros))
    & (cause != `CAUSE_ILLEGAL_TOKEN | (known & zeros & !tokens_fit))
    & (cause != `CAUSE_FINISH_ORDER | (known & zeros & tokens_fit & finish != last))
    & (cause != `CAUSE_ILLEGAL_MEMORY | (known & zeros & tokens_fit & finish == last & !memory_fits))
    & (cause != `CAUSE_INDEX_RANGE | (known & zeros & tokens_fit & (gemm | alu) & order_fits & !range_fits));
  assign c_order = cause == `CAUSE_INDEX_RANGE & alu;
endmodule
