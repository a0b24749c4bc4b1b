// SPDX-License-Identifier: Apache-2.0
package openvta.compute

import chisel3._
import chisel3.util._
import openvta.load.LoadRequest
import openvta.spec._

/** A micro-op that asks whether it may touch acc. */
class OperationCheck(p: VtaParams) extends Bundle {
  val epoch  = UInt(PendingWork.epochBits.W)
  val dst    = UInt(p.accIndexBits.W)
  val src    = UInt(p.accIndexBits.W)
  val useSrc = Bool()
}

/** Ports of [[ComputeIssue]]: towards fetch and the token queues as those of the [[ComputeUnit]], else towards its engines. */
class ComputeIssueIO(p: VtaParams) extends Bundle {
  val insn         = Flipped(Decoupled(new QueuedInsn(p)))
  val popFromLoad  = new TokenPop
  val popFromStore = new TokenPop
  val pushToLoad   = new TokenPush
  val pushToStore  = new TokenPush
  val baseUop      = Input(UInt(p.axiAddrBits.W))
  val baseAcc      = Input(UInt(p.axiAddrBits.W))
  val quiet        = Input(Bool())
  val stop         = Input(Bool())
  val retire       = Output(new Retire(p))
  val finished     = Output(Bool())

  val uops    = Decoupled(new UopCommand(p))
  val loadUop = Decoupled(new LoadRequest(p))
  val loadAcc = Decoupled(new LoadRequest(p))
  val requant = Decoupled(new RequantCommand(p))

  /** The oldest instruction of an engine makes its last write in this cycle. */
  val uopsDone    = Input(Bool())
  val loadUopDone = Input(Bool())
  val loadAccDone = Input(Bool())
  val requantDone = Input(Bool())

  /** The last GEMM or ALU instruction started still reads micro-ops. */
  val uopsReading = Input(Bool())

  /** The micro-op at hand must wait: an older REQUANT or load works on its elements. */
  val operation    = Input(new OperationCheck(p))
  val conflict     = Output(Bool())
  val olderRequant = Output(Bool())

  /** The conflict is with a REQUANT. */
  val conflictRequant = Output(Bool())

  /** Nothing is in flight; and nothing waits either. */
  val none = Output(Bool())
  val idle = Output(Bool())

  /** The next instruction waits for tokens: bit 0 of the load unit, bit 1 of the store unit. */
  val waitTokens = Output(UInt(2.W))

  /** A load of uop or acc is in flight. */
  val waitLoad    = Output(Bool())
  val waitFinish  = Output(Bool())
  val uopsBusy    = Output(Bool())
  val uopsAreAlu  = Output(Bool())
  val requantBusy = Output(Bool())
}

/** Starts the instructions of the compute unit in order, retires them in order.
  *
  * An instruction leaves when its tokens are there, its engine takes it and, for GEMM, ALU and loads of micro-ops, no micro-ops
  * that are still read or still being loaded overlap. REQUANT and loads of acc then wait beside, up to `slots` of each, until every
  * older instruction of another kind has retired, while younger GEMM and ALU instructions go on. Throughput: one instruction a
  * cycle; latency one cycle. Up to `flight` instructions are started and not retired; the next waits.
  */
class ComputeIssue(p: VtaParams) extends Module {
  private val flight = 16
  private val slots  = 2
  private val kinds  = Seq(ComputeKind.uops, ComputeKind.loadUop, ComputeKind.loadAcc, ComputeKind.requant)
  private val counts = log2Ceil(flight + 1)

  val io = IO(new ComputeIssueIO(p))

  // One instruction waits here for its tokens and for its engine.
  private val waiting = Module(new Queue(new PreparedInsn(p), 1, pipe = true))
  waiting.io.enq.valid := io.insn.valid
  waiting.io.enq.bits  := ComputePrepare(p, io.insn.bits)
  io.insn.ready        := waiting.io.enq.ready
  private val valid                            = waiting.io.deq.valid
  private val next                             = waiting.io.deq.bits
  private def is(kind: ComputeKind.Type): Bool = next.kind === kind
  private def flag(name: String): Bool         = Isa.field(next.insn.word, p.layout("FINISH"), name).asBool

