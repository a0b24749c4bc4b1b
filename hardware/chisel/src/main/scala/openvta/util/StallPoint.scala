// SPDX-License-Identifier: Apache-2.0
package openvta.util

import chisel3._
import chisel3.util._
import openvta.spec._

/** Simulation's own source of random stalls (`trace_taps.sv`): `open` changes at the clock edge. */
class StallSource extends ExtModule {
  override def desiredName: String = "OpenvtaStallSource"
  val clock                        = IO(Input(Clock()))
  val open                         = IO(Output(Bool()))
}

object StallPoint {

  /** A [[StallPoint]] in the module it is called from. */
  def apply[T <: Data](p: VtaParams, from: DecoupledIO[T]): DecoupledIO[T] =
    apply(p, from, Module.clock, Module.reset)

  /** A ready/valid pair that simulation may close in any cycle; the pair itself, and nothing is built, unless `p.stalls`.
    *
    * An offer that was seen is not taken back: while the producer holds it, the pair stays open until it is taken.
    */
  def apply[T <: Data](p: VtaParams, from: DecoupledIO[T], clock: Clock, reset: Reset): DecoupledIO[T] =
    if (!p.stalls) from
    else
      withClockAndReset(clock, reset) {
        val to     = Wire(Decoupled(chiselTypeOf(from.bits)))
        val source = Module(new StallSource)
        val held   = RegInit(false.B)
        val open   = source.open || held
        source.clock := clock
        held         := from.valid && open && !to.ready
        to.valid     := from.valid && open
        to.bits      := from.bits
        from.ready   := to.ready && open
        to
      }
}
