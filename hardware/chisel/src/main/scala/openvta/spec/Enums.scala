// SPDX-License-Identifier: Apache-2.0
package openvta.spec

import chisel3._

/** Numbers of the instruction set as hardware literals, looked up by the names of the specification. */
class Isa(p: VtaParams) {
  private def u(kind: String, width: Int)(member: String): UInt = p.enumValue(kind, member).U(width.W)

  def opcode(member: String): UInt      = u("Opcode", 3)(member)
  def memId(member: String): UInt       = u("MemId", 3)(member)
  def aluOpcode(member: String): UInt   = u("AluOpcode", 3)(member)
  def requantMode(member: String): UInt = u("RequantMode", 3)(member)
  def unit(member: String): UInt        = u("Unit", 4)(member)
  def cause(member: String): UInt       = u("Cause", 8)(member)
  def queue(member: String): Int        = p.enumValue("Queue", member)
}

object Isa {

  /** A named field of a word laid out by the specification, as UInt (or the raw bits of a signed field). */
  def field(word: UInt, layout: LayoutSpec, name: String): UInt = {
    val f = layout(name)
    word(f.hi, f.lo)
  }
}
