// SPDX-License-Identifier: Apache-2.0
package openvta.load

import chisel3._
import chisel3.util._
import openvta.spec._

/** A LOAD instruction as a [[TensorLoader]] takes it. Fields are those of the instruction; `base` is a byte address. */
class LoadRequest(p: VtaParams) extends Bundle {
  private val layout             = p.layout("LOAD")
  private def bits(name: String) = UInt(layout(name).width.W)

  val index    = UInt(p.indexBits.W)
  val base     = UInt(p.axiAddrBits.W)
  val sramBase = bits("sram_base")
  val dramBase = bits("dram_base")
  val ySize    = bits("y_size")
  val xSize    = bits("x_size")
  val xStride  = bits("x_stride")
  val yPad0    = bits("y_pad_0")
  val yPad1    = bits("y_pad_1")
  val xPad0    = bits("x_pad_0")
  val xPad1    = bits("x_pad_1")

  /** Pads are the lane type's minimum; else `padValue`. */
  val padMin   = Bool()
  val padValue = UInt(8.W)

  /** Elements in device memory are 8-bit lanes, to be extended: with zeros where `unsigned`, else with the sign. */
  val narrow   = Bool()
  val unsigned = Bool()

  /** Nothing to load and nothing to pad: the instruction only moves tokens. */
  def isNoop: Bool = xSize === 0.U || ySize === 0.U
}

object LoadRequest {

  /** The request of a LOAD instruction, whose memory type starts at byte address `base`. */
  def apply(p: VtaParams, insn: QueuedInsn, base: UInt): LoadRequest = {
    val layout              = p.layout("LOAD")
    val isa                 = new Isa(p)
    def field(name: String) = Isa.field(insn.word, layout, name)
    val memory              = field("memory_id")
    val request             = Wire(new LoadRequest(p))
    request.index    := insn.index
    request.base     := base
    request.sramBase := field("sram_base")
    request.dramBase := field("dram_base")
    request.ySize    := field("y_size")
    request.xSize    := field("x_size")
    request.xStride  := field("x_stride")
    request.yPad0    := field("y_pad_0")
    request.yPad1    := field("y_pad_1")
    request.xPad0    := field("x_pad_0")
    request.xPad1    := field("x_pad_1")
    if (p.has("padv")) {
      request.padMin   := field("pad_min").asBool
      request.padValue := Cat(field("pad_value_high"), field("pad_value_low"))
    } else {
      request.padMin   := false.B
      request.padValue := 0.U
    }
    if (p.has("acc8")) {
      request.narrow   := memory === isa.memId("ACC_INT8") || memory === isa.memId("ACC_UINT8")
      request.unsigned := memory === isa.memId("ACC_UINT8")
    } else {
      request.narrow   := false.B
      request.unsigned := false.B
    }
    request
  }
}
