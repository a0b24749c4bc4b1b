// SPDX-License-Identifier: Apache-2.0
package openvta.compute

import chisel3._
import chisel3.util._
import openvta.mem.ScratchRead
import openvta.spec._
import openvta.util.Bits

/** Requantization of acc elements into out, with three parameter elements read as they change.
  *
  * It takes what the micro-op pipeline leaves of the memory ports: a read is made where `accFree` is set, a write where its `ready` is.
  * Throughput: one element in `requantCycles` cycles while there are free slots; a change of parameters costs `requantCycles + 4` cycles
  * within an instruction (`separate`), else the pipeline is drained first. Latency: `requantCycles + RequantLane.stages + 1` cycles
  * from the read of an element to its write. Back-pressure: no more elements are read than there is room for results; a read
  * waits while the element is still to be written. An index out of range raises `fault` for one cycle and stops; `halt`
  * stops too. The next command is taken early, but its parameters are read when everything before is written.
  */
class RequantCore(p: VtaParams) extends Module {
  private val groups     = p.requantCycles
  private val groupLanes = ComputeWidths.requantLanes(p)
  private val streams    = ComputeWidths.requantStreams(p)

  val io = IO(new Bundle {
    val command = Flipped(Decoupled(new RequantCommand(p)))

    /** Nobody else reads acc in this cycle. */
    val accFree  = Input(Bool())
    val accRead  = Flipped(new ScratchRead(p.accIndexBits, p.accElemBits))
    val accWrite = Decoupled(new ElementWrite(p.accIndexBits, p.accElemBits, p.tagBits))
    val outWrite = Decoupled(new ElementWrite(p.accIndexBits, p.outElemBits, p.tagBits))
    val multiply = new MultiplyPort(groupLanes)
    val fault    = Output(Valid(UInt(p.indexBits.W)))
    val halt     = Input(Bool())

    /** The last write of an instruction is made in this cycle. */
    val done = Output(Bool())

    /** There is an element or a parameter to read and no free slot. */
    val waitPort = Output(Bool())
  })

  private class Flight extends Bundle {
    val dst  = UInt(p.accIndexBits.W)
    val last = Bool()
    val tag  = UInt(p.tagBits.W)
  }

  /** An element to be written. */
  private class Result extends Bundle {
    val flight   = new Flight
    val writeAcc = Bool()
    val lanes    = Vec(p.lanes, SInt(9.W))
  }

  private val generator = Module(new IndexGenerator(1, ComputeWidths.loopBits(p), streams))
  generator.io.command.valid := io.command.valid
  generator.io.command.bits  := io.command.bits.loops
  io.command.ready           := generator.io.command.ready
  private val arriving = RegEnable(io.command.bits, io.command.fire)
  private val current  = Reg(new RequantCommand(p)) // of the elements under way

  // Elements between their read and their result, by age; results wait in a queue; an element to be cleared waits in a register.
  private val writeAge    = groups + RequantLane.stages
  private val flightValid = RegInit(VecInit.fill(writeAge + 1)(false.B))
  private val flight      = Reg(Vec(writeAge + 1, new Flight))
  private val room        = (writeAge + groups - 1) / groups + 2
  private val results     = Module(new Queue(new Result, room, flow = true))
  private val owed        = RegInit(0.U(log2Ceil(room + 1).W))
  private val clearValid  = RegInit(false.B)
  private val clearIndex  = Reg(UInt(p.accIndexBits.W))
  private val clearTag    = Reg(UInt(p.tagBits.W))
  private val cleared     = Wire(Bool())
  private val drained     = owed === 0.U && !clearValid

  private val step    = generator.io.step
  private val data    = step.bits.index(0)
  private val param   = step.bits.index(1)
  private val faulted = RegInit(false.B)
  private val live    = step.valid && !faulted && !io.halt
  private val depth   = BigInt(1) << p.accIndexBits
  private val bad     = data.overflow || param.overflow || param.value > (depth - 3).U
  private val loaded  = RegInit(false.B)
  private val began   = RegInit(false.B)
  private val held    = Reg(UInt(p.accIndexBits.W))
  private val reading = RegInit(false.B)
  private val asked   = RegInit(0.U(2.W))
  private val words   = Reg(Vec(3, Vec(p.lanes, UInt(32.W))))
  private val spacing = RegInit(0.U(log2Ceil(groups + 1).W))
  private val needed  = !loaded || param.value =/= held
  private val entered = !flightValid.take(groups).reduce(_ || _)
  private val settled = drained || (began && current.separate && entered)
  private val clash   = current.writeAcc && ((0 to writeAge)
    .map(k => flightValid(k) && flight(k).dst === data.value)
    .reduce(_ || _) || results.io.count =/= 0.U)
  private val wants =
    live && !bad && !reading && !needed && spacing === 0.U && !clash && owed < room.U && (!clearValid || cleared)
  private val take = wants && io.accFree

  when(live && bad && !reading) { faulted := true.B }
  io.fault.valid := live && bad && !reading
  io.fault.bits  := arriving.index

