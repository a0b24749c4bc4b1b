// SPDX-License-Identifier: Apache-2.0
package openvta.compute

import chisel3._
import chisel3.util._
import openvta.load.{LoaderSpec, TensorLoader}
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

  val busy = Output(Bool())

  /** What the cycle is counted as. */
  val activity = Output(ComputeActivity())

  /** Tokens waited for: bit 0 of the load unit, bit 1 of the store unit. */
  val waitTokens = Output(UInt(2.W))

  /** FINISH has taken its tokens and waits for `quiet`. */
  val waitFinish  = Output(Bool())
  val gemmBusy    = Output(Bool())
  val aluBusy     = Output(Bool())
  val requantBusy = Output(Bool())

  /** REQUANT wants to read acc, which GEMM or ALU does. */
  val requantWaitPort = Output(Bool())

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
  * The meaning is that of instructions executed one at a time. In fact GEMM and ALU follow each other through one pipeline, and
  * loads and REQUANT work beside it: [[ComputeIssue]] starts them in order and retires them in order, [[PendingWork]] keeps micro-ops
  * off elements that older work still needs. The micro-op pipeline has the first choice of every memory port; REQUANT and
  * loads of acc take what it leaves. Both pops of an instruction are taken in one cycle, before it starts.
  */
class ComputeUnit(p: VtaParams) extends Module {
  private val isa          = new Isa(p)
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
  private val issue      = Module(new ComputeIssue(p))
  private val uopLoader  = Module(new TensorLoader(p, LoaderSpec.uop(p)))
  private val accLoader  = Module(new TensorLoader(p, LoaderSpec.acc(p)))
  private val sequencer  = Module(new UopSequencer(p))
  private val gemm       = Module(new GemmCore(p))
  private val alu        = Module(new AluCore(p))
  private val multiplier = Module(new MultiplierBank(multiplyRows))
  private val requant    = Option.when(p.has("requant"))(Module(new RequantCore(p)))

  private val faulted = RegInit(false.B)
  private val stop    = io.halt || faulted

  issue.io.insn :<>= io.insn
  io.popFromLoad :<>= issue.io.popFromLoad
  io.popFromStore :<>= issue.io.popFromStore
  io.pushToLoad :<>= issue.io.pushToLoad
  io.pushToStore :<>= issue.io.pushToStore
  issue.io.baseUop     := io.baseUop
  issue.io.baseAcc     := io.baseAcc
  issue.io.quiet       := io.quiet
  issue.io.stop        := stop
  issue.io.uopsReading := sequencer.io.reading
  issue.io.uopsDone    := gemm.io.done || alu.io.done
  issue.io.loadUopDone := uopLoader.io.done.valid
  issue.io.loadAccDone := accLoader.io.done.valid
  issue.io.requantDone := requant.map(_.io.done).getOrElse(false.B)
  sequencer.io.command :<>= issue.io.uops
  uopLoader.io.request :<>= issue.io.loadUop
  accLoader.io.request :<>= issue.io.loadAcc
  requant match {
    case Some(engine) =>
      engine.io.command :<>= issue.io.requant
      engine.io.halt := stop
    case None => issue.io.requant.ready := false.B
  }
  io.retire   := issue.io.retire
  io.finished := issue.io.finished

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
  requant.foreach(_.io.accFree := !gemm.io.accRead.enable && !alu.io.accRead.enable)
  io.outRead :<>= outMem.io.read(0)

  /** The first user that writes; those listed after it wait. */
  private def whole(shape: ScratchShape, users: Seq[Valid[ElementWrite]]): Valid[ScratchWrite] = {
    val write = Wire(Valid(shape.write))
    val first = PriorityMux(users.map(user => user.valid -> user.bits))
    write.valid         := users.map(_.valid).reduce(_ || _)
    write.bits.index    := first.index
    write.bits.elemMask := 1.U
    write.bits.partMask := Fill(shape.parts, 1.U(1.W))
    write.bits.data     := first.data
    write.bits.tag      := first.tag
    write
  }
  private def granted(write: DecoupledIO[ElementWrite], before: Seq[Valid[ElementWrite]]): Valid[ElementWrite] = {
    write.ready := !before.map(_.valid).reduce(_ || _)
    val user = Wire(Valid(chiselTypeOf(write.bits)))
    user.valid := write.valid
    user.bits  := write.bits
    user
  }
  private val accFirst  = Seq(gemm.io.accWrite, alu.io.accWrite)
  private val outFirst  = Seq(gemm.io.outWrite, alu.io.outWrite)
  private val accResult = whole(accShape, accFirst ++ requant.map(engine => granted(engine.io.accWrite, accFirst)))
  accLoader.io.write.ready := !accResult.valid
  accMem.io.write.valid    := accResult.valid || accLoader.io.write.valid
  accMem.io.write.bits     := Mux(accResult.valid, accResult.bits, accLoader.io.write.bits)
  outMem.io.write          := whole(outShape, outFirst ++ requant.map(engine => granted(engine.io.outWrite, outFirst)))
  uopMem.io.write.valid    := uopLoader.io.write.valid
  uopMem.io.write.bits     := uopLoader.io.write.bits
  uopLoader.io.write.ready := true.B
  inpMem.io.write          := io.writeInp
  wgtMem.io.write          := io.writeWgt
  for ((name, memory) <- Seq("UOP" -> uopMem, "INP" -> inpMem, "WGT" -> wgtMem, "ACC" -> accMem, "OUT" -> outMem))
    WriteTap(p, name, memory.io.write, clock)

