// SPDX-License-Identifier: Apache-2.0
package openvta.store

import chisel3._
import chisel3.util._
import openvta.spec._

/** How out elements lie on the bus. A unit is an element or a beat, whichever is narrower: what a strobe can cut out. */
class StoreShape(p: VtaParams) {
  val unitBits: Int     = math.min(p.outElemBits, p.axiDataBits)
  val unitBytes: Int    = unitBits / 8
  val unitsPerBeat: Int = p.axiDataBits / unitBits
  val unitsPerElem: Int = p.outElemBits / unitBits
  val windowUnits: Int  = p.axiBurstBeats * unitsPerBeat

  val slotBits: Int     = log2Ceil(unitsPerBeat)
  val partBits: Int     = log2Ceil(unitsPerElem)
  val windowBits: Int   = log2Ceil(windowUnits)
  val elemByteBits: Int = log2Ceil(p.outElemBits / 8)
  val unitByteBits: Int = log2Ceil(unitBytes)

  /** Address in units. */
  val addressBits: Int = p.axiAddrBits - unitByteBits

  /** A unit of the out scratchpad: element index, then part. */
  val sourceBits: Int = p.accIndexBits + partBits

  /** Number of units of an instruction. */
  val countBits: Int = sourceBits + 1

  /** Number of units of a burst, and beats of a burst. */
  val burstBits: Int = windowBits + 1
  val beatBits: Int  = log2Ceil(p.axiBurstBeats + 1)
}

/** A STORE instruction, taken apart and checked. With `noop` there is nothing to write. */
class StoreTask(p: VtaParams) extends Bundle {
  private val shape = new StoreShape(p)
  val index         = UInt(p.indexBits.W)
  val push          = Bool()
  val noop          = Bool()
  val address       = UInt(shape.addressBits.W)
  val stride        = UInt((p.layout("STORE")("x_stride").width + shape.partBits).W)
  val rowUnits      = UInt(shape.countBits.W)
  val rows          = UInt(p.layout("STORE")("y_size").width.W)
  val source        = UInt(shape.sourceBits.W)
}

/** One burst: `units` units from `source` on, the first in place `slot` of its beat. With `empty` there is none. */
class StoreBurst(p: VtaParams) extends Bundle {
  private val shape = new StoreShape(p)
  val index         = UInt(p.indexBits.W)
  val push          = Bool()
  val last          = Bool()
  val empty         = Bool()
  val address       = UInt(p.axiAddrBits.W)
  val beats         = UInt(shape.beatBits.W)
  val units         = UInt(shape.burstBits.W)
  val slot          = UInt(shape.slotBits.W)
  val source        = UInt(shape.sourceBits.W)
}
