// SPDX-License-Identifier: Apache-2.0
package openvta.compute

import chisel3._
import chisel3.util._
import openvta.load.{LoadRequest, LoaderSpec, TensorLoader}
import openvta.mem.{BurstWindow, ScratchRead, Scratchpad}
import openvta.spec._
import openvta.util.{StallPoint, WriteTap}

/** Ports of the [[ComputeUnit]]. `previous` is the load unit, `next` the store unit. */
class ComputeUnitIO(p: VtaParams) extends Bundle {
  private val out = ScratchShape.out(p)

  val insn         = Flipped(Decoupled(new QueuedInsn(p)))
  val popFromLoad  = new TokenPop
  val popFromStore = new TokenPop
  val pushToLoad   = new TokenPush
  val pushToStore  = new TokenPush

  /** Byte addresses of the uop and acc memory types. */
  val baseUop  = Input(UInt(p.axiAddrBits.W))
  val baseAcc  = Input(UInt(p.axiAddrBits.W))
  val readUop  = new ReadPort(p)
  val readAcc  = new ReadPort(p)
  val writeInp = Input(Valid(ScratchShape.inp(p).write))
  val writeWgt = Input(Valid(ScratchShape.wgt(p).write))

  /** Out elements `index`, `index + 1`, ... for the store unit, the cycle after `enable`. */
  val outRead = new ScratchRead(p.accIndexBits, out.elems * p.outElemBits)

  /** Every other unit is idle, all queues and token counters are empty: FINISH may retire. */
  val quiet    = Input(Bool())
  val finished = Output(Bool())
  val retire   = Output(new Retire(p))
  val error    = Output(Valid(new UnitError(p)))

  /** Start nothing new, drain. Held until reset. */
  val halt = Input(Bool())

  val busy       = Output(Bool())
  val waitToken  = Output(Bool())
  val waitMemory = Output(Bool())

  /** Tokens waited for: bit 0 of the load unit, bit 1 of the store unit. */
  val waitTokens = Output(UInt(2.W))

  /** FINISH has taken its tokens and waits for `quiet`. */
  val waitFinish  = Output(Bool())
  val idle        = Output(Bool())
  val gemmBusy    = Output(Bool())
  val aluBusy     = Output(Bool())
  val requantBusy = Output(Bool())

  /** Pulses for the counters, one a cycle: micro-ops taken, elements requantized, elements written to acc (loads not counted). */
  val gemmUop = Output(Bool())

  /** Pulse: the last micro-op of a GEMM is taken (for traces; the n-th pulse is the n-th GEMM that has micro-ops). */
  val gemmLast      = Output(Bool())
  val aluUop        = Output(Bool())
  val requantVector = Output(Bool())
  val accWrite      = Output(Bool())

  /** Bytes read, to be summed. */
  val uopBytes = Output(UInt(new BurstWindow(p).countBits.W))
  val accBytes = Output(UInt(new BurstWindow(p).countBits.W))
}

/** The compute unit: loads of uop and acc, GEMM, ALU, REQUANT, FINISH; holds all scratchpads.
  *
  * Instructions are executed as if one at a time. Instructions of one kind (GEMM, ALU, REQUANT, loads of one memory) follow each
  * other without draining, because their pipelines interlock; between kinds everything before is completed first. Tokens are
  * pushed, and instructions retired, strictly in order, in the cycle of the last write. Both pops of an instruction are taken in
  * one cycle, before it starts.
  */
class ComputeUnit(p: VtaParams) extends Module {
  private val isa          = new Isa(p)
  private val flightDepth  = 4
  private val multiplyRows = ComputeWidths.requantLanes(p)

  val io = IO(new ComputeUnitIO(p))

  // Memories.
  private val uopShape = ScratchShape.uop(p)
  private val accShape = ScratchShape.acc(p)
  private val outShape = ScratchShape.out(p)
  private val uopMem   = Module(new Scratchpad(uopShape)).suggestName("uopMem")
  private val inpMem   = Module(new Scratchpad(ScratchShape.inp(p))).suggestName("inpMem")
  private val wgtMem   = Module(new Scratchpad(ScratchShape.wgt(p))).suggestName("wgtMem")
  private val accMem   = Module(new Scratchpad(accShape, writeFirst = true)).suggestName("accMem")
  private val outMem   = Module(new Scratchpad(outShape, readElems = outShape.elems)).suggestName("outMem")

  // Engines.
  private val uopLoader  = Module(new TensorLoader(p, LoaderSpec.uop(p)))
  private val accLoader  = Module(new TensorLoader(p, LoaderSpec.acc(p)))
  private val sequencer  = Module(new UopSequencer(p))
  private val gemm       = Module(new GemmCore(p))
  private val alu        = Module(new AluCore(p))
  private val multiplier = Module(new MultiplierBank(multiplyRows))
  private val requant    = Option.when(p.has("requant"))(Module(new RequantCore(p)))

