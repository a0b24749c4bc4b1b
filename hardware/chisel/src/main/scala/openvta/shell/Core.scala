// SPDX-License-Identifier: Apache-2.0
package openvta.shell

import chisel3._
import chisel3.util._
import openvta.compute.{ComputeActivity, ComputeUnit}
import openvta.fetch.Fetch
import openvta.load.LoadUnit
import openvta.mem.{AxiWriteChannels, ReadClient}
import openvta.spec._
import openvta.store.StoreUnit
import openvta.util.{LaunchTap, StallPoint, TokenQueue}

/** The accelerator without its bus engines and registers: fetch, three units, four token queues, errors, counters.
  *
  * A run begins with `control.launch` and ends when FINISH retires or an error is held. The first error halts every unit: no
  * further instruction starts, bursts in flight drain, `finished` stays false. Only a reset clears an error.
  */
class Core(p: VtaParams) extends Module {
  private val isa = new Isa(p)

  val io = IO(new Bundle {
    val control = Input(new CoreControl(p))
    val status  = Output(new CoreStatus(p))
    val trace   = Output(new RetireTrace(p))
    val reads   = Vec(ReadClient.count, new ReadPort(p))
    val write   = new AxiWriteChannels(p)

    /** Stop starting anything (a soft reset follows). */
    val halt = Input(Bool())

    /** A handshake was made on the bus in this cycle. */
    val busProgress = Input(Bool())
  })

  private val fetch   = Module(new Fetch(p))
  private val load    = Module(new LoadUnit(p))
  private val compute = Module(new ComputeUnit(p))
  private val store   = Module(new StoreUnit(p))

  private val errors   = Module(new ErrorCollector(p, 8))
  private val watchdog = Module(new Watchdog(p))
  private val failed   = errors.io.held.valid
  private val halt     = io.halt || failed

  // The run
  private val running  = RegInit(false.B)
  private val finished = RegInit(false.B)
  private val cycles   = RegInit(0.U(64.W))
  private val launch   = io.control.launch && !running && !halt
  when(launch) {
    running  := true.B
    finished := false.B
    cycles   := 0.U
  }.elsewhen(running) {
    cycles := cycles + 1.U
    when(compute.io.finished && !failed) { finished := true.B }
    when(compute.io.finished || failed) { running := false.B }
  }

  LaunchTap(p, launch, clock)

  // Instructions
  fetch.io.start := launch
  fetch.io.base  := io.control.insnBase
  fetch.io.count := io.control.insnCount
  load.io.insn :<>= StallPoint(p, fetch.io.load)
  compute.io.insn :<>= StallPoint(p, fetch.io.compute)
  store.io.insn :<>= StallPoint(p, fetch.io.store)
  Seq(fetch.io.halt, load.io.halt, compute.io.halt, store.io.halt).foreach(_ := halt)

  // Memory
  load.io.baseInp    := io.control.inpBase
  load.io.baseWgt    := io.control.wgtBase
  compute.io.baseUop := io.control.uopBase
  compute.io.baseAcc := io.control.accBase
  store.io.baseOut   := io.control.outBase
  private def read(client: Int, port: ReadPort): Unit = {
    io.reads(client).command :<>= StallPoint(p, port.command)
    port.data :<>= StallPoint(p, io.reads(client).data)
  }
  read(ReadClient.insn, fetch.io.read)
  read(ReadClient.uop, compute.io.readUop)
  read(ReadClient.inp, load.io.readInp)
  read(ReadClient.wgt, load.io.readWgt)
  read(ReadClient.acc, compute.io.readAcc)
  io.write.aw :<>= StallPoint(p, store.io.axiWrite.aw)
  io.write.w :<>= StallPoint(p, store.io.axiWrite.w)
  store.io.axiWrite.b :<>= StallPoint(p, io.write.b)
  compute.io.writeInp := load.io.writeInp
  compute.io.writeWgt := load.io.writeWgt
  store.io.outRead :<>= compute.io.outRead

  // Tokens
  private def tokens(name: String, push: TokenPush, pop: TokenPop): TokenQueue = {
    val queue = Module(new TokenQueue(p.tokenDepth)).suggestName(name)
    queue.io.push := push.push
    queue.io.pop  := pop.pop
    pop.ready     := queue.io.ready
    queue
  }
  private val loadToCompute  = tokens("loadToCompute", load.io.pushToCompute, compute.io.popFromLoad)
  private val computeToLoad  = tokens("computeToLoad", compute.io.pushToLoad, load.io.popFromCompute)
  private val computeToStore = tokens("computeToStore", compute.io.pushToStore, store.io.popFromCompute)
  private val storeToCompute = tokens("storeToCompute", store.io.pushToCompute, compute.io.popFromStore)
  private val queues         = Seq(loadToCompute, computeToLoad, computeToStore, storeToCompute)

  compute.io.quiet := !fetch.io.busy && !fetch.io.load.valid && !fetch.io.store.valid && !load.io.busy &&
    !store.io.busy && queues.map(_.io.empty).reduce(_ && _)

