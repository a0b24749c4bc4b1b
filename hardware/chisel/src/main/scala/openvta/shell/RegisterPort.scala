// SPDX-License-Identifier: Apache-2.0
package openvta.shell

import chisel3._
import chisel3.util._

/** A register write: one pulse. `strobe` has a bit per byte. */
class RegisterWrite(addrBits: Int) extends Bundle {
  val address = UInt(addrBits.W)
  val data    = UInt(32.W)
  val strobe  = UInt(4.W)
}

/** AXI4-Lite slave in front of a register file.
  *
  * One write and one read at a time, independent of each other; address and data of a write may come in any order. A write is
  * made in the cycle before its response; a read samples in the cycle its address is taken, and is answered in the next.
  */
class RegisterPort(addrBits: Int) extends Module {
  val io = IO(new Bundle {
    val axil        = Flipped(new AxiLite(addrBits))
    val write       = Output(Valid(new RegisterWrite(addrBits)))
    val writeMapped = Input(Bool())
    val readAddress = Output(UInt(addrBits.W))
    val readData    = Input(UInt(32.W))
    val readMapped  = Input(Bool())
  })

  // Nothing is taken during reset, which lasts longer inside than outside.
  private val open = !reset.asBool

  // Writes
  private val address   = Module(new Queue(UInt(addrBits.W), 1))
  private val data      = Module(new Queue(new AxiLiteData, 1))
  private val answering = RegInit(false.B)
  private val answer    = Reg(UInt(2.W))
  private val write     = address.io.deq.valid && data.io.deq.valid && (!answering || io.axil.b.ready)
  address.io.enq :<>= io.axil.aw
  data.io.enq :<>= io.axil.w
  io.axil.aw.ready      := address.io.enq.ready && open
  io.axil.w.ready       := data.io.enq.ready && open
  address.io.deq.ready  := write
  data.io.deq.ready     := write
  io.write.valid        := write
  io.write.bits.address := address.io.deq.bits
  io.write.bits.data    := data.io.deq.bits.data
  io.write.bits.strobe  := data.io.deq.bits.strb
  when(write) {
    answering := true.B
    answer    := Mux(io.writeMapped, AxiLite.okay, AxiLite.slaveError)
  }.elsewhen(io.axil.b.ready) { answering := false.B }
  io.axil.b.valid := answering
  io.axil.b.bits  := answer

  // Reads
  private val reading = RegInit(false.B)
  private val result  = Reg(new AxiLiteAnswer)
  io.readAddress   := io.axil.ar.bits
  io.axil.ar.ready := (!reading || io.axil.r.ready) && open
  when(io.axil.ar.fire) {
    reading     := true.B
    result.data := Mux(io.readMapped, io.readData, 0.U)
    result.resp := Mux(io.readMapped, AxiLite.okay, AxiLite.slaveError)
  }.elsewhen(io.axil.r.ready) { reading := false.B }
  io.axil.r.valid := reading
  io.axil.r.bits  := result
}
