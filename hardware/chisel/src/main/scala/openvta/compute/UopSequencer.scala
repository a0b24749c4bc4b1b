// SPDX-License-Identifier: Apache-2.0
package openvta.compute

import chisel3._
import chisel3.util._
import openvta.mem.ScratchRead
import openvta.spec._
import openvta.util.Bits

/** From a GEMM or ALU instruction to micro-ops with final indices: loops, micro-op read, sums, range checks.
  *
  * Throughput: one micro-op a cycle, also from one instruction to the next. Latency: three cycles from the command to
  * the first operation. Back-pressure: operations wait in a short queue; nothing is read that would not fit into it.
  * A micro-op out of range raises `fault` for one cycle; it and everything behind it is dropped. `halt` stops the loops.
  */
class UopSequencer(p: VtaParams) extends Module {
  private val streams  = ComputeWidths.uopStreams(p)
  private val loopBits = ComputeWidths.loopBits(p)
  private val capacity = 3
  private val isa      = new Isa(p)

  val io = IO(new Bundle {
    val command   = Flipped(Decoupled(new UopCommand(p)))
    val uop       = Flipped(new ScratchRead(p.uopIndexBits, p.uopElemBits))
    val operation = Decoupled(new UopOperation(p))
    val fault     = Output(Valid(UInt(p.indexBits.W)))
    val halt      = Input(Bool())
    val idle      = Output(Bool())

    /** An instruction still reads micro-ops: those of the last command taken. */
    val reading = Output(Bool())
  })

  private val generator = Module(new IndexGenerator(p.uopIndexBits, loopBits, streams))
  private val control   = RegEnable(io.command.bits.control, io.command.fire)
  private val insnIndex = RegEnable(io.command.bits.index, io.command.fire)
  generator.io.command.valid := io.command.valid
  generator.io.command.bits  := io.command.bits.loops
  io.command.ready           := generator.io.command.ready

  private class Read extends Bundle {
    val step    = new LoopStep(p.uopIndexBits, streams)
    val control = new OpControl(p)
    val index   = UInt(p.indexBits.W)
  }

  private val faulted   = RegInit(false.B)
  private val queue     = Module(new Queue(new UopOperation(p), capacity))
  private val readValid = RegInit(false.B)
  private val room      = queue.io.count +& readValid.asUInt < capacity.U
  private val issue     = generator.io.step.valid && room && !io.halt && !faulted

  generator.io.step.ready := room && !io.halt && !faulted
  io.uop.enable           := issue
  io.uop.index            := generator.io.step.bits.uop
  readValid               := issue

  private val next = Wire(new Read)
  next.step    := generator.io.step.bits
  next.control := control
  next.index   := insnIndex
  private val read = RegEnable(next, issue)

  private val layout   = p.layout("UOP")
  private val fields   = Seq("dst", "src", "wgt").map(name => Isa.field(io.uop.data, layout, name))
  private val sums     = fields.zip(read.step.index).map { case (field, offset) => field +& offset.value }
  private val overflow = read.step.index.map(_.overflow)
  private def outside(stream: Int, indexBits: Int): Bool = overflow(stream) || (sums(stream) >> indexBits).orR

  private val isAlu  = read.control.isAlu
  private val noRead = isAlu && read.control.opcode === isa.aluOpcode("MOV") && read.control.useImm
  private val isGemm = !isAlu && !read.control.reset
  private val bad    = outside(0, p.accIndexBits) ||
    (isAlu && !noRead && outside(1, p.accIndexBits)) ||
    (isGemm && (outside(1, p.inpIndexBits) || outside(2, p.wgtIndexBits)))

  private val checked = readValid && !faulted
  queue.io.enq.valid        := checked && !bad
  queue.io.enq.bits.dst     := sums(0)(p.accIndexBits - 1, 0)
  queue.io.enq.bits.src     := sums(1)(ComputeWidths.source(p) - 1, 0)
  queue.io.enq.bits.wgt     := sums(2)(p.wgtIndexBits - 1, 0)
  queue.io.enq.bits.first   := read.step.first
  queue.io.enq.bits.last    := read.step.last
  queue.io.enq.bits.control := read.control
  queue.io.enq.bits.tag     := Bits.low(read.index, p.tagBits)
  when(checked && bad) { faulted := true.B }

  io.fault.valid := checked && bad
  io.fault.bits  := read.index
  io.operation :<>= queue.io.deq
  io.reading := generator.io.step.valid
  io.idle    := !generator.io.step.valid && !readValid && !queue.io.deq.valid
}
