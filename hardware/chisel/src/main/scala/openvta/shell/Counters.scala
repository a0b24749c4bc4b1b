// SPDX-License-Identifier: Apache-2.0
package openvta.shell

import chisel3._
import openvta.spec._

/** The performance counters of a run. They stop at their largest value instead of wrapping. */
object Counters {

  /** Counters in the order of the specification.
    *
    * @param events what each counter, by name, adds in a cycle; every counter of the specification, and no other
    * @param clear  set to zero (start of a run)
    * @param enable count
    */
  def apply(p: VtaParams, events: Map[String, UInt], clear: Bool, enable: Bool): Vec[UInt] = {
    if (events.keySet != p.counters.toSet)
      throw new SpecMismatch(
        s"counters: the hardware counts ${events.keySet.toSeq.sorted.mkString(", ")}, " +
          s"the configuration lists ${p.counters.sorted.mkString(", ")}"
      )
    VecInit(p.counters.map(name => saturating(events(name), clear, enable, 32).suggestName(s"counter_$name")))
  }

  /** A counter of `width` bits that stays at its largest value. */
  def saturating(add: UInt, clear: Bool, enable: Bool, width: Int): UInt = {
    val count = RegInit(0.U(width.W))
    val sum   = count +& add
    val full  = ((BigInt(1) << width) - 1).U
    when(clear) { count := 0.U }.elsewhen(enable) { count := Mux(sum > full, full, sum(width - 1, 0)) }
    count
  }
}