  // One instruction waits here for its tokens and for its engine.
  private val waiting                  = Queue(io.insn, 1, pipe = true)
  private val insn                     = waiting.bits
  private val kind                     = ComputeDecode.kind(p, insn)
  private val isAlu                    = ComputeDecode.isAlu(p, insn)
  private def flag(name: String): Bool = Isa.field(insn.word, p.layout("FINISH"), name).asBool

  /** An instruction that has started. */
  class Started extends Bundle {
    val index    = UInt(p.indexBits.W)
    val pushPrev = Bool()
    val pushNext = Bool()
  }
  private val started      = Module(new Queue(new Started, flightDepth))
  private val startedKind  = Reg(ComputeKind())
  private val startedIsAlu = Reg(Bool())
  private val none         = !started.io.deq.valid

  private val faulted    = RegInit(false.B)
  private val stop       = io.halt || faulted
  private val poppedAll  = RegInit(false.B) // of a FINISH that waits
  private val lacksPrev  = flag("pop_prev") && !io.popFromLoad.ready
  private val lacksNext  = flag("pop_next") && !io.popFromStore.ready
  private val tokens     = poppedAll || (!lacksPrev && !lacksNext)
  private val follows    = kind === startedKind && (kind =/= ComputeKind.uops || isAlu === startedIsAlu)
  private val inOrder    = none || follows
  private val goes       = waiting.valid && tokens && !stop
  private val starts     = goes && inOrder && started.io.enq.ready
  private val isFinish   = kind === ComputeKind.finish
  private val retiresNow = goes && none && (kind === ComputeKind.nothing || (isFinish && io.quiet && poppedAll))

  sequencer.io.command.valid := starts && kind === ComputeKind.uops
  sequencer.io.command.bits  := ComputeDecode.uops(p, insn)
  uopLoader.io.request.valid := starts && kind === ComputeKind.loadUop
  uopLoader.io.request.bits  := LoadRequest(p, insn, io.baseUop)
  accLoader.io.request.valid := starts && kind === ComputeKind.loadAcc
  accLoader.io.request.bits  := LoadRequest(p, insn, io.baseAcc)
  requant.foreach { engine =>
    engine.io.command.valid := starts && kind === ComputeKind.requant
    engine.io.command.bits  := ComputeDecode.requant(p, insn)
    engine.io.halt          := stop
  }
  private val begins = sequencer.io.command.fire || uopLoader.io.request.fire || accLoader.io.request.fire ||
    requant.map(_.io.command.fire).getOrElse(false.B)
  waiting.ready := begins || retiresNow

  started.io.enq.valid         := begins
  started.io.enq.bits.index    := insn.index
  started.io.enq.bits.pushPrev := flag("push_prev")
  started.io.enq.bits.pushNext := flag("push_next")
  when(begins) {
    startedKind  := kind
    startedIsAlu := isAlu
  }

  // FINISH takes its tokens first, so that the counters can become empty.
  private val finishPops = goes && none && isFinish && !poppedAll
  private val pops       = begins || finishPops || (retiresNow && !isFinish)
  when(finishPops) { poppedAll := true.B }.elsewhen(io.finished) { poppedAll := false.B }
  io.popFromLoad.pop  := pops && flag("pop_prev")
  io.popFromStore.pop := pops && flag("pop_next")

  // Completion, in order.
  private val done = gemm.io.done || alu.io.done || uopLoader.io.done.valid || accLoader.io.done.valid ||
    requant.map(_.io.done).getOrElse(false.B)
  started.io.deq.ready := done
  io.retire.valid      := done || retiresNow
  io.retire.index      := Mux(done, started.io.deq.bits.index, insn.index)
  io.pushToLoad.push   := Mux(done, started.io.deq.bits.pushPrev, retiresNow && flag("push_prev"))
  io.pushToStore.push  := Mux(done, started.io.deq.bits.pushNext, retiresNow && flag("push_next"))
  io.finished          := retiresNow && isFinish

  // Memories to engines.
  private def reads(memory: ScratchRead, users: Seq[ScratchRead]): Unit = {
    memory.enable := users.map(_.enable).reduce(_ || _)
    memory.index  := Mux1H(users.map(user => user.enable -> user.index))
    users.foreach(_.data := memory.data)
  }
  reads(uopMem.io.read(0), Seq(sequencer.io.uop))
  reads(inpMem.io.read(0), Seq(gemm.io.inp))
  reads(wgtMem.io.read(0), Seq(gemm.io.wgt))
  reads(accMem.io.read(0), Seq(gemm.io.accRead, alu.io.accRead) ++ requant.map(_.io.accRead))
  io.outRead :<>= outMem.io.read(0)

