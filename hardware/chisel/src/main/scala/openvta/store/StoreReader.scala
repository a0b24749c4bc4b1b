// SPDX-License-Identifier: Apache-2.0
package openvta.store

import chisel3._
import chisel3.util._
import openvta.mem.{AxiWriteData, ScratchRead}
import openvta.spec._
import openvta.util.Bits

/** Reads out elements and packs them into the beats of bursts.
  *
  * Throughput: one beat a cycle, also from burst to burst. Latency: three cycles from the burst to its first beat.
  * Back-pressure: beats wait in a short queue, unchanged until they are taken; out is read only for beats that fit into it.
  */
class StoreReader(p: VtaParams) extends Module {
  private val shape = new StoreShape(p)
  private val depth = 4

  val io = IO(new Bundle {
    val burst   = Flipped(Decoupled(new StoreBurst(p)))
    val outRead = Flipped(new ScratchRead(p.accIndexBits, ScratchShape.out(p).elems * p.outElemBits))
    val beat    = Decoupled(new AxiWriteData(p))

    /** Beats are still to be read. */
    val busy = Output(Bool())
  })

  private class Step extends Bundle {
    val mask = UInt(shape.unitsPerBeat.W)
    val slot = UInt(shape.slotBits.W)
    val part = UInt(shape.partBits.W)
    val last = Bool()
  }

  private val active = RegInit(false.B)
  private val source = Reg(UInt(shape.sourceBits.W))
  private val slot   = Reg(UInt(shape.slotBits.W))
  private val left   = Reg(UInt(shape.burstBits.W))

  private val beats     = Module(new Queue(new AxiWriteData(p), depth))
  private val readValid = RegInit(false.B)
  private val room      = beats.io.count +& readValid.asUInt < depth.U
  private val issue     = active && room
  private val places    = shape.unitsPerBeat.U - slot
  private val last      = left <= places

  readValid         := issue
  io.outRead.enable := issue
  io.outRead.index  := source >> shape.partBits
  io.burst.ready    := !active || (issue && last)

  private val step = Wire(new Step)
  step.mask := Cat((0 until shape.unitsPerBeat).reverse.map(k => k.U >= slot && k.U < slot +& left))
  step.slot := slot
  step.part := Bits.low(source, shape.partBits)
  step.last := last
  private val read = RegEnable(step, issue)

  when(issue) {
    source := source + places
    left   := left - places
    slot   := Bits.low(0.U, shape.slotBits)
    when(last) { active := false.B }
  }
  when(io.burst.fire) {
    active := true.B
    source := io.burst.bits.source
    slot   := io.burst.bits.slot
    left   := io.burst.bits.units
  }

  // The first unit read goes to place `slot`.
  private val units = (0 until shape.unitsPerBeat * shape.unitsPerElem).map(k =>
    io.outRead.data((k + 1) * shape.unitBits - 1, k * shape.unitBits)
  )
  private val data =
    if (shape.unitsPerBeat > 1) Cat(Bits.rotateUp(units, read.slot).reverse)
    else if (shape.unitsPerElem > 1) VecInit(units)(read.part)
    else units.head
  beats.io.enq.valid     := readValid
  beats.io.enq.bits.data := data
  beats.io.enq.bits.strb := Cat((0 until shape.unitsPerBeat).reverse.map(k => Fill(shape.unitBytes, read.mask(k))))
  beats.io.enq.bits.last := read.last
  io.beat :<>= beats.io.deq
  io.busy := active || readValid
}