  // Parameters: three reads, each answered a cycle later. Elements under way have taken the old ones.
  private def lanes(value: UInt): Vec[UInt] =
    VecInit.tabulate(p.lanes)(k => value((k + 1) * p.accBits - 1, k * p.accBits))
  private val asks     = reading && asked =/= 3.U
  private val asking   = asks && io.accFree
  private val answered = RegNext(asking, false.B)
  private val answer   = RegEnable(asked, asking)
  when(live && !bad && !reading && needed && settled) {
    reading := true.B
    asked   := 0.U
    when(!began) { current := arriving }
    began := true.B
  }
  when(asking) { asked := asked + 1.U }
  when(answered) {
    words(answer) := lanes(io.accRead.data)
    when(answer === 2.U) {
      reading := false.B
      loaded  := true.B
      held    := param.value
    }
  }

  step.ready        := take
  io.accRead.enable := take || asking
  io.accRead.index  := Mux(reading, param.value + asked, data.value)
  io.waitPort       := (wants || asks) && !io.accFree
  when(take) {
    spacing := (groups - 1).U
    when(step.bits.last) {
      loaded := false.B
      began  := false.B
    }
  }.elsewhen(spacing =/= 0.U) { spacing := spacing - 1.U }
  owed := owed + take - results.io.deq.fire

  flightValid(0) := take
  when(take) {
    flight(0).dst  := data.value
    flight(0).last := step.bits.last
    flight(0).tag  := Bits.low(current.index, p.tagBits)
  }
  for (age <- 1 to writeAge) {
    flightValid(age) := flightValid(age - 1)
    when(flightValid(age - 1)) { flight(age) := flight(age - 1) }
  }

  // Age 0: the memory has answered. From age 1 on, one group of lanes after another enters the pipeline.
  private val operand = RegEnable(lanes(io.accRead.data), flightValid(0))
  private val group   = RegInit(0.U(log2Ceil(groups + 1).W))
  private val enters  = flightValid(1) || group =/= 0.U
  when(enters) { group := Mux(group === (groups - 1).U, 0.U, group + 1.U) }
  private val enable                               = Seq.iterate(enters, RequantLane.stages)(e => RegNext(e, false.B))
  private val outGroup                             = ShiftRegister(group, RequantLane.stages - 1)
  private def select(vector: Vec[UInt]): Vec[UInt] = {
    val parts = VecInit(vector.grouped(groupLanes).map(part => VecInit(part.toSeq)).toSeq)
    if (groups == 1) parts(0) else parts(group(log2Ceil(groups) - 1, 0))
  }
  private val accGroup  = select(operand)
  private val wordGroup = words.map(select)
  private val result    = Reg(Vec(p.lanes, SInt(9.W)))
  io.multiply.valid := enable(2)
  for (k <- 0 until groupLanes) {
    val lane = Module(new RequantLane(p))
    lane.io.enable      := enable
    lane.io.mode        := current.mode
    lane.io.unsignedOut := current.unsignedOut
    lane.io.acc         := accGroup(k)
    lane.io.words       := VecInit(wordGroup.map(_(k)))
    io.multiply.a(k)    := lane.io.a
    io.multiply.b(k)    := lane.io.b
    lane.io.product     := io.multiply.product(k)
    for (g <- 0 until groups) {
      when(enable.last && outGroup === g.U) { result(g * groupLanes + k) := lane.io.result }
    }
  }

  results.io.enq.valid         := flightValid(writeAge)
  results.io.enq.bits.flight   := flight(writeAge)
  results.io.enq.bits.writeAcc := current.writeAcc
  results.io.enq.bits.lanes    := VecInit(result.map(identity))

  // Writes: an element is cleared in the cycle after its read or later, and before the last result of its instruction is written.
  private val head     = results.io.deq.bits
  private val ends     = head.flight.last
  private val writes   = results.io.deq.valid && !(ends && clearValid)
  private val accWants = writes && head.writeAcc
  when(take && current.clear) {
    clearValid := true.B
    clearIndex := data.value
    clearTag   := Bits.low(current.index, p.tagBits)
  }.elsewhen(cleared) { clearValid := false.B }
  cleared                := clearValid && io.accWrite.ready
  io.accWrite.valid      := clearValid || (accWants && io.outWrite.ready)
  io.accWrite.bits.index := Mux(clearValid, clearIndex, head.flight.dst)
  io.accWrite.bits.data  := Mux(clearValid, 0.U, Cat(head.lanes.map(_.pad(p.accBits).asUInt).reverse))
  io.accWrite.bits.tag   := Mux(clearValid, clearTag, head.flight.tag)
  io.outWrite.valid      := writes && (!head.writeAcc || (io.accWrite.ready && !clearValid))
  io.outWrite.bits.index := head.flight.dst
  io.outWrite.bits.data  := Cat(head.lanes.map(_(p.outBits - 1, 0)).reverse)
  io.outWrite.bits.tag   := head.flight.tag
  results.io.deq.ready   := io.outWrite.fire
  io.done                := io.outWrite.fire && ends
}
