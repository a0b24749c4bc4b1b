// SPDX-License-Identifier: Apache-2.0
package openvta.compute

import chisel3._
import chisel3.util._
import openvta.mem.ScratchRead
import openvta.spec._

/** Matrix products into acc: `acc[dst] += inp[src] * wgt[wgt]^T`, or zero with `reset`.
  *
  * Throughput: one micro-op a cycle, whatever the distance between uses of an acc element; it never stalls.
  * Latency: `DotProduct.latency + 3` cycles from the micro-op to the end of its write, if a run ends with it.
  *
  * Consecutive micro-ops with one dst form a run that is summed in a register: acc is read only for the first and
  * written (acc and out) when another dst, another instruction or a gap follows. The read of an element is issued one cycle
  * before its sum is needed; every older run has been written by then, or is written in that very cycle, which the
  * write-first acc memory passes on. So each memory port is used at most once a cycle and every sum is exact.
  */
class GemmCore(p: VtaParams) extends Module {
  val io = IO(new Bundle {
    val operation = Flipped(Decoupled(new UopOperation(p)))
    val inp       = Flipped(new ScratchRead(p.inpIndexBits, p.inpElemBits))
    val wgt       = Flipped(new ScratchRead(p.wgtIndexBits, p.wgtElemBits))
    val accRead   = Flipped(new ScratchRead(p.accIndexBits, p.accElemBits))
    val accWrite  = Output(Valid(new ElementWrite(p.accIndexBits, p.accElemBits, p.tagBits)))
    val outWrite  = Output(Valid(new ElementWrite(p.accIndexBits, p.outElemBits, p.tagBits)))

    /** The last write of an instruction is made in this cycle. */
    val done = Output(Bool())
    val idle = Output(Bool())
  })

  private class Stage extends Bundle {
    val dst   = UInt(p.accIndexBits.W)
    val first = Bool()
    val last  = Bool()
    val reset = Bool()
    val sat   = Bool()
    val tag   = UInt(p.tagBits.W)
  }

  private val latency  = DotProduct.latency(p.block)
  private val accepted = io.operation.valid
  private val isReset  = io.operation.bits.control.reset
  io.operation.ready := true.B
  io.inp.enable      := accepted && !isReset
  io.inp.index       := io.operation.bits.src
  io.wgt.enable      := accepted && !isReset
  io.wgt.index       := io.operation.bits.wgt

  // Stage 0 has the memories' data, stage `latency` the sums.
  private val head = Wire(new Stage)
  head.dst   := io.operation.bits.dst
  head.first := io.operation.bits.first
  head.last  := io.operation.bits.last
  head.reset := isReset
  head.sat   := io.operation.bits.control.sat
  head.tag   := io.operation.bits.tag
  private val valid  = Seq.iterate(RegNext(accepted, false.B), latency + 1)(v => RegNext(v, false.B))
  private val stages = valid.init.scanLeft(RegEnable(head, accepted))((stage, v) => RegEnable(stage, v))

  private def lanes(word: UInt, count: Int, bits: Int): Seq[SInt] =
    (0 until count).map(k => word((k + 1) * bits - 1, k * bits).asSInt)
  private val inp    = lanes(io.inp.data, p.batch * p.block, p.inpBits).grouped(p.block).toSeq
  private val wgt    = lanes(io.wgt.data, p.block * p.block, p.wgtBits).grouped(p.block).toSeq
  private val enable = valid.zip(stages).init.map { case (v, s) => v && !s.reset }
  private val sums   = inp.flatMap(row => wgt.map(column => DotProduct(row, column, enable)))

  // The accumulator: `before` is the micro-op whose acc element is being read, `now` the one whose sum is added.
  private val (beforeValid, before) = (valid(latency - 1), stages(latency - 1))
  private val (nowValid, now)       = (valid(latency), stages(latency))
  private val continues             = nowValid && before.dst === now.dst
  private val fromRun               = RegEnable(continues, beforeValid)
  io.accRead.enable := beforeValid && !continues
  io.accRead.index  := before.dst

  private val runValid = RegInit(false.B)
  private val run      = Reg(new Stage)
  private val runSums  = Reg(Vec(p.lanes, UInt(p.accBits.W)))
  private val stays    = nowValid && fromRun && !now.first
  private val accLanes = lanes(io.accRead.data, p.lanes, p.accBits)
  runValid := nowValid
  when(nowValid) {
    run := now
    runSums.zip(accLanes).zip(sums).foreach { case ((sum, memory), product) =>
      val base = Mux(fromRun, sum, memory.asUInt)
      sum := Mux(now.reset, 0.U, base + product.pad(p.accBits).asUInt(p.accBits - 1, 0))
    }
  }

  private val write = runValid && !stays
  io.accWrite.valid      := write
  io.accWrite.bits.index := run.dst
  io.accWrite.bits.data  := Cat(runSums.reverse)
  io.accWrite.bits.tag   := run.tag
  io.outWrite.valid      := write && !run.reset
  io.outWrite.bits.index := run.dst
  io.outWrite.bits.data  := Narrow(p, runSums, run.sat)
  io.outWrite.bits.tag   := run.tag
  io.done                := write && run.last
  io.idle                := !valid.reduce(_ || _) && !runValid
}
