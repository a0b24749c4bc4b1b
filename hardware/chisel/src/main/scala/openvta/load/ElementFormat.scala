// SPDX-License-Identifier: Apache-2.0
package openvta.load

import chisel3._
import chisel3.util._
import openvta.spec._

/** How elements lie in device memory and how a beat of them becomes a scratchpad write.
  *
  * @param shape     scratchpad
  * @param elemBytes bytes of an element in device memory
  * @param expand    acc bits per bit in memory: 1, or 4 where 8-bit lanes become 32-bit lanes
  */
case class ElementFormat(shape: ScratchShape, elemBytes: Int, expand: Int) {
  require(isPow2(elemBytes), s"an element of $elemBytes bytes is not a power of two")
  require(elemBytes * 8 * expand == shape.elemBits, s"$elemBytes bytes times $expand are not ${shape.elemBits} bits")

  val beatBytes: Int = shape.beatBits / 8
  val elemLog: Int   = log2Ceil(elemBytes)

  /** Whether an element takes several beats. */
  val wide: Boolean = elemBytes > beatBytes

  /** Beats of an element, at least 1. */
  val beats: Int = math.max(1, elemBytes / beatBytes)

  /** Bytes a write may take from one beat. */
  val stepBytes: Int = if (wide) beatBytes else math.min(beatBytes, shape.elems * elemBytes)

  /** Scratchpad parts that one beat fills. */
  val partsPerBeat: Int = math.max(1, shape.parts / beats)

  /** `bits` with every byte extended to 32 bits, where this format expands. */
  def extend(bits: UInt, unsigned: Bool): UInt =
    if (expand == 1) bits
    else {
      val bytes = (0 until bits.getWidth / 8).map(k => bits(8 * k + 7, 8 * k))
      Cat(bytes.map(byte => Cat(Fill(24, byte(7) && !unsigned), byte)).reverse)
    }
}

/** One value per format, chosen by a request: the wide format first, that of 8-bit lanes where it is built. */
class FormatChoice(val formats: Seq[ElementFormat]) {
  def apply[T <: Data](narrow: Bool)(value: ElementFormat => T): T =
    if (formats.size == 1) value(formats.head) else Mux(narrow, value(formats(1)), value(formats.head))

  /** Bits that hold the exponent of the largest element. */
  val elemLogMax: Int = formats.map(_.elemLog).max
}