  /** An instruction that has started. */
  private class Started extends Bundle {
    val index    = UInt(p.indexBits.W)
    val kind     = ComputeKind()
    val pushPrev = Bool()
    val pushNext = Bool()
  }
  private val started = Module(new Queue(new Started, flight))
  private val oldest  = started.io.deq.bits
  private val none    = !started.io.deq.valid

  private val poppedAll = RegInit(false.B) // of a FINISH that waits
  private val lacksPrev = flag("pop_prev") && !io.popFromLoad.ready
  private val lacksNext = flag("pop_next") && !io.popFromStore.ready
  private val tokens    = poppedAll || (!lacksPrev && !lacksNext)
  private val isFinish  = is(ComputeKind.finish)
  private val goes      = valid && tokens && !io.stop && started.io.enq.ready

  // Completion: engines say so in their order, instructions retire in theirs.
  private val begins   = Wire(Bool())
  private val finishes = goes && none && isFinish && io.quiet && poppedAll
  private val dones    = Seq(io.uopsDone, io.loadUopDone, io.loadAccDone, io.requantDone)
  private val retires  = started.io.deq.fire
  private val complete = kinds.zip(dones).map { case (kind, done) =>
    val count = RegInit(0.U(counts.W))
    val mine  = oldest.kind === kind
    count := count + done - (retires && mine)
    mine && (done || count =/= 0.U)
  }
  started.io.deq.ready := oldest.kind === ComputeKind.nothing || complete.reduce(_ || _)
  io.retire.valid      := retires || finishes
  io.retire.index      := Mux(retires, oldest.index, next.insn.index)
  io.pushToLoad.push   := retires && oldest.pushPrev
  io.pushToStore.push  := retires && oldest.pushNext
  io.finished          := finishes

  // Work beside the micro-op pipeline.
  private val number = RegInit(0.U(PendingWork.epochBits.W))
  private def beside(kind: ComputeKind.Type, ranges: Seq[ElementRange], done: Bool): (PendingWork, Bool, UInt) = {
    val work   = Module(new PendingWork(p, slots, ranges.length, counts)).suggestName(s"pending_${ranges.length}")
    val mine   = RegInit(0.U(counts.W))
    val retire = retires && oldest.kind === kind
    mine := mine + work.io.add.fire - retire
    work.io.add.bits.zip(ranges).foreach { case (port, range) => port.assign(range) }
    work.io.number       := number
    work.io.otherRetires := retires && oldest.kind =/= kind
    work.io.others       := started.io.count - mine - work.io.otherRetires
    work.io.end          := done
    work.io.epoch        := io.operation.epoch
    work.io.indices      := VecInit(io.operation.dst, io.operation.src)
    (work, retire, mine)
  }
  private val (accWork, _, _)     = beside(ComputeKind.loadAcc, Seq(next.data), io.loadAccDone)
  private val (requantWork, _, _) = beside(ComputeKind.requant, Seq(next.data, next.params), io.requantDone)
  private val works               = Seq(accWork, requantWork)
  private def touches(work: PendingWork): Bool = work.io.hit(0) || (io.operation.useSrc && work.io.hit(1))
  io.conflict        := works.map(touches).reduce(_ || _)
  io.conflictRequant := touches(requantWork)
  io.olderRequant    := requantWork.io.older
  when(works.map(_.io.add.fire).reduce(_ || _)) { number := number + 1.U }

