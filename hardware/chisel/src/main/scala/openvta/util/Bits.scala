// SPDX-License-Identifier: Apache-2.0
package openvta.util

import chisel3._
import openvta.spec.{LayoutSpec, SpecMismatch}

/** Small helpers on bits that allow a width of zero. */
object Bits {

  /** The low `width` bits; zero for no bits. */
  def low(value: UInt, width: Int): UInt = if (width == 0) 0.U(0.W) else value.pad(width)(width - 1, 0)

  /** Items turned so that item k comes to place (k + by) % items; as many items as a power of two. */
  def rotateUp[T <: Data](items: Seq[T], by: UInt): Seq[T] = {
    val steps = Integer.numberOfTrailingZeros(items.length)
    (0 until steps).foldLeft(items) { (turned, bit) =>
      val step = 1 << bit
      turned.indices.map(k => Mux(by(bit), turned((k - step + items.length) % items.length), turned(k)))
    }
  }

  /** A word of a layout from the values of all its fields. */
  def pack(layout: LayoutSpec, values: (String, UInt)*): UInt = {
    val names  = layout.fields.map(_.name).toSet
    val driven = values.map(_._1).toSet
    if (driven != names)
      throw new SpecMismatch(s"register ${layout.name}: the hardware drives $driven, the configuration has $names")
    values
      .map { case (name, value) => (low(value, layout(name).width) << layout(name).lo).asUInt.pad(layout.bits) }
      .reduce(_ | _)(layout.bits - 1, 0)
  }
}
