// SPDX-License-Identifier: Apache-2.0
package openvta.shell

import chisel3._
import chisel3.util._
import openvta.mem.AxiAddress
import openvta.spec._

/** Top level: the accelerator with flat AXI names and the synchronised AXI reset.
  *
  * `aresetn` acts at once and is left with two clock edges of delay; inside, resets are synchronous and active high.
  */
class VtaTop(p: VtaParams) extends RawModule {
  private val addrBits = log2Ceil(p.constants("register_space_bytes").toInt)
  private val sizeBits = 3

  val clock   = IO(Input(Clock()))
  val aresetn = IO(Input(Bool()))

  private def port[T <: Data](name: String, data: => T): T = chisel3.experimental.noPrefix(IO(data).suggestName(name))
  private def in(name: String, width: Int): UInt           = port(name, Input(UInt(width.W)))
  private def inBit(name: String): Bool                    = port(name, Input(Bool()))
  private def out(name: String, value: UInt): Unit         = { port(name, Output(UInt(value.getWidth.W))) := value }
  private def bit(name: String, value: Bool): Unit         = { port(name, Output(Bool())) := value }

  private val resetStages = withClockAndReset(clock, (!aresetn).asAsyncReset) {
    ShiftRegister(false.B, 2, true.B, true.B)
  }
  private val shell = withClockAndReset(clock, resetStages)(Module(new Shell(p)))

  // AXI4-Lite slave
  private val axil = shell.io.axil
  axil.aw.bits  := in("s_axil_awaddr", addrBits)
  axil.aw.valid := inBit("s_axil_awvalid")
  bit("s_axil_awready", axil.aw.ready)
  axil.w.bits.data := in("s_axil_wdata", 32)
  axil.w.bits.strb := in("s_axil_wstrb", 4)
  axil.w.valid     := inBit("s_axil_wvalid")
  bit("s_axil_wready", axil.w.ready)
  out("s_axil_bresp", axil.b.bits)
  bit("s_axil_bvalid", axil.b.valid)
  axil.b.ready  := inBit("s_axil_bready")
  axil.ar.bits  := in("s_axil_araddr", addrBits)
  axil.ar.valid := inBit("s_axil_arvalid")
  bit("s_axil_arready", axil.ar.ready)
  out("s_axil_rdata", axil.r.bits.data)
  out("s_axil_rresp", axil.r.bits.resp)
  bit("s_axil_rvalid", axil.r.valid)
  axil.r.ready := inBit("s_axil_rready")

  // AXI4 master: full-width INCR bursts, normal memory, unprivileged secure data
  private val incr                                                          = 1.U(2.W)
  private val modifiable                                                    = 3.U(4.W)
  private val size                                                          = log2Ceil(p.axiDataBytes).U(sizeBits.W)
  private def address(channel: String, from: DecoupledIO[AxiAddress]): Unit = {
    out(s"m_axi_${channel}id", from.bits.id)
    out(s"m_axi_${channel}addr", from.bits.addr)
    out(s"m_axi_${channel}len", from.bits.len)
    out(s"m_axi_${channel}size", size)
    out(s"m_axi_${channel}burst", incr)
    out(s"m_axi_${channel}cache", modifiable)
    out(s"m_axi_${channel}prot", 0.U(3.W))
    bit(s"m_axi_${channel}lock", false.B)
    out(s"m_axi_${channel}qos", 0.U(4.W))
    bit(s"m_axi_${channel}valid", from.valid)
    from.ready := inBit(s"m_axi_${channel}ready")
  }
  private val write = shell.io.write
  address("aw", write.aw)
  out("m_axi_wdata", write.w.bits.data)
  out("m_axi_wstrb", write.w.bits.strb)
  bit("m_axi_wlast", write.w.bits.last)
  bit("m_axi_wvalid", write.w.valid)
  write.w.ready     := inBit("m_axi_wready")
  write.b.bits.id   := in("m_axi_bid", p.axiIdBits)
  write.b.bits.resp := in("m_axi_bresp", 2)
  write.b.valid     := inBit("m_axi_bvalid")
  bit("m_axi_bready", write.b.ready)

  private val read = shell.io.read
  address("ar", read.ar)
  read.r.bits.id   := in("m_axi_rid", p.axiIdBits)
  read.r.bits.data := in("m_axi_rdata", p.axiDataBits)
  read.r.bits.resp := in("m_axi_rresp", 2)
  read.r.bits.last := inBit("m_axi_rlast")
  read.r.valid     := inBit("m_axi_rvalid")
  bit("m_axi_rready", read.r.ready)

  bit("interrupt", shell.io.interrupt)
  private def trace(unit: String, retire: Retire): Unit = {
    bit(s"trace_${unit}_valid", retire.valid)
    out(s"trace_${unit}_index", retire.index)
  }
  trace("load", shell.io.trace.load)
  trace("compute", shell.io.trace.compute)
  trace("store", shell.io.trace.store)
  bit("trace_gemm_last", shell.io.trace.gemmLast)
  if (p.trace) out("trace_aw_tag", write.aw.bits.tag)
}
