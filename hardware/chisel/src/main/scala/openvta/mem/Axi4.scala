// SPDX-License-Identifier: Apache-2.0
package openvta.mem

import chisel3._
import chisel3.util._
import openvta.spec._

/** Read or write address of an AXI4 burst: full-width INCR beats, so only what varies is here. `len` is beats - 1.
  *
  * `tag` is the index of the instruction a write belongs to, where it is traced.
  */
class AxiAddress(p: VtaParams) extends Bundle {
  val id   = UInt(p.axiIdBits.W)
  val addr = UInt(p.axiAddrBits.W)
  val len  = UInt(8.W)
  val tag  = UInt(p.tagBits.W)
}

/** A beat of read data. */
class AxiReadData(p: VtaParams) extends Bundle {
  val id   = UInt(p.axiIdBits.W)
  val data = UInt(p.axiDataBits.W)
  val resp = UInt(2.W)
  val last = Bool()
}

/** A beat of write data. */
class AxiWriteData(p: VtaParams) extends Bundle {
  val data = UInt(p.axiDataBits.W)
  val strb = UInt(p.axiDataBytes.W)
  val last = Bool()
}

/** The response of a written burst. */
class AxiWriteResponse(p: VtaParams) extends Bundle {
  val id   = UInt(p.axiIdBits.W)
  val resp = UInt(2.W)
}

/** The read channels of an AXI4 master. */
class AxiReadChannels(p: VtaParams) extends Bundle {
  val ar = Decoupled(new AxiAddress(p))
  val r  = Flipped(Decoupled(new AxiReadData(p)))
}

/** The write channels of an AXI4 master. */
class AxiWriteChannels(p: VtaParams) extends Bundle {
  val aw = Decoupled(new AxiAddress(p))
  val w  = Decoupled(new AxiWriteData(p))
  val b  = Flipped(Decoupled(new AxiWriteResponse(p)))
}

object AxiResponse {

  /** Whether a response is SLVERR or DECERR. */
  def isFault(resp: UInt): Bool = resp(1)
}