  private def whole(shape: ScratchShape, users: Seq[Valid[ElementWrite]]): Valid[ScratchWrite] = {
    val write = Wire(Valid(shape.write))
    write.valid         := users.map(_.valid).reduce(_ || _)
    write.bits.index    := Mux1H(users.map(user => user.valid -> user.bits.index))
    write.bits.elemMask := 1.U
    write.bits.partMask := Fill(shape.parts, 1.U(1.W))
    write.bits.data     := Mux1H(users.map(user => user.valid -> user.bits.data))
    write.bits.tag      := Mux1H(users.map(user => user.valid -> user.bits.tag))
    write
  }
  private val accResult = whole(accShape, Seq(gemm.io.accWrite, alu.io.accWrite) ++ requant.map(_.io.accWrite))
  accMem.io.write := Mux(accLoader.io.write.valid, accLoader.io.write, accResult)
  outMem.io.write := whole(outShape, Seq(gemm.io.outWrite, alu.io.outWrite) ++ requant.map(_.io.outWrite))
  uopMem.io.write := uopLoader.io.write
  inpMem.io.write := io.writeInp
  wgtMem.io.write := io.writeWgt
  for ((name, memory) <- Seq("UOP" -> uopMem, "INP" -> inpMem, "WGT" -> wgtMem, "ACC" -> accMem, "OUT" -> outMem))
    WriteTap(p, name, memory.io.write, clock)

  // Engines among themselves.
  private val operation = StallPoint(p, sequencer.io.operation)
  sequencer.io.halt       := stop
  gemm.io.operation.valid := operation.valid && !operation.bits.control.isAlu
  gemm.io.operation.bits  := operation.bits
  alu.io.operation.valid  := operation.valid && operation.bits.control.isAlu
  alu.io.operation.bits   := operation.bits
  operation.ready         := Mux(operation.bits.control.isAlu, alu.io.operation.ready, gemm.io.operation.ready)
  multiplier.io.alu :<>= alu.io.multiply
  requant match {
    case Some(engine) => multiplier.io.requant :<>= engine.io.multiply
    case None         =>
      multiplier.io.requant.valid := false.B
      multiplier.io.requant.a.foreach(_ := 0.S)
      multiplier.io.requant.b.foreach(_ := 0.S)
  }
  io.readUop :<>= uopLoader.io.read
  io.readAcc :<>= accLoader.io.read
  uopLoader.io.halt := stop
  accLoader.io.halt := stop

  // Faults.
  private val outOfRange = sequencer.io.fault.valid || requant.map(_.io.fault.valid).getOrElse(false.B)
  private val rangeError = Wire(new UnitError(p))
  rangeError.cause := isa.cause("INDEX_RANGE")
  rangeError.index := Mux(
    sequencer.io.fault.valid,
    sequencer.io.fault.bits,
    requant.map(_.io.fault.bits).getOrElse(0.U)
  )
  rangeError.channel := 0.U
  rangeError.address := 0.U
  io.error.valid     := outOfRange || uopLoader.io.error.valid || accLoader.io.error.valid
  io.error.bits      := Mux(
    outOfRange,
    rangeError,
    Mux(uopLoader.io.error.valid, uopLoader.io.error.bits, accLoader.io.error.bits),
  )
  when(io.error.valid) { faulted := true.B }

  // What the counters and the watchdog see.
  private val loading    = uopLoader.io.busy || accLoader.io.busy
  private val uopsActive = !none && startedKind === ComputeKind.uops
  io.idle          := !waiting.valid && none
  io.busy          := waiting.valid || !none
  io.waitToken     := waiting.valid && none && !tokens && !stop
  io.waitTokens    := Mux(io.waitToken, Cat(lacksNext, lacksPrev), 0.U)
  io.waitFinish    := waiting.valid && isFinish && poppedAll
  io.waitMemory    := !none && loading && (uopLoader.io.waitMemory || accLoader.io.waitMemory)
  io.gemmBusy      := uopsActive && !startedIsAlu
  io.aluBusy       := uopsActive && startedIsAlu
  io.requantBusy   := !none && startedKind === ComputeKind.requant
  io.gemmUop       := gemm.io.operation.fire
  io.gemmLast      := gemm.io.operation.fire && gemm.io.operation.bits.last
  io.aluUop        := alu.io.operation.fire
  io.requantVector := requant.map(_.io.outWrite.valid).getOrElse(false.B)
  io.accWrite      := accResult.valid
  io.uopBytes      := uopLoader.io.bytes
  io.accBytes      := accLoader.io.bytes
}
