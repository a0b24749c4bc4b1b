// SPDX-License-Identifier: Apache-2.0
package openvta.shell

import chisel3._
import chisel3.util._
import openvta.spec._

/** Holds the first error until reset. Of several in one cycle the first listed wins.
  *
  * Latency: one cycle from the report to `held`, which halts every unit.
  */
class ErrorCollector(p: VtaParams, sources: Int) extends Module {
  val io = IO(new Bundle {
    val reports = Input(Vec(sources, Valid(new HeldError(p))))
    val held    = Output(Valid(new HeldError(p)))
  })

  private val valid = RegInit(false.B)
  private val error = Reg(new HeldError(p))
  when(!valid && io.reports.map(_.valid).reduce(_ || _)) {
    valid := true.B
    error := PriorityMux(io.reports.map(report => report.valid -> report.bits))
  }
  io.held.valid := valid
  io.held.bits  := error
}
