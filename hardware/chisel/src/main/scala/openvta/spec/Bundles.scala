// SPDX-License-Identifier: Apache-2.0
package openvta.spec

import chisel3._
import chisel3.util._

/** An instruction on its way to a unit: the 128-bit word and its position in the stream. */
class QueuedInsn(p: VtaParams) extends Bundle {
  val word  = UInt(p.insnBits.W)
  val index = UInt(p.indexBits.W)
}

/** A read burst a client asks for: byte address aligned to a beat, `beats` from 1 to the burst window.
  *
  * The client guarantees that the burst stays in its window; data of one client comes back in order.
  */
class ReadCommand(p: VtaParams) extends Bundle {
  val address = UInt(p.axiAddrBits.W)
  val beats   = UInt(log2Ceil(p.axiBurstBeats + 1).W)
}

/** One beat of read data. `fault` is set on SLVERR and DECERR. */
class ReadBeat(p: VtaParams) extends Bundle {
  val data  = UInt(p.axiDataBits.W)
  val last  = Bool()
  val fault = Bool()
}

/** Read port of one client. A client must be ready to take every beat it asked for (bounded by its own pace). */
class ReadPort(p: VtaParams) extends Bundle {
  val command = Decoupled(new ReadCommand(p))
  val data    = Flipped(Decoupled(new ReadBeat(p)))
}

/** What a unit reports when an instruction is at fault. */
class UnitError(p: VtaParams) extends Bundle {
  val cause   = UInt(8.W)
  val index   = UInt(p.indexBits.W)
  val channel = UInt(4.W)
  val address = UInt(p.axiAddrBits.W)
}

/** One dependence queue seen from its two ends: `push` adds a token, `ready` says one is there, `pop` takes it.
  * Push and pop are single-cycle pulses; `pop` only with `ready`.
  */
class TokenPush extends Bundle {
  val push = Output(Bool())
}

class TokenPop extends Bundle {
  val ready = Input(Bool())
  val pop   = Output(Bool())
}

/** One retired instruction: a single-cycle pulse. */
class Retire(p: VtaParams) extends Bundle {
  val valid = Bool()
  val index = UInt(p.indexBits.W)
}

/** A write into a scratchpad from its loader or from the compute unit.
  *
  * A scratchpad whose element is at least a beat has `parts` beats an element and takes one element (some of its
  * parts) a cycle; one whose element is narrower takes up to `elems` consecutive elements a cycle.
  *
  * @param elems  elements a write may touch: `index`, `index + 1`, ... (mask bit k for `index + k`)
  * @param parts  parts of an element that can be written alone (mask applies to every element written)
  * @param tagBits width of `tag`, the index of the instruction that writes: zero where nothing is traced
  */
class ScratchWrite(val indexBits: Int, val elemBits: Int, val elems: Int, val parts: Int, val tagBits: Int)
    extends Bundle {
  val index    = UInt(indexBits.W)
  val elemMask = UInt(elems.W)
  val partMask = UInt(parts.W)
  val data     = UInt((elems * elemBits).W)
  val tag      = UInt(tagBits.W)
}

/** Shape of a scratchpad: how it is cut so that a bus beat is written in one cycle. */
case class ScratchShape(depth: Int, elemBits: Int, beatBits: Int, tagBits: Int) {
  val indexBits: Int      = log2Ceil(depth)
  val elems: Int          = math.max(1, beatBits / elemBits)
  val parts: Int          = math.max(1, elemBits / beatBits)
  def write: ScratchWrite = new ScratchWrite(indexBits, elemBits, elems, parts, tagBits)
}

object ScratchShape {
  def uop(p: VtaParams): ScratchShape = ScratchShape(p.uopDepth, p.uopElemBits, p.axiDataBits, p.tagBits)
  def inp(p: VtaParams): ScratchShape = ScratchShape(p.inpDepth, p.inpElemBits, p.axiDataBits, p.tagBits)
  def wgt(p: VtaParams): ScratchShape = ScratchShape(p.wgtDepth, p.wgtElemBits, p.axiDataBits, p.tagBits)
  def acc(p: VtaParams): ScratchShape = ScratchShape(p.accDepth, p.accElemBits, p.axiDataBits, p.tagBits)

  /** Written by the compute unit alone and always whole, so an element is never cut: a mask that is constant is no mask. */
  def out(p: VtaParams): ScratchShape =
    ScratchShape(p.accDepth, p.outElemBits, math.max(p.axiDataBits, p.outElemBits), p.tagBits)
}
