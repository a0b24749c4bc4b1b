// SPDX-License-Identifier: Apache-2.0
package openvta.store

import chisel3._
import chisel3.util._
import openvta.mem.{AxiAddress, AxiWriteChannels, AxiWriteData}
import openvta.spec._

/** Stands between the store unit and the AXI4 write port, and outlives a soft reset of the store unit.
  *
  * Registered addresses and beats are stable until they are taken (latency 1, one a cycle). A beat is passed on only when the
  * address of its burst is on the way. Back-pressure is passed on.
  *
  * `flush` (a pulse or longer) begins a new epoch: beats that bursts asked for before still owe are made up here, with no byte
  * enabled, and responses of those bursts are taken and dropped; the client is not listened to while it lasts.
  */
class WriteEngine(p: VtaParams) extends Module {
  val io = IO(new Bundle {
    val client = Flipped(new AxiWriteChannels(p))
    val axi    = new AxiWriteChannels(p)
    val flush  = Input(Bool())

    /** No burst is waiting or in flight. */
    val idle = Output(Bool())
  })

  private val depth     = math.max(2, p.axiOutstanding)
  private val countBits = log2Ceil(depth + 1)
  private val address   = Module(new Queue(new AxiAddress(p), 2))
  private val data      = Module(new Queue(new AxiWriteData(p), 2))

  // Bursts whose response is missing, and of these the ones of an earlier epoch.
  private val responses = RegInit(0.U(countBits.W))
  private val oldOnes   = RegInit(0.U(countBits.W))

  // Bursts whose beats are missing, oldest first, and how many of these are of an earlier epoch.
  private val owed      = Module(new Queue(UInt(8.W), depth))
  private val owedOld   = RegInit(0.U(countBits.W))
  private val beatsSent = RegInit(0.U(8.W))

  private val open = responses < p.axiOutstanding.U && owed.io.enq.ready && !io.flush
  address.io.enq.valid := io.client.aw.valid && open
  address.io.enq.bits  := io.client.aw.bits
  io.client.aw.ready   := address.io.enq.ready && open
  owed.io.enq.valid    := io.client.aw.fire
  owed.io.enq.bits     := io.client.aw.bits.len
  io.axi.aw :<>= address.io.deq

  private val makeUp = owedOld =/= 0.U
  private val ends   = beatsSent === owed.io.deq.bits
  private val listen = owed.io.deq.valid && !makeUp && !io.flush
  data.io.enq.valid     := owed.io.deq.valid && !io.flush && (makeUp || io.client.w.valid)
  data.io.enq.bits.data := Mux(makeUp, 0.U, io.client.w.bits.data)
  data.io.enq.bits.strb := Mux(makeUp, 0.U, io.client.w.bits.strb)
  data.io.enq.bits.last := ends
  io.client.w.ready     := listen && data.io.enq.ready
  owed.io.deq.ready     := data.io.enq.fire && ends
  when(data.io.enq.fire) { beatsSent := Mux(ends, 0.U, beatsSent + 1.U) }
  io.axi.w :<>= data.io.deq

  private val drop = oldOnes =/= 0.U || io.flush
  io.client.b.valid := io.axi.b.valid && !drop
  io.client.b.bits  := io.axi.b.bits
  io.axi.b.ready    := (drop && responses =/= 0.U) || io.client.b.ready

  private val after = responses + io.client.aw.fire - io.axi.b.fire
  responses := after
  when(io.flush) {
    oldOnes := after
    owedOld := owed.io.count
  }.otherwise {
    when(oldOnes =/= 0.U && io.axi.b.fire) { oldOnes := oldOnes - 1.U }
    when(makeUp && owed.io.deq.fire) { owedOld := owedOld - 1.U }
  }
  io.idle := responses === 0.U
}
