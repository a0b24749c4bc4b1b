// SPDX-License-Identifier: Apache-2.0
package openvta.shell

import chisel3._
import chisel3.util._
import openvta.spec._

/** What a unit waits for, as the watchdog sees it. */
class UnitWait(p: VtaParams) extends Bundle {
  val busy = Bool()

  /** Waits for tokens of these queues, bit by queue number. */
  val queues = UInt(4.W)
  val finish = Bool()

  /** The instruction the unit has at hand. */
  val index = UInt(p.indexBits.W)
}

/** Reports an error when nothing moves for `bound` cycles of a run; a bound of zero switches it off.
  *
  * It names the first of load, compute and store that waits for a token, and every queue somebody waits for. Where nobody waits
  * for a token it names the compute unit if FINISH waits, else the first busy unit, fetch last.
  */
class Watchdog(p: VtaParams) extends Module {
  private val isa = new Isa(p)

  val io = IO(new Bundle {
    val bound    = Input(UInt(32.W))
    val running  = Input(Bool())
    val progress = Input(Bool())
    val load     = Input(new UnitWait(p))
    val compute  = Input(new UnitWait(p))
    val store    = Input(new UnitWait(p))
    val fetch    = Input(new UnitWait(p))
    val report   = Output(Valid(new HeldError(p)))
  })

  private val quiet = RegInit(0.U(32.W))
  private val next  = quiet + 1.U
  quiet := Mux(!io.running || io.progress, 0.U, next)

  private val units   = Seq("LOAD" -> io.load, "COMPUTE" -> io.compute, "STORE" -> io.store, "FETCH" -> io.fetch)
  private val waiting = units.map(_._2.queues.orR) :+ io.compute.finish
  private val guilty  = waiting ++ units.map(_._2.busy) :+ true.B
  private val order   = units ++ Seq("COMPUTE" -> io.compute) ++ units :+ ("FETCH" -> io.fetch)

  io.report.valid               := io.running && !io.progress && io.bound =/= 0.U && next >= io.bound
  io.report.bits.unit           := PriorityMux(guilty, order.map { case (name, _) => isa.unit(name) })
  io.report.bits.wait_          := units.map(_._2.queues).reduce(_ | _)
  io.report.bits.finish         := io.compute.finish
  io.report.bits.detail.cause   := isa.cause("WATCHDOG")
  io.report.bits.detail.index   := PriorityMux(guilty, order.map(_._2.index))
  io.report.bits.detail.channel := 0.U
  io.report.bits.detail.address := 0.U
}
