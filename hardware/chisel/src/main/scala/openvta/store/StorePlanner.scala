// SPDX-License-Identifier: Apache-2.0
package openvta.store

import chisel3._
import chisel3.util._
import openvta.spec._
import openvta.util.Bits

/** Cuts the rows of a STORE into bursts that stay in their window.
  *
  * Throughput: one burst a cycle, also from row to row and from task to task. Latency: the first burst is there the cycle
  * after the task. Back-pressure: a burst waits until it is taken; `halt` takes the offer back and makes no further ones.
  */
class StorePlanner(p: VtaParams) extends Module {
  private val shape = new StoreShape(p)

  val io = IO(new Bundle {
    val task  = Flipped(Decoupled(new StoreTask(p)))
    val burst = Decoupled(new StoreBurst(p))
    val halt  = Input(Bool())
    val busy  = Output(Bool())
  })

  private val active    = RegInit(false.B)
  private val task      = Reg(new StoreTask(p))
  private val address   = Reg(UInt(shape.addressBits.W))
  private val nextRow   = Reg(UInt(shape.addressBits.W))
  private val source    = Reg(UInt(shape.sourceBits.W))
  private val unitsLeft = Reg(UInt(shape.countBits.W))
  private val rowsLeft  = Reg(UInt(task.rows.getWidth.W))

  private val slot     = Bits.low(address, shape.slotBits)
  private val toWindow = shape.windowUnits.U(shape.burstBits.W) - Bits.low(address, shape.windowBits)
  private val rowEnds  = unitsLeft <= toWindow
  private val units    = Mux(rowEnds, unitsLeft, toWindow)(math.min(shape.burstBits, shape.countBits) - 1, 0)
  private val last     = task.noop || (rowEnds && rowsLeft === 1.U)

  io.burst.valid        := active && !io.halt
  io.burst.bits.index   := task.index
  io.burst.bits.push    := task.push
  io.burst.bits.last    := last
  io.burst.bits.empty   := task.noop
  io.burst.bits.address := ((address >> shape.slotBits) << log2Ceil(p.axiDataBytes)).asUInt
  io.burst.bits.beats   := Bits.low((slot +& units +& (shape.unitsPerBeat - 1).U) >> shape.slotBits, shape.beatBits)
  io.burst.bits.units   := units
  io.burst.bits.slot    := slot
  io.burst.bits.source  := source
  io.busy               := active

  when(io.burst.fire) {
    source    := source + units
    address   := Mux(rowEnds, nextRow, address + units)
    unitsLeft := Mux(rowEnds, task.rowUnits, unitsLeft - units)
    when(rowEnds) {
      nextRow  := nextRow + task.stride
      rowsLeft := rowsLeft - 1.U
    }
    when(last) { active := false.B }
  }
  io.task.ready := !active || (io.burst.fire && last)
  when(io.task.fire) {
    active    := true.B
    task      := io.task.bits
    address   := io.task.bits.address
    nextRow   := io.task.bits.address + io.task.bits.stride
    source    := io.task.bits.source
    unitsLeft := io.task.bits.rowUnits
    rowsLeft  := io.task.bits.rows
  }
}
