// SPDX-License-Identifier: Apache-2.0
// Bursts of a LOAD, for every base, offset, size and stride.
// dut: BurstGenerator
// depth: 10
// steps: 2
// p_beats: a burst has 1 to the window's beats
// p_window: no burst leaves its aligned window
// p_page: no burst crosses 4 KiB
// p_both: a burst is offered to the bus and to the writer in the same cycle
// p_noop: a request of no elements makes no burst
module harness(
  input clock, input restart, input valid, input [63:0] base, input [31:0] dram_base,
  input [15:0] y_size, x_size, x_stride, input [3:0] x_pad0, x_pad1, input command_ready, note_ready,
  output p_beats, output p_window, output p_page, output p_both, output p_noop,
  output c_beats, output c_window, output c_page, output c_both, output c_noop
);
  localparam BYTES = `AXI_DATA_BITS / 8;
  localparam WINDOW = BYTES * `AXI_BURST_BEATS;
  reg started = 0;
  always @(posedge clock) started <= 1;
  wire reset = !started | restart;
  wire live = started & !restart;

  wire ready, command, note, row_end;
  wire [63:0] address, note_address;
  wire [$clog2(`AXI_BURST_BEATS + 1) - 1:0] beats;
  wire [$clog2(WINDOW + 1) - 1:0] count;
  `DUT dut(
    .clock(clock), .reset(reset), .io_request_ready(ready), .io_request_valid(valid), .io_request_bits_base(base),
    .io_request_bits_dramBase(dram_base), .io_request_bits_ySize(y_size), .io_request_bits_xSize(x_size),
    .io_request_bits_xStride(x_stride), .io_request_bits_xPad0(x_pad0), .io_request_bits_xPad1(x_pad1),
    .io_command_ready(command_ready), .io_command_valid(command), .io_command_bits_address(address),
    .io_command_bits_beats(beats), .io_note_ready(note_ready), .io_note_valid(note),
    .io_note_bits_address(note_address), .io_note_bits_count(count), .io_note_bits_rowEnd(row_end)
  );

  reg idle, empty;
  wire fire = command & command_ready;
  always @(posedge clock)
    if (reset) begin idle <= 1; empty <= 0; end
    else if (valid & ready) begin idle <= 0; empty <= x_size == 0 | y_size == 0; end

  wire [63:0] bytes = beats * BYTES;
  wire [63:0] last = address + bytes - 1;
  wire works = live & !idle & !empty;
  reg [2:0] bursts;
  always @(posedge clock) if (reset) bursts <= 0; else if (fire & bursts != 7) bursts <= bursts + 1;

  assign p_beats = !live | !command | (beats >= 1 & beats <= `AXI_BURST_BEATS);
  assign c_beats = works & fire & beats == `AXI_BURST_BEATS & bursts == 2;
  assign p_window = !live | !command | address / WINDOW == last / WINDOW;
  assign c_window = works & fire & beats == 3 & address % WINDOW != 0;
  assign p_page = !live | !command | address[63:12] == last[63:12];
  assign c_page = works & fire & last[11:0] == 12'hfff;
  assign p_both = !live | ((command & command_ready) == (note & note_ready));
  assign c_both = works & fire & row_end;
  assign p_noop = !live | !empty | !command;
  assign c_noop = live & empty & command_ready & note_ready;
endmodule
