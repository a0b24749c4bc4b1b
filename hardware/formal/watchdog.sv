// SPDX-License-Identifier: Apache-2.0
// The watchdog: exact bound, and the right unit is named.
// dut: Watchdog
// mutants: 250
// depth: 10
// internal: v_quiet = dut.quiet
// i_quiet: the harness counts as the watchdog does
// p_bound: it reports in the cycle in which nothing has moved for the bound, and in none before
// p_progress: it never reports in a cycle of progress or outside a run
// p_off: a bound of zero never reports
// p_token: while a unit waits for a token, the first of load, compute and store that does is named, with its instruction
// p_unit: where nobody waits for a token or FINISH, the unit named is busy, or it is fetch
module harness(
  input clock, input restart, input [31:0] bound, input running, input progress,
  input load_busy, compute_busy, store_busy, compute_finish, input [3:0] load_queues, compute_queues, store_queues,
  input [31:0] load_index, compute_index, store_index, fetch_index,
  output p_bound, output p_progress, output p_off, output p_token, output p_unit,
  output c_bound, output c_progress, output c_off, output c_token, output c_unit, output i_quiet
);
  reg started = 0;
  always @(posedge clock) started <= 1;
  wire reset = !started | restart;
  wire live = started & !restart;

  wire report, finish;
  wire [3:0] unit, waits;
  wire [31:0] index;
  `DUT dut(
    .clock(clock), .reset(reset), .io_bound(bound), .io_running(running), .io_progress(progress),
    .io_load_busy(load_busy), .io_load_queues(load_queues), .io_load_index(load_index),
    .io_compute_busy(compute_busy), .io_compute_queues(compute_queues), .io_compute_finish(compute_finish),
    .io_compute_index(compute_index), .io_store_busy(store_busy), .io_store_queues(store_queues),
    .io_store_index(store_index), .io_fetch_index(fetch_index), .io_report_valid(report), .io_report_bits_unit(unit),
    .io_report_bits_detail_index(index), .io_report_bits_wait_(waits), .io_report_bits_finish(finish)
  );
  wire [31:0] v_quiet;

  reg [31:0] still;
  wire moves = !running | progress;
  wire [31:0] now = still + 1;
  always @(posedge clock)
    if (reset | moves) still <= 0;
    else still <= now;
  assign i_quiet = !live | still == v_quiet;

  wire [3:0] first = |load_queues ? `UNIT_LOAD : |compute_queues ? `UNIT_COMPUTE : `UNIT_STORE;
  wire [31:0] of_first = |load_queues ? load_index : |compute_queues ? compute_index : store_index;
  wire token = |load_queues | |compute_queues | |store_queues;

  assign p_bound = !live | moves | bound == 0 | report == (now >= bound);
  assign c_bound = live & report & bound == 5;
  assign p_progress = !live | !moves | !report;
  assign c_progress = live & moves & still + 1 == bound & still == 3;
  assign p_off = !live | bound != 0 | !report;
  assign c_off = live & bound == 0 & running & !progress;
  assign p_token = !live | !report | !token | (unit == first && index == of_first);
  assign c_token = live & report & |compute_queues & |store_queues & !(|load_queues);
  assign p_unit = !live | !report | token | compute_finish
    | (unit == `UNIT_LOAD & load_busy) | (unit == `UNIT_COMPUTE & compute_busy & !load_busy)
    | (unit == `UNIT_STORE & store_busy & !load_busy & !compute_busy)
    | (unit == `UNIT_FETCH & !store_busy & !load_busy & !compute_busy & index == fetch_index);
  assign c_unit = live & report & !token & !compute_finish & store_busy;
endmodule
