// SPDX-License-Identifier: Apache-2.0
package openvta.load

import chisel3._
import chisel3.util._
import openvta.mem.BurstWindow
import openvta.spec._

/** The load unit: LOAD of inp and wgt, each with a loader and a read client of its own.
  *
  * Instructions are taken in order, one a cycle, together with the token they pop; up to `flight` may be in hand, of which each
  * loader keeps up to `requests` beside those it works on. So inp and wgt load at the same time, an inp load goes on while wgt loads
  * before it wait for memory, and the next is asked for while the last still arrives. Pushes and retire pulses come in instruction
  * order, one a cycle, each when that instruction and all before it are complete. Back-pressure: an instruction waits for its token,
  * for room before its loader, and for room among those in flight; the next waits behind it.
  *
  * After a fault of either loader, or `halt`, nothing is taken, pushed or retired until reset.
  */
class LoadUnit(p: VtaParams) extends Module {
  private val inp = LoaderSpec.inp(p)
  private val wgt = LoaderSpec.wgt(p)

  val io = IO(new Bundle {
    val insn           = Flipped(Decoupled(new QueuedInsn(p)))
    val popFromCompute = new TokenPop
    val pushToCompute  = new TokenPush
    val baseInp        = Input(UInt(p.axiAddrBits.W))
    val baseWgt        = Input(UInt(p.axiAddrBits.W))
    val readInp        = new ReadPort(p)
    val readWgt        = new ReadPort(p)
    val writeInp       = Output(Valid(inp.shape.write))
    val writeWgt       = Output(Valid(wgt.shape.write))
    val retire         = Output(new Retire(p))
    val error          = Output(Valid(new UnitError(p)))
    val halt           = Input(Bool())

    /** An instruction is in flight; a loader works and does not wait for data. */
    val busy  = Output(Bool())
    val moves = Output(Bool())

    /** The next instruction waits for a token; which: bit 0 of the previous unit (never), bit 1 of the next. */
    val waitToken  = Output(Bool())
    val waitTokens = Output(UInt(2.W))

    /** Bytes read, to be summed: not zero at the end of every burst. */
    val inpBytes = Output(UInt(new BurstWindow(p).countBits.W))
    val wgtBytes = Output(UInt(new BurstWindow(p).countBits.W))
  })

  /** An instruction in flight. */
  private class Flight extends Bundle {
    val index = UInt(p.indexBits.W)
    val isWgt = Bool()
    val push  = Bool()
  }

  private val flight   = 32
  private val requests = 8
  private val isa      = new Isa(p)
  private val layout   = p.layout("LOAD")
  private val loaders  = Seq(Module(new TensorLoader(p, inp)), Module(new TensorLoader(p, wgt)))
  private val accepted = Seq.fill(2)(Module(new Queue(new LoadRequest(p), requests, flow = true)))
  private val order    = Module(new Queue(new Flight, flight))
  private val faulted  = RegInit(false.B)
  private val stop     = io.halt || faulted

  private def flag(name: String): Bool = Isa.field(io.insn.bits.word, layout, name).asBool
  private val isWgt                    = Isa.field(io.insn.bits.word, layout, "memory_id") === isa.memId("WGT")
  private val pops                     = flag("pop_next")
  private val token                    = !pops || io.popFromCompute.ready
  private val mine                     = Seq(!isWgt, isWgt)
  private val room  = Mux(isWgt, accepted(1).io.enq.ready, accepted(0).io.enq.ready) && order.io.enq.ready
  private val ready = token && room && !stop
  io.insn.ready         := ready
  io.popFromCompute.pop := io.insn.valid && ready && pops

  for ((((loader, queue), selected), base) <- loaders.zip(accepted).zip(mine).zip(Seq(io.baseInp, io.baseWgt))) {
    queue.io.enq.valid := io.insn.valid && token && order.io.enq.ready && !stop && selected
    queue.io.enq.bits  := LoadRequest(p, io.insn.bits, base)
    loader.io.request :<>= queue.io.deq
    loader.io.halt := stop
  }
  order.io.enq.valid      := io.insn.valid && ready
  order.io.enq.bits.index := io.insn.bits.index
  order.io.enq.bits.isWgt := isWgt
  order.io.enq.bits.push  := flag("push_next")

  io.readInp :<>= loaders(0).io.read
  io.readWgt :<>= loaders(1).io.read
  for ((port, loader) <- Seq(io.writeInp, io.writeWgt).zip(loaders)) {
    port.valid            := loader.io.write.valid
    port.bits             := loader.io.write.bits
    loader.io.write.ready := true.B
  }
  io.inpBytes := loaders(0).io.bytes
  io.wgtBytes := loaders(1).io.bytes

  // Completed by the loaders and not yet retired.
  private val oldest   = order.io.deq.bits
  private val complete = loaders.zip(Seq(!oldest.isWgt, oldest.isWgt)).map { case (loader, selected) =>
    val count   = RegInit(0.U(log2Ceil(flight + 1).W))
    val there   = count =/= 0.U || loader.io.done.valid
    val retires = order.io.deq.fire && selected
    count := count + loader.io.done.valid - retires
    there && selected
  }
  order.io.deq.ready    := complete.reduce(_ || _) && !stop
  io.retire.valid       := order.io.deq.fire
  io.retire.index       := oldest.index
  io.pushToCompute.push := order.io.deq.fire && oldest.push

  private val errors = loaders.map(_.io.error)
  private val second = errors(1).valid && (!errors(0).valid || errors(1).bits.index < errors(0).bits.index)
  io.error.valid := errors.map(_.valid).reduce(_ || _) && !faulted
  io.error.bits  := Mux(second, errors(1).bits, errors(0).bits)
  when(io.error.valid) { faulted := true.B }

  io.busy       := order.io.deq.valid
  io.waitToken  := io.insn.valid && !token && !stop
  io.waitTokens := Cat(io.waitToken, 0.U(1.W))
  io.moves      := loaders.map(loader => loader.io.busy && !loader.io.waitMemory).reduce(_ || _)
}