  private def later[T <: Data](work: PendingWork, wanted: Bool, engine: DecoupledIO[T], command: T): Bool = {
    val queue = Module(new Queue(chiselTypeOf(command), slots))
    work.io.add.valid  := wanted && queue.io.enq.ready
    queue.io.enq.valid := wanted && work.io.add.ready
    queue.io.enq.bits  := command
    engine.valid       := queue.io.deq.valid && work.io.mayStart && !io.stop
    engine.bits        := queue.io.deq.bits
    queue.io.deq.ready := engine.ready && work.io.mayStart && !io.stop
    work.io.start      := engine.fire
    work.io.add.fire
  }
  private val startsAcc = later(
    accWork,
    goes && is(ComputeKind.loadAcc),
    io.loadAcc,
    LoadRequest(p, next.insn, io.baseAcc),
  )
  private val separate      = !next.data.meets(next.params)
  private val startsRequant = if (p.has("requant")) {
    later(
      requantWork,
      goes && is(ComputeKind.requant),
      io.requant,
      ComputeDecode.requant(p, next.insn, separate),
    )
  } else {
    requantWork.io.add.valid := false.B
    requantWork.io.start     := false.B
    io.requant.valid         := false.B
    io.requant.bits          := DontCare
    false.B
  }

  // Micro-ops: those being read, and those being loaded, up to `slots` loads.
  private val reading  = Reg(new ElementRange(p.uopIndexBits))
  private val loads    = Reg(Vec(slots, new ElementRange(p.uopIndexBits)))
  private val loading  = RegInit(VecInit.fill(slots)(false.B))
  private val loadsAdd = RegInit(0.U(log2Ceil(slots).W))
  private val loadsEnd = RegInit(0.U(log2Ceil(slots).W))
  private val inLoad   = loading.zip(loads).map { case (busy, range) => busy && range.meets(next.uops) }.reduce(_ || _)
  private val inRead   = io.uopsReading && reading.meets(next.uops)
  io.uops.valid    := goes && is(ComputeKind.uops) && !inLoad
  io.uops.bits     := ComputeDecode.uops(p, next.insn, number)
  io.loadUop.valid := goes && is(ComputeKind.loadUop) && !inRead && !loading(loadsAdd)
  io.loadUop.bits  := LoadRequest(p, next.insn, io.baseUop)
  when(io.uops.fire) { reading.assign(next.uops) }
  when(io.loadUop.fire) {
    loads(loadsAdd).assign(next.uops)
    loading(loadsAdd) := true.B
    loadsAdd          := loadsAdd + 1.U
  }
  when(io.loadUopDone) {
    loading(loadsEnd) := false.B
    loadsEnd          := loadsEnd + 1.U
  }

  begins := io.uops.fire || io.loadUop.fire || startsAcc || startsRequant || (goes && is(ComputeKind.nothing))
  waiting.io.deq.ready         := begins || finishes
  started.io.enq.valid         := begins
  started.io.enq.bits.index    := next.insn.index
  started.io.enq.bits.kind     := next.kind
  started.io.enq.bits.pushPrev := flag("push_prev")
  started.io.enq.bits.pushNext := flag("push_next")

  // FINISH takes its tokens first, so that the counters can become empty.
  private val finishPops = goes && none && isFinish && !poppedAll
  private val pops       = begins || finishPops
  when(finishPops) { poppedAll := true.B }.elsewhen(finishes) { poppedAll := false.B }
  io.popFromLoad.pop  := pops && flag("pop_prev")
  io.popFromStore.pop := pops && flag("pop_next")

  // What the counters and the watchdog see.
  private val uopsInFlight = RegInit(0.U(counts.W))
  private val isAlu        = RegEnable(next.isAlu, io.uops.fire)
  uopsInFlight   := uopsInFlight + io.uops.fire - io.uopsDone
  io.none        := none
  io.idle        := !valid && none
  io.waitTokens  := Mux(valid && !tokens && !io.stop, Cat(lacksNext, lacksPrev), 0.U)
  io.waitLoad    := !accWork.io.empty || loading.reduce(_ || _)
  io.waitFinish  := valid && isFinish && poppedAll
  io.uopsBusy    := uopsInFlight =/= 0.U
  io.uopsAreAlu  := isAlu
  io.requantBusy := !requantWork.io.empty
}
