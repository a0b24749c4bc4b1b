// SPDX-License-Identifier: Apache-2.0
// What a traced accelerator tells simulation (fast.cpp): every write of a scratchpad with the instruction it belongs to,
// and the start of a run; and where random stalls come from.
module OpenvtaWriteTap #(
  parameter int MEMORY = 0, parameter int INDEX_BITS = 1, parameter int ELEM_BITS = 32, parameter int ELEMS = 1,
  parameter int PARTS = 1
) (
  input clock, input valid, input [31:0] tag, input [INDEX_BITS-1:0] index, input [ELEMS-1:0] elemMask,
  input [PARTS-1:0] partMask, input [ELEMS*ELEM_BITS-1:0] data
);
  import "DPI-C" function void fast_cell(input int memory, input int tag, input int address, input int word, input int value);
  localparam int PART_BITS = ELEM_BITS / PARTS;
  localparam int WORD_BITS = PART_BITS < 32 ? PART_BITS : 32;
  localparam int WORDS = PART_BITS / WORD_BITS;
  always @(posedge clock)
    if (valid)
      for (int e = 0; e < ELEMS; e++)
        if (elemMask[e])
          for (int p = 0; p < PARTS; p++)
            if (partMask[p])
              for (int w = 0; w < WORDS; w++)
                fast_cell(MEMORY, tag, 32'(index) + e, p * WORDS + w,
                          32'(data[e*ELEM_BITS + p*PART_BITS + w*WORD_BITS +: WORD_BITS]));
endmodule

module OpenvtaLaunchTap (input clock, input valid);
  import "DPI-C" function void fast_launch();
  always @(posedge clock) if (valid) fast_launch();
endmodule

module OpenvtaStallSource (input clock, output bit open);
  import "DPI-C" function bit fast_open();
  always @(posedge clock) open <= fast_open();
endmodule
