// SPDX-License-Identifier: Apache-2.0
package openvta.compute

import chisel3._
import chisel3.util._
import openvta.spec._

/** A write of one whole element; `tag` is the index of the instruction it belongs to, where it is traced. */
class ElementWrite(indexBits: Int, dataBits: Int, tagBits: Int) extends Bundle {
  val index = UInt(indexBits.W)
  val data  = UInt(dataBits.W)
  val tag   = UInt(tagBits.W)
}

/** Widths the compute unit shares. */
object ComputeWidths {
  def loopBits(p: VtaParams): Int = p.layout("GEMM")("iter_out").width

  /** Source index of a micro-op: inp (GEMM) or acc (ALU). */
  def source(p: VtaParams): Int = p.layout("UOP")("src").width

  /** Streams of a micro-op nest: dst, src, wgt. */
  def uopStreams(p: VtaParams): Seq[Int] = Seq(p.accIndexBits, source(p), p.wgtIndexBits)

  /** Streams of a requantization nest: data and parameters. */
  def requantStreams(p: VtaParams): Seq[Int] = Seq(p.accIndexBits, p.accIndexBits)

  /** Requantizer lanes, and so wide multipliers, that are built. */
  def requantLanes(p: VtaParams): Int = p.lanes / p.requantCycles
}

/** What a GEMM or ALU instruction says beside its loops. */
class OpControl(p: VtaParams) extends Bundle {
  private val alu = p.layout("ALU")
  val isAlu       = Bool()
  val reset       = Bool()
  val sat         = Bool()
  val opcode      = UInt(alu("alu_opcode").width.W)
  val useImm      = Bool()
  val imm         = UInt(alu("imm").width.W)

  /** Number of the instruction among those of [[PendingWork]]: how many were issued before, modulo. */
  val epoch = UInt(PendingWork.epochBits.W)
}

/** A GEMM or ALU instruction with work to do. */
class UopCommand(p: VtaParams) extends Bundle {
  val loops   = new LoopCommand(p.uopIndexBits, ComputeWidths.loopBits(p), ComputeWidths.uopStreams(p))
  val control = new OpControl(p)
  val index   = UInt(p.indexBits.W)
}

/** One micro-op with its final indices, all of them in range. `first` and `last` mark the ends of the instruction. */
class UopOperation(p: VtaParams) extends Bundle {
  val dst     = UInt(p.accIndexBits.W)
  val src     = UInt(ComputeWidths.source(p).W)
  val wgt     = UInt(p.wgtIndexBits.W)
  val first   = Bool()
  val last    = Bool()
  val control = new OpControl(p)
  val tag     = UInt(p.tagBits.W)
}

/** A REQUANT instruction with work to do. */
class RequantCommand(p: VtaParams) extends Bundle {
  val loops       = new LoopCommand(1, ComputeWidths.loopBits(p), ComputeWidths.requantStreams(p))
  val mode        = UInt(3.W)
  val clear       = Bool()
  val writeAcc    = Bool()
  val unsignedOut = Bool()

  /** No parameter lies between the first and the last element of data. */
  val separate = Bool()
  val index    = UInt(p.indexBits.W)
}

/** Narrowing of acc lanes on the way to out. */
object Narrow {

  /** Low bits of every lane, or saturated where `saturate` (only built with the extension). */
  def apply(p: VtaParams, lanes: Seq[UInt], saturate: Bool): UInt = {
    val narrowed = lanes.map { lane =>
      val low = lane(p.outBits - 1, 0)
      if (p.has("sat")) {
        val sign = lane(p.accBits - 1)
        val fits = lane(p.accBits - 1, p.outBits - 1) === Fill(p.accBits - p.outBits + 1, sign)
        val edge = if (p.outBits == 1) sign else Cat(sign, Fill(p.outBits - 1, !sign))
        Mux(saturate && !fits, edge, low)
      } else low
    }
    Cat(narrowed.reverse)
  }
}