  // Engines among themselves: a micro-op waits for older work on its elements, and for the other of GEMM and ALU.
  private val operation  = StallPoint(p, sequencer.io.operation)
  private val forAlu     = operation.bits.control.isAlu
  private val multiplies = forAlu && AluCore.multiplies(p, operation.bits.control)
  issue.io.operation.epoch  := operation.bits.control.epoch
  issue.io.operation.dst    := operation.bits.dst
  issue.io.operation.src    := operation.bits.src(p.accIndexBits - 1, 0)
  issue.io.operation.useSrc := forAlu
  private val gemmFree = !issue.io.conflict && alu.io.idle
  private val aluFree  = !issue.io.conflict && gemm.io.idle && !(multiplies && issue.io.olderRequant)
  sequencer.io.halt       := stop
  gemm.io.operation.valid := operation.valid && !forAlu && gemmFree
  gemm.io.operation.bits  := operation.bits
  alu.io.operation.valid  := operation.valid && forAlu && aluFree
  alu.io.operation.bits   := operation.bits
  operation.ready         := Mux(forAlu, alu.io.operation.ready && aluFree, gemm.io.operation.ready && gemmFree)
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
  io.busy        := !issue.io.idle
  io.waitTokens  := Mux(issue.io.none, issue.io.waitTokens, 0.U)
  io.waitFinish  := issue.io.waitFinish
  io.gemmBusy    := issue.io.uopsBusy && !issue.io.uopsAreAlu
  io.aluBusy     := issue.io.uopsBusy && issue.io.uopsAreAlu
  io.requantBusy := issue.io.requantBusy

  // Where nothing enters the pipeline: what the micro-op at hand waits for, else what the instruction at hand waits for.
  private val atHand = operation.valid && !operation.ready
  private val filled = !sequencer.io.idle || !gemm.io.idle || !alu.io.idle
  io.activity := PriorityMux(
    Seq(
      io.gemmUop                                           -> ComputeActivity.gemm,
      (!alu.io.idle || io.aluUop)                          -> ComputeActivity.alu,
      (atHand && issue.io.conflictRequant)                 -> ComputeActivity.stallRequant,
      (atHand && issue.io.conflict)                        -> ComputeActivity.waitMemory,
      (atHand && multiplies && issue.io.olderRequant)      -> ComputeActivity.stallRequant,
      (atHand || !sequencer.io.idle)                       -> ComputeActivity.stallPipeline,
      issue.io.waitTokens.orR                              -> ComputeActivity.waitToken,
      (!issue.io.waitFinish && issue.io.waitLoad)          -> ComputeActivity.waitMemory,
      (!issue.io.waitFinish && issue.io.requantBusy)       -> ComputeActivity.stallRequant,
      (!issue.io.waitFinish && (filled || !issue.io.idle)) -> ComputeActivity.stallPipeline,
      issue.io.waitFinish                                  -> ComputeActivity.waitFinish,
      true.B                                               -> ComputeActivity.idle,
    )
  )
  io.requantWaitPort := requant.map(_.io.waitPort).getOrElse(false.B)
  io.gemmUop         := gemm.io.operation.fire
  io.gemmLast        := gemm.io.operation.fire && gemm.io.operation.bits.last
  io.aluUop          := alu.io.operation.fire
  io.requantVector   := requant.map(_.io.outWrite.fire).getOrElse(false.B)
  io.accWrite        := accResult.valid
  io.uopBytes        := uopLoader.io.bytes
  io.accBytes        := accLoader.io.bytes
}