  // Errors: the units in the order of the chain, then lost tokens, then the watchdog
  private def report(unit: String, valid: Bool, detail: UnitError): Valid[HeldError] = {
    val error = Wire(Valid(new HeldError(p)))
    error.valid       := valid
    error.bits.unit   := isa.unit(unit)
    error.bits.detail := detail
    error.bits.wait_  := 0.U
    error.bits.finish := false.B
    error
  }
  private def lost(unit: String, overflow: Bool, index: UInt): Valid[HeldError] = {
    val detail = Wire(new UnitError(p))
    detail.cause   := isa.cause("TOKEN_OVERFLOW")
    detail.index   := index
    detail.channel := 0.U
    detail.address := 0.U
    report(unit, overflow, detail)
  }
  private val reports = Seq(
    report("FETCH", fetch.io.error.valid, fetch.io.error.bits),
    report("LOAD", load.io.error.valid, load.io.error.bits),
    report("COMPUTE", compute.io.error.valid, compute.io.error.bits),
    report("STORE", store.io.error.valid, store.io.error.bits),
    lost("LOAD", loadToCompute.io.overflow, load.io.retire.index),
    lost("COMPUTE", computeToLoad.io.overflow || computeToStore.io.overflow, compute.io.retire.index),
    lost("STORE", storeToCompute.io.overflow, store.io.retire.index),
    watchdog.io.report,
  )
  errors.io.reports.zip(reports).foreach { case (port, value) => port := value }

  // What the units wait for. The instruction at hand is the last one taken, or the next where load waits with it in the queue.
  private val retires                                    = Seq(load.io.retire, compute.io.retire, store.io.retire)
  private def taken(insn: DecoupledIO[QueuedInsn]): UInt = RegEnable(insn.bits.index, insn.fire)
  private def bit(queue: String, waits: Bool): UInt      = (waits << isa.queue(queue)).asUInt.pad(4)
  watchdog.io.bound    := io.control.watchdog
  watchdog.io.running  := running
  watchdog.io.progress := io.busProgress || retires.map(_.valid).reduce(_ || _) || compute.io.gemmUop ||
    compute.io.aluUop || compute.io.requantVector
  watchdog.io.load.busy      := load.io.busy
  watchdog.io.load.queues    := bit("COMPUTE_TO_LOAD", load.io.waitTokens(1))
  watchdog.io.load.finish    := false.B
  watchdog.io.load.index     := Mux(load.io.waitToken, fetch.io.load.bits.index, taken(fetch.io.load))
  watchdog.io.compute.busy   := compute.io.busy
  watchdog.io.compute.queues := bit("LOAD_TO_COMPUTE", compute.io.waitTokens(0)) |
    bit("STORE_TO_COMPUTE", compute.io.waitTokens(1))
  watchdog.io.compute.finish := compute.io.waitFinish
  watchdog.io.compute.index  := taken(fetch.io.compute)
  watchdog.io.store.busy     := store.io.busy
  watchdog.io.store.queues   := bit("COMPUTE_TO_STORE", store.io.waitTokens(0))
  watchdog.io.store.finish   := false.B
  watchdog.io.store.index    := taken(fetch.io.store)
  watchdog.io.fetch.busy     := fetch.io.busy
  watchdog.io.fetch.queues   := 0.U
  watchdog.io.fetch.finish   := false.B
  watchdog.io.fetch.index    := fetch.io.nextIndex

  // Counters
  private val insnBytes = p.constants("insn_bytes").U
  private val events    = Map[String, UInt](
    "fetch_busy"        -> fetch.io.insnRead,
    "fetch_stall_queue" -> fetch.io.stallQueue,
    "fetch_wait_memory" -> (fetch.io.busy && !fetch.io.insnRead && !fetch.io.stallQueue),
    "fetch_idle"        -> !fetch.io.busy,
    "load_busy"         -> load.io.moves,
    "load_wait_memory"  -> (load.io.busy && !load.io.moves),
    "load_wait_token"   -> (!load.io.busy && load.io.waitToken),
    "load_idle"         -> (!load.io.busy && !load.io.waitToken),
    "store_busy"        -> (store.io.busy && !store.io.waitToken && !store.io.waitMemory),
    "store_wait_memory" -> (store.io.busy && store.io.waitMemory),
    "store_wait_token"  -> (store.io.busy && store.io.waitToken && !store.io.waitMemory),
    "store_idle"        -> !store.io.busy,
    "compute_busy"      -> compute.io.busy,
    "gemm_busy"         -> compute.io.gemmBusy,
    "alu_busy"          -> compute.io.aluBusy,
    "requant_busy"      -> compute.io.requantBusy,
    "requant_wait_port" -> compute.io.requantWaitPort,
    "gemm_uops"         -> compute.io.gemmUop,
    "alu_uops"          -> compute.io.aluUop,
    "requant_vectors"   -> compute.io.requantVector,
    "insn_bytes"        -> Mux(fetch.io.insnRead, insnBytes, 0.U),
    "uop_load_bytes"    -> compute.io.uopBytes,
    "inp_load_bytes"    -> load.io.inpBytes,
    "wgt_load_bytes"    -> load.io.wgtBytes,
    "acc_load_bytes"    -> compute.io.accBytes,
    "out_store_bytes"   -> store.io.outBytes,
    "insns_retired"     -> PopCount(retires.map(_.valid)),
  ) ++ ComputeActivity.all.map(what => ComputeActivity.name(what) -> (compute.io.activity === what).asUInt)
  io.status.counters  := Counters(p, events, launch, running)
  io.status.accWrites :=
    Counters.saturating(compute.io.accWrite, launch, running, 32).suggestName("counter_acc_writes")

  io.status.running     := running
  io.status.finished    := finished
  io.status.fetchBusy   := fetch.io.busy
  io.status.loadBusy    := load.io.busy
  io.status.computeBusy := compute.io.busy
  io.status.storeBusy   := store.io.busy
  io.status.error       := errors.io.held
  io.status.cycles      := cycles
  io.trace.load         := load.io.retire
  io.trace.compute      := compute.io.retire
  io.trace.store        := store.io.retire
  io.trace.gemmLast     := compute.io.gemmLast
}
