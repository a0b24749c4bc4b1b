// SPDX-License-Identifier: Apache-2.0
package openvta.util

import chisel3._
import chisel3.util._

/** A dependence queue between two units: tokens carry no data, so it is a counter.
  *
  * Throughput: one push and one pop a cycle. Latency: a token pushed in one cycle can be taken in the next.
  * Back-pressure: none; a push into a full queue is lost and raises `overflow` for that cycle. A pop in the same cycle
  * makes room for the push.
  *
  * @param depth tokens it holds
  */
class TokenQueue(depth: Int) extends Module {
  require(depth >= 1, s"a token queue holds at least one token, got a depth of $depth")

  override def desiredName: String = s"TokenQueue_$depth"

  val io = IO(new Bundle {
    val push     = Input(Bool())
    val pop      = Input(Bool())
    val ready    = Output(Bool())
    val overflow = Output(Bool())
    val empty    = Output(Bool())
  })

  private val count = RegInit(0.U(log2Ceil(depth + 1).W))
  private val taken = io.pop && count =/= 0.U
  private val full  = count === depth.U

  when(io.push && !taken && !full) { count := count + 1.U }
  when(taken && !io.push) { count := count - 1.U }
  io.ready    := count =/= 0.U
  io.overflow := io.push && full && !taken
  io.empty    := count === 0.U
}
