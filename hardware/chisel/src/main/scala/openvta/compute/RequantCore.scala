// SPDX-License-Identifier: Apache-2.0
package openvta.compute

import chisel3._
import chisel3.util._
import openvta.mem.ScratchRead
import openvta.spec._
import openvta.util.Bits

/** Requantization of acc elements into out, with three parameter elements read as they change.
  *
  * Throughput: one element in `requantCycles` cycles; a change of parameters drains the pipeline and costs four cycles more.
  * Latency: `requantCycles + RequantLane.stages + 1` cycles from the read of an element to its write. Back-pressure: a read waits
  * while the element is still to be written (`write_acc`). An index out of range raises `fault` for one cycle and stops;
  * `halt` stops too. The next command is taken early, but its parameters are read when everything before is written.
  */
class RequantCore(p: VtaParams) extends Module {
  private val groups     = p.requantCycles
  private val groupLanes = ComputeWidths.requantLanes(p)
  private val streams    = ComputeWidths.requantStreams(p)

  val io = IO(new Bundle {
    val command  = Flipped(Decoupled(new RequantCommand(p)))
    val accRead  = Flipped(new ScratchRead(p.accIndexBits, p.accElemBits))
    val accWrite = Output(Valid(new ElementWrite(p.accIndexBits, p.accElemBits, p.tagBits)))
    val outWrite = Output(Valid(new ElementWrite(p.accIndexBits, p.outElemBits, p.tagBits)))
    val multiply = new MultiplyPort(groupLanes)
    val fault    = Output(Valid(UInt(p.indexBits.W)))
    val halt     = Input(Bool())

    /** The last write of an instruction is made in this cycle. */
    val done = Output(Bool())
    val idle = Output(Bool())
  })

  private class Flight extends Bundle {
    val dst  = UInt(p.accIndexBits.W)
    val last = Bool()
    val tag  = UInt(p.tagBits.W)
  }

  private val generator = Module(new IndexGenerator(1, ComputeWidths.loopBits(p), streams))
  generator.io.command.valid := io.command.valid
  generator.io.command.bits  := io.command.bits.loops
  io.command.ready           := generator.io.command.ready
  private val arriving = RegEnable(io.command.bits, io.command.fire)
  private val current  = Reg(new RequantCommand(p)) // of the elements under way

  // Elements between their read and their write, by age.
  private val writeAge    = groups + RequantLane.stages
  private val flightValid = RegInit(VecInit.fill(writeAge + 1)(false.B))
  private val flight      = Reg(Vec(writeAge + 1, new Flight))
  private val drained     = !flightValid.reduce(_ || _)

  private val step    = generator.io.step
  private val data    = step.bits.index(0)
  private val param   = step.bits.index(1)
  private val faulted = RegInit(false.B)
  private val live    = step.valid && !faulted && !io.halt
  private val depth   = BigInt(1) << p.accIndexBits
  private val bad     = data.overflow || param.overflow || param.value > (depth - 3).U
  private val loaded  = RegInit(false.B)
  private val held    = Reg(UInt(p.accIndexBits.W))
  private val reading = RegInit(false.B)
  private val word    = RegInit(0.U(2.W))
  private val words   = Reg(Vec(3, Vec(p.lanes, UInt(32.W))))
  private val spacing = RegInit(0.U(log2Ceil(groups + 1).W))
  private val needed  = !loaded || param.value =/= held
  private val clash   =
    current.writeAcc && (0 until writeAge).map(k => flightValid(k) && flight(k).dst === data.value).reduce(_ || _)
  private val take = live && !bad && !reading && !needed && spacing === 0.U && !clash

  when(live && bad && !reading) { faulted := true.B }
  io.fault.valid := live && bad && !reading
  io.fault.bits  := arriving.index

  // Parameters: three reads, each answered a cycle later.
  private def lanes(value: UInt): Vec[UInt] =
    VecInit.tabulate(p.lanes)(k => value((k + 1) * p.accBits - 1, k * p.accBits))
  when(live && !bad && !reading && needed && drained) {
    reading := true.B
    word    := 0.U
    current := arriving
  }
  when(reading) {
    word := word + 1.U
    when(word =/= 0.U) { words(word - 1.U) := lanes(io.accRead.data) }
    when(word === 3.U) {
      reading := false.B
      loaded  := true.B
      held    := param.value
    }
  }

  step.ready        := take
  io.accRead.enable := take || (reading && word =/= 3.U)
  io.accRead.index  := Mux(reading, param.value + word, data.value)
  when(take) {
    spacing := (groups - 1).U
    when(step.bits.last) { loaded := false.B }
  }.elsewhen(spacing =/= 0.U) { spacing := spacing - 1.U }

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

  private val write = flightValid(writeAge)
  private val clear = flightValid(0) && current.clear
  io.outWrite.valid      := write
  io.outWrite.bits.index := flight(writeAge).dst
  io.outWrite.bits.data  := Cat(result.map(_(p.outBits - 1, 0)).reverse)
  io.outWrite.bits.tag   := flight(writeAge).tag
  io.accWrite.valid      := clear || (write && current.writeAcc)
  io.accWrite.bits.index := Mux(current.writeAcc, flight(writeAge).dst, flight(0).dst)
  io.accWrite.bits.data  := Mux(current.writeAcc, Cat(result.map(_.pad(p.accBits).asUInt).reverse), 0.U)
  io.accWrite.bits.tag   := Mux(current.writeAcc, flight(writeAge).tag, flight(0).tag)
  io.done                := write && flight(writeAge).last
  io.idle                := !step.valid && drained
}
