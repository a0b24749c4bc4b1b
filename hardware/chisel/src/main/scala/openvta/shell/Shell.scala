// SPDX-License-Identifier: Apache-2.0
package openvta.shell

import chisel3._
import chisel3.util._
import openvta.mem.{AxiReadChannels, AxiWriteChannels, ReadEngine}
import openvta.spec._
import openvta.store.WriteEngine

/** The whole accelerator: registers, soft reset, core and the engines of the AXI4 port.
  *
  * A soft reset resets the core alone. The engines live on: they finish what was promised on the bus and drop what the core
  * no longer waits for, so the next run is exact whenever the reset came.
  */
class Shell(p: VtaParams) extends Module {
  private val addrBits = log2Ceil(p.constants("register_space_bytes").toInt)

  val io = IO(new Bundle {
    val axil      = Flipped(new AxiLite(addrBits))
    val read      = new AxiReadChannels(p)
    val write     = new AxiWriteChannels(p)
    val interrupt = Output(Bool())
    val trace     = Output(new RetireTrace(p))
  })

  private val registers   = Module(new Registers(p))
  private val softReset   = Module(new SoftReset(p.register("WATCHDOG").reset))
  private val core        = withReset(reset.asBool || softReset.io.reset)(Module(new Core(p)))
  private val readEngine  = Module(new ReadEngine(p))
  private val writeEngine = Module(new WriteEngine(p))

  private val progress = Seq(io.read.ar.fire, io.read.r.fire, io.write.aw.fire, io.write.w.fire, io.write.b.fire)
    .reduce(_ || _)

  registers.io.axil :<>= io.axil
  registers.io.status        := core.io.status
  registers.io.resetting     := softReset.io.busy
  registers.io.readsPending  := !readEngine.io.idle
  registers.io.writesPending := !writeEngine.io.idle
  io.interrupt               := registers.io.interrupt

  softReset.io.request  := registers.io.softReset
  softReset.io.bound    := registers.io.control.watchdog
  softReset.io.pending  := !readEngine.io.idle || !writeEngine.io.idle
  softReset.io.progress := progress

  core.io.control     := registers.io.control
  core.io.halt        := softReset.io.halt
  core.io.busProgress := progress

  readEngine.io.clients :<>= core.io.reads
  readEngine.io.flush := softReset.io.reset
  io.read :<>= readEngine.io.axi
  writeEngine.io.client :<>= core.io.write
  writeEngine.io.flush := softReset.io.reset
  io.write :<>= writeEngine.io.axi

  io.trace := RegNext(core.io.trace, 0.U.asTypeOf(new RetireTrace(p)))
}
