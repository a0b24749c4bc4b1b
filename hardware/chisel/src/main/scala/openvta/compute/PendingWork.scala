// SPDX-License-Identifier: Apache-2.0
package openvta.compute

import chisel3._
import chisel3.util._
import openvta.spec._

/** Instructions of one kind that work beside the micro-op pipeline (REQUANT, or loads of acc): from their issue to their end.
  *
  * They are issued in order and end in order. One may start when every older instruction of another kind has retired. Until it
  * ends, micro-ops of younger instructions must not touch its ranges: `hit` says so for a micro-op whose instruction was issued
  * after `epoch` such instructions of both kinds.
  *
  * @param slots  instructions it holds
  * @param ranges acc ranges of an instruction
  */
class PendingWork(p: VtaParams, slots: Int, ranges: Int, countBits: Int) extends Module {
  require(isPow2(slots) && 4 * slots <= (1 << PendingWork.epochBits), s"$slots slots do not fit the epochs")
  override def desiredName: String = s"PendingWork_${slots}x$ranges"

  val io = IO(new Bundle {
    val add    = Flipped(Decoupled(Vec(ranges, new ElementRange(p.accIndexBits))))
    val number = Input(UInt(PendingWork.epochBits.W))

    /** Instructions of other kinds that are issued and not retired after this cycle; and one of them retires now. */
    val others       = Input(UInt(countBits.W))
    val otherRetires = Input(Bool())

    /** The oldest that has not started may start; it does; the oldest ends. */
    val mayStart = Output(Bool())
    val start    = Input(Bool())
    val end      = Input(Bool())

    val epoch   = Input(UInt(PendingWork.epochBits.W))
    val indices = Input(Vec(2, UInt(p.accIndexBits.W)))

    /** For each of `indices`: an older one works on it. And whether there is an older one at all. */
    val hit   = Output(Vec(2, Bool()))
    val older = Output(Bool())
    val empty = Output(Bool())
  })

  private class Slot extends Bundle {
    val ranges = Vec(PendingWork.this.ranges, new ElementRange(p.accIndexBits))
    val number = UInt(PendingWork.epochBits.W)
    val left   = UInt(countBits.W)
  }

  private val valid                   = RegInit(VecInit.fill(slots)(false.B))
  private val waits                   = RegInit(VecInit.fill(slots)(false.B))
  private val slot                    = Reg(Vec(slots, new Slot))
  private val bits                    = math.max(1, log2Ceil(slots))
  private val adding                  = RegInit(0.U(bits.W))
  private val ending                  = RegInit(0.U(bits.W))
  private val at                      = RegInit(0.U(bits.W))
  private def next(place: UInt): UInt = if (slots == 1) 0.U else place + 1.U

  when(io.otherRetires) { slot.foreach(s => when(s.left =/= 0.U) { s.left := s.left - 1.U }) }
  io.add.ready := !valid(adding)
  when(io.add.fire) {
    valid(adding)       := true.B
    waits(adding)       := true.B
    slot(adding).ranges := io.add.bits
    slot(adding).number := io.number
    slot(adding).left   := io.others
    adding              := next(adding)
  }
  io.mayStart := waits(at) && slot(at).left === 0.U
  when(io.start) {
    waits(at) := false.B
    at        := next(at)
  }
  when(io.end) {
    valid(ending) := false.B
    ending        := next(ending)
  }

  private val before = valid.zip(slot).map { case (v, s) =>
    val distance = (io.epoch - s.number)(PendingWork.epochBits - 1, 0)
    v && distance =/= 0.U && !distance(PendingWork.epochBits - 1)
  }
  io.hit.zip(io.indices).foreach { case (hit, index) =>
    hit := before.zip(slot).map { case (b, s) => b && s.ranges.map(_.has(index)).reduce(_ || _) }.reduce(_ || _)
  }
  io.older := before.reduce(_ || _)
  io.empty := !valid.reduce(_ || _)
}

object PendingWork {

  /** Bits of the numbers by which age is told: twice as many as can be told apart are ever pending. */
  val epochBits: Int = 4
}
