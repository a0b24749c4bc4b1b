// SPDX-License-Identifier: Apache-2.0
package openvta.compute

import chisel3._
import chisel3.util._

/** An index computed without wrapping: once a sum leaves `bits` bits, `overflow` stays set. */
class LoopIndex(bits: Int) extends Bundle {
  val value    = UInt(bits.W)
  val overflow = Bool()
}

/** A nest of three loops: `for o < iterOut, for i < iterIn, for u in uopBegin until uopEnd`, none of them empty.
  *
  * Stream s has the index `base(s) + o * factorOut(s) + i * factorIn(s)`.
  */
class LoopCommand(uopBits: Int, loopBits: Int, widths: Seq[Int]) extends Bundle {
  val uopBegin  = UInt(uopBits.W)
  val uopEnd    = UInt((uopBits + 1).W)
  val iterOut   = UInt(loopBits.W)
  val iterIn    = UInt(loopBits.W)
  val base      = MixedVec(widths.map(w => UInt(w.W)))
  val factorOut = MixedVec(widths.map(w => UInt(w.W)))
  val factorIn  = MixedVec(widths.map(w => UInt(w.W)))
}

/** One step of a nest. `first` and `last` mark the ends of the whole nest. */
class LoopStep(uopBits: Int, widths: Seq[Int]) extends Bundle {
  val uop   = UInt(uopBits.W)
  val index = MixedVec(widths.map(w => new LoopIndex(w)))
  val first = Bool()
  val last  = Bool()
}

/** Walks a nest of three loops, the micro-op innermost.
  *
  * Throughput: one step a cycle, also from one command to the next. Latency: the first step is there the cycle after
  * the command. Back-pressure: a step waits until it is taken, at any point of the nest.
  */
class IndexGenerator(uopBits: Int, loopBits: Int, widths: Seq[Int]) extends Module {
  override def desiredName: String = s"IndexGenerator_u${uopBits}_${widths.mkString("_")}"

  val io = IO(new Bundle {
    val command = Flipped(Decoupled(new LoopCommand(uopBits, loopBits, widths)))
    val step    = Decoupled(new LoopStep(uopBits, widths))
  })

  private val active    = RegInit(false.B)
  private val first     = Reg(Bool())
  private val command   = Reg(new LoopCommand(uopBits, loopBits, widths))
  private val uop       = Reg(UInt(uopBits.W))
  private val outerLeft = Reg(UInt(loopBits.W))
  private val innerLeft = Reg(UInt(loopBits.W))
  private val outer     = Reg(MixedVec(widths.map(w => new LoopIndex(w))))
  private val inner     = Reg(MixedVec(widths.map(w => new LoopIndex(w))))

  private val uopDone   = uop +& 1.U === command.uopEnd
  private val innerDone = innerLeft === 0.U
  private val outerDone = outerLeft === 0.U
  private val last      = uopDone && innerDone && outerDone

  io.step.valid      := active
  io.step.bits.uop   := uop
  io.step.bits.index := inner
  io.step.bits.first := first
  io.step.bits.last  := last
  io.command.ready   := !active || (io.step.ready && last)

  private def advance(index: LoopIndex, factor: UInt, bits: Int): LoopIndex = {
    val sum  = index.value +& factor
    val next = Wire(new LoopIndex(bits))
    next.value    := sum(bits - 1, 0)
    next.overflow := index.overflow || sum(bits)
    next
  }

  when(io.step.fire) {
    first := false.B
    uop   := Mux(uopDone, command.uopBegin, uop + 1.U)
    when(uopDone) {
      innerLeft := Mux(innerDone, command.iterIn - 1.U, innerLeft - 1.U)
      when(innerDone) { outerLeft := outerLeft - 1.U }
      widths.indices.foreach { s =>
        val nextOuter = advance(outer(s), command.factorOut(s), widths(s))
        when(innerDone) { outer(s) := nextOuter }
        inner(s) := Mux(innerDone, nextOuter, advance(inner(s), command.factorIn(s), widths(s)))
      }
    }
    when(last) { active := false.B }
  }
  when(io.command.fire) {
    active    := true.B
    first     := true.B
    command   := io.command.bits
    uop       := io.command.bits.uopBegin
    outerLeft := io.command.bits.iterOut - 1.U
    innerLeft := io.command.bits.iterIn - 1.U
    widths.indices.foreach { s =>
      outer(s).value    := io.command.bits.base(s)
      outer(s).overflow := false.B
      inner(s).value    := io.command.bits.base(s)
      inner(s).overflow := false.B
    }
  }
}
