// SPDX-License-Identifier: Apache-2.0
package openvta.util

import chisel3._
import chisel3.util._
import openvta.spec._

/** Ports of simulation's own SystemVerilog (`trace_taps.sv`): what is written where, by which instruction. */
class WriteTap(memory: Int, shape: ScratchWrite)
    extends ExtModule(
      Map[String, Param](
        "MEMORY"     -> memory,
        "INDEX_BITS" -> shape.indexBits,
        "ELEM_BITS"  -> shape.elemBits,
        "ELEMS"      -> shape.elems,
        "PARTS"      -> shape.parts,
      )
    ) {
  override def desiredName: String = "OpenvtaWriteTap"
  val clock                        = IO(Input(Clock()))
  val valid                        = IO(Input(Bool()))
  val tag                          = IO(Input(UInt(32.W)))
  val index                        = IO(Input(UInt(shape.indexBits.W)))
  val elemMask                     = IO(Input(UInt(shape.elems.W)))
  val partMask                     = IO(Input(UInt(shape.parts.W)))
  val data                         = IO(Input(UInt((shape.elems * shape.elemBits).W)))
}

object WriteTap {

  /** Shows simulation the writes of a scratchpad; builds nothing unless `p.trace`.
    *
    * Every write carries the index of the instruction it belongs to and is made not later than the cycle in which that
    * instruction retires.
    */
  def apply(p: VtaParams, memory: String, write: Valid[ScratchWrite], clock: Clock): Unit = if (p.trace) {
    val tap = Module(new WriteTap(p.enumValue("MemId", memory), write.bits))
    tap.clock    := clock
    tap.valid    := write.valid
    tap.tag      := write.bits.tag
    tap.index    := write.bits.index
    tap.elemMask := write.bits.elemMask
    tap.partMask := write.bits.partMask
    tap.data     := write.bits.data
  }
}

/** A run begins. */
class LaunchTap extends ExtModule {
  override def desiredName: String = "OpenvtaLaunchTap"
  val clock                        = IO(Input(Clock()))
  val valid                        = IO(Input(Bool()))
}

object LaunchTap {

  /** Tells simulation that a run begins; builds nothing unless `p.trace`. */
  def apply(p: VtaParams, launch: Bool, clock: Clock): Unit = if (p.trace) {
    val tap = Module(new LaunchTap)
    tap.clock := clock
    tap.valid := launch
  }
}
