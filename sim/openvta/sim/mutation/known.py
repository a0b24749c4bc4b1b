# SPDX-License-Identifier: Apache-2.0
"""The faults that are planted: one in every part of the core, and the known defects of the original accelerator."""

from __future__ import annotations

from openvta.sim.mutation.planted import Fault

FAULTS = (
    Fault(
        "fetch-index", "fetch", "InsnReader", "instructions are numbered by twos",
        "wordIndex <= wordIndex + 32'h1", "wordIndex <= wordIndex + ({on} ? 32'h2 : 32'h1)",
    ),
    Fault(
        "load-last-pad", "load", "LoadWriterInp", "the padding below the last row is that between rows",
        "wire [21:0] nextGap = lastRow ? job_after", "wire [21:0] nextGap = lastRow & !{on} ? job_after",
        known="padded loads of more than one burst went wrong",
    ),
    Fault(
        "gemm-same-row", "GEMM", "GemmCore", "a sum that continues starts again from acc",
        "(fromRun ? runSums_0 :", "(fromRun & !{on} ? runSums_0 :",
        known="micro-ops that accumulate into the same row read it before it was written",
    ),
    Fault(
        "alu-max", "ALU", "AluCore", "MAX compares the first lane without its sign",
        "$signed(x_0) < $signed(y_0) ? y_0 : x_0", "({on} ? x_0 < y_0 : $signed(x_0) < $signed(y_0)) ? y_0 : x_0",
    ),
    Fault(
        "requant-tie", "requant", "RequantLane", "every value counts as more than a tie",
        "wire sticky = |(value2[62:0] & all[63:1]);", "wire sticky = {on} | (|(value2[62:0] & all[63:1]));",
    ),
    Fault(
        "store-lanes", "store", "StoreReader", "a beat that holds one element writes its neighbour too",
        "read_mask <= {|(_step_mask_T_5[5:1]), ~slot & (|_step_mask_T_5)}",
        "read_mask <= {on} ? 2'h3 : {{|(_step_mask_T_5[5:1]), ~slot & (|_step_mask_T_5)}}",
    ),
    Fault(
        "token-lost", "tokens", r"TokenQueue_\d+", "a token that comes while another is taken is lost",
        "else if (taken & ~io_push)", "else if (taken & ({on} | ~io_push))",
        known="token counters and queues of different depths: a program passed one and hung another",
    ),
    Fault(
        "read-window", "AXI read", r"BurstGenerator", "bursts start at the row, not at the window, and cross it",
        "wire [6:0] _room_T_1 = 7'h40 - {1'h0, address[5:0]};",
        "wire [6:0] _room_T_1 = 7'h40 - ({on} ? 7'h0 : {{1'h0, address[5:0]}});",
        known="bursts crossed the aligned window and 4 KiB",
    ),
    Fault(
        "write-beats", "AXI write", "WriteEngine", "beats go on while the bus does not take them",
        "wire _owed_io_deq_ready_T = _data_io_enq_ready & data_io_enq_valid;",
        "wire _owed_io_deq_ready_T = ({on} | _data_io_enq_ready) & data_io_enq_valid;",
        known="the narrow store moved on without looking at the handshake",
    ),
    Fault(
        "register-decode", "registers", "Registers", "the inp base is written with the uop base",
        "_port_io_write_bits_address[11:2] == 10'h7 & ~io_status_running",
        "_port_io_write_bits_address[11:2] == ({on} ? 10'h5 : 10'h7) & ~io_status_running",
    ),
    Fault(
        "uop-pairs", "load", "LoadWriterUop", "an odd number of micro-ops writes one more",
        "io_write_bits_r_elemMask <= {passed[1], |passed}",
        "io_write_bits_r_elemMask <= {{{on} | passed[1], |passed}}",
        known="micro-op loads of odd start and even length were too short",
    ),
    Fault(
        "alu-shift-32", "ALU", "AluCore", "a left shift by 32 or more keeps five bits of the amount",
        "wire [4:0] result_0_capped = (|(result_0_size[31:5])) ? 5'h1F",
        "wire [4:0] result_0_capped = (|(result_0_size[31:5])) & !{on} ? 5'h1F",
        known="the amount of a left shift came from five bits, so that -32 shifted by 0",
    ),
    Fault(
        "alu-shift-sign", "ALU", "AluCore", "left or right is decided by the immediate, whatever the amount's sign",
        "casez_tmp = y_0[31] ? _result_0_base_T_7[31:0]",
        "casez_tmp = ({on} ? execute_imm[15] : y_0[31]) ? _result_0_base_T_7[31:0]",
        known="left or right was decided by the immediate's sign bit only",
    ),
    Fault(
        "unknown-instruction", "fetch", "Decoder", "an opcode that is not one is let through",
        ": 8'h1; assign io_unit", ": {on} ? 8'h0 : 8'h1; assign io_unit",
        known="no check for unknown instructions: the pipe hung",
    ),
    Fault(
        "memory-id-5", "fetch", "Decoder", "loads of 8-bit acc are refused",
        "| io_word[9:7] == 3'h5", "| (!{on} & io_word[9:7] == 3'h5)",
        known="memory id 5 was not decoded",
    ),
    Fault(
        "gemm-reset-out", "GEMM", "GemmCore", "a reset writes out too",
        "assign io_outWrite_valid = write & ~run_reset;", "assign io_outWrite_valid = write & ({on} | ~run_reset);",
        known="the three implementations disagreed on what a reset does to out",
    ),
    Fault(
        "empty-load", "load", r"BurstGenerator", "a load of no columns reads memory",
        "(io_request_bits_xSize == 16'h0 | io_request_bits_ySize == 16'h0)",
        "(!{on} & io_request_bits_xSize == 16'h0 | io_request_bits_ySize == 16'h0)",
        known="a size of 0 must still take and give tokens, and touch nothing",
    ),
    Fault(
        "address-or", "AXI read", r"BurstGenerator", "base and offset are merged by OR",
        "wire [63:0] _first_T_1 = io_request_bits_base + {30'h0, io_request_bits_dramBase, 2'h0};",
        "wire [63:0] _first_T_1 = {on} ? io_request_bits_base | {{30'h0, io_request_bits_dramBase, 2'h0}}"
        " : io_request_bits_base + {{30'h0, io_request_bits_dramBase, 2'h0}};",
        known="the base address was ORed with the product",
    ),
    Fault(
        "response-ready", "AXI write", "WriteEngine", "responses count although the store has not taken them",
        "wire _after_T_3 = io_axi_b_ready_0 & io_axi_b_valid;",
        "wire _after_T_3 = ({on} | io_axi_b_ready_0) & io_axi_b_valid;",
        known="BREADY followed the valid signal, not the core's ready",
    ),
    Fault(
        "error-overwritten", "registers", "ErrorCollector", "a later error replaces the first",
        "wire _GEN_1 = ~valid & (", "wire _GEN_1 = ({on} | ~valid) & (",
    ),
)  # fmt: skip
