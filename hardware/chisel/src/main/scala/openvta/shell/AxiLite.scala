// SPDX-License-Identifier: Apache-2.0
package openvta.shell

import chisel3._
import chisel3.util._

/** An AXI4-Lite port of 32 bits as its master sees it. */
class AxiLite(addrBits: Int) extends Bundle {
  val aw = Decoupled(UInt(addrBits.W))
  val w  = Decoupled(new AxiLiteData)
  val b  = Flipped(Decoupled(UInt(2.W)))
  val ar = Decoupled(UInt(addrBits.W))
  val r  = Flipped(Decoupled(new AxiLiteAnswer))
}

class AxiLiteData extends Bundle {
  val data = UInt(32.W)
  val strb = UInt(4.W)
}

class AxiLiteAnswer extends Bundle {
  val data = UInt(32.W)
  val resp = UInt(2.W)
}

object AxiLite {
  val okay: UInt       = 0.U(2.W)
  val slaveError: UInt = 2.U(2.W)
}
