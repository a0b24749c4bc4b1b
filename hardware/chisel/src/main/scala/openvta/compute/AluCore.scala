// SPDX-License-Identifier: Apache-2.0
package openvta.compute

import chisel3._
import chisel3.util._
import openvta.mem.ScratchRead
import openvta.spec._

/** One lane of the operations that need no multiplier. */
object AluLane {
  def apply(p: VtaParams, control: OpControl, x: UInt, y: UInt): UInt = {
    val isa    = new Isa(p)
    val bits   = p.accBits
    val limit  = p.constants("shift_max").toInt
    val amount = log2Ceil(limit + 1)
    val left   = y(bits - 1)
    val size   = Mux(left, 0.U - y, y)
    val capped = Mux(size(bits - 1, amount).orR, limit.U, size(amount - 1, 0))
    val isRshr = if (p.has("alu_plus")) control.opcode === isa.aluOpcode("RSHR") else false.B
    val round  = Mux(control.useImm, y(amount - 1, 0), Mux(left, 0.U, capped))
    val by     = Mux(isRshr, round, capped)
    val right  = (x.asSInt >> by).asUInt
    val base   = Seq(
      isa.aluOpcode("MIN") -> Mux(x.asSInt < y.asSInt, x, y),
      isa.aluOpcode("MAX") -> Mux(x.asSInt < y.asSInt, y, x),
      isa.aluOpcode("ADD") -> (x + y),
      isa.aluOpcode("SHR") -> Mux(left, (x << capped)(bits - 1, 0), right),
    )
    val plus = if (p.has("alu_plus")) {
      val half   = ((1.U(bits.W) << by)(bits - 1, 0) >> 1).asUInt
      val tie    = (x & half).orR
      val below  = (x & (half - 1.U)).orR && half.orR
      val isEven = control.imm(control.imm.getWidth - 1)
      val up     = tie && (!isEven || below || right(0))
      Seq(isa.aluOpcode("RSHR") -> (right + up), isa.aluOpcode("MOV") -> y)
    } else Nil
    MuxLookup(control.opcode, y)(base ++ plus)
  }
}

object AluCore {
  private[compute] def isPlus(p: VtaParams, control: OpControl, member: String): Bool =
    if (p.has("alu_plus")) control.opcode === new Isa(p).aluOpcode(member) else false.B

  /** Whether an ALU operation needs the wide multipliers. */
  def multiplies(p: VtaParams, control: OpControl): Bool =
    control.opcode === new Isa(p).aluOpcode("MUL") || isPlus(p, control, "MAC")
}

/** Lane by lane operations on acc: `acc[dst] = op(acc[src], imm)` or `op(acc[dst], acc[src])`, and out narrowed.
  *
  * Throughput: one operation a cycle with an immediate, one in two cycles where two elements are read; multiplications take
  * `requantCycles` cycles (they share the requantizer's multipliers). Latency from the last read to the write: three
  * cycles, or `requantCycles + MultiplierBank.latency + 2` with a multiplication. Back-pressure: an operation waits while
  * an element it reads is still to be written, and while slower or faster operations are under way.
  */
class AluCore(p: VtaParams) extends Module {
  private val groups     = p.requantCycles
  private val groupLanes = ComputeWidths.requantLanes(p)

  val io = IO(new Bundle {
    val operation = Flipped(Decoupled(new UopOperation(p)))
    val accRead   = Flipped(new ScratchRead(p.accIndexBits, p.accElemBits))
    val accWrite  = Output(Valid(new ElementWrite(p.accIndexBits, p.accElemBits, p.tagBits)))
    val outWrite  = Output(Valid(new ElementWrite(p.accIndexBits, p.outElemBits, p.tagBits)))
    val multiply  = new MultiplyPort(groupLanes)

    /** The last write of an instruction is made in this cycle. */
    val done = Output(Bool())
    val idle = Output(Bool())
  })

  private class Flight extends Bundle {
    val dst  = UInt(p.accIndexBits.W)
    val sat  = Bool()
    val last = Bool()
    val tag  = UInt(p.tagBits.W)
  }

  private def isPlus(control: OpControl, member: String): Bool = AluCore.isPlus(p, control, member)
  private def multiplies(control: OpControl): Bool             = AluCore.multiplies(p, control)
  private def readsSrc(control: OpControl): Bool               = !(isPlus(control, "MOV") && control.useImm)
  private def readsDst(control: OpControl): Bool               =
    isPlus(control, "MAC") || (!control.useImm && !isPlus(control, "MOV"))

  // Operations between their last read and their write, by age. All of them multiply or none does; those that multiply
  // read alike, so that one's operands are never loaded while the lanes of another are still waiting.
  private val plainWrite               = 2
  private val multiplyWrite            = groups + MultiplierBank.latency + 1
  private val flightValid              = RegInit(VecInit.fill(multiplyWrite + 1)(false.B))
  private val flight                   = Reg(Vec(multiplyWrite + 1, new Flight))
  private val multiplying              = Reg(Bool())
  private val twoReads                 = Reg(Bool())
  private def writesAt(age: Int): Bool =
    (if (age == plainWrite) !multiplying else false.B) || (if (age == multiplyWrite) multiplying else false.B)

  // Issue: src is read first, then dst where it is needed.
  private val head    = io.operation.bits
  private val control = head.control
  private val second  = RegInit(false.B)
  private val spacing = RegInit(0.U(log2Ceil(groups + 1).W))
  private val pending = flight.indices.map(k => flightValid(k) && !writesAt(k))
  private val clash   = flight
    .zip(pending)
    .map { case (f, waits) =>
      waits && ((readsSrc(control) && f.dst === head.src(p.accIndexBits - 1, 0)) || (readsDst(
        control
      ) && f.dst === head.dst))
    }
    .reduce(_ || _)
  private val otherKind = flightValid.reduce(_ || _) &&
    (multiplying =/= multiplies(control) || (multiplying && twoReads =/= readsDst(control)))
  private val start = io.operation.valid && !second && spacing === 0.U && !clash && !otherKind
  private val fire  = second || (start && !readsDst(control))
  second := start && readsDst(control)
  when(start) { spacing := Mux(multiplies(control), (groups - 1).U, 0.U) }
    .elsewhen(spacing =/= 0.U) { spacing := spacing - 1.U }
  when(fire) {
    multiplying := multiplies(control)
    twoReads    := readsDst(control)
  }
  io.operation.ready := fire
  io.accRead.enable  := second || (start && readsSrc(control))
  io.accRead.index   := Mux(second, head.dst, head.src(p.accIndexBits - 1, 0))

  // Age 0: the memory has answered; operands are loaded.
  private val loadControl                  = RegEnable(control, fire)
  private val srcData                      = RegEnable(io.accRead.data, RegNext(start && readsDst(control), false.B))
  private def lanes(word: UInt): Vec[UInt] =
    VecInit.tabulate(p.lanes)(k => word((k + 1) * p.accBits - 1, k * p.accBits))
  private val src     = lanes(Mux(readsDst(loadControl), srcData, io.accRead.data))
  private val dst     = lanes(io.accRead.data)
  private val imm     = loadControl.imm.asSInt.pad(p.accBits).asUInt
  private val loading = flightValid(0)
  private val x       = RegEnable(VecInit(dst.zip(src).map { case (d, s) => Mux(loadControl.useImm, s, d) }), loading)
  private val y       = RegEnable(VecInit(src.map(s => Mux(loadControl.useImm, imm, s))), loading)

  // Age 1: plain operations are computed; multiplications start, one group of lanes a cycle.
  private val execute  = RegEnable(loadControl, loading)
  private val executes = flightValid(1)
  private val result   = Reg(Vec(p.lanes, UInt(p.accBits.W)))
  when(executes && !multiplying) {
    result.zip(x.zip(y)).foreach { case (r, (a, b)) => r := AluLane(p, execute, a, b) }
  }

  private val group       = RegInit(0.U(log2Ceil(groups + 1).W))
  private val groupActive = (executes && multiplying) || group =/= 0.U
  when(groupActive) { group := Mux(group === (groups - 1).U, 0.U, group + 1.U) }
  private def select(vector: Vec[UInt]): Vec[UInt] = {
    val parts = VecInit(vector.grouped(groupLanes).map(part => VecInit(part.toSeq)).toSeq)
    if (groups == 1) parts(0) else parts(group(log2Ceil(groups) - 1, 0))
  }
  private val (xs, ys) = (select(x), select(y))
  io.multiply.valid := groupActive
  for (k <- 0 until groupLanes) {
    io.multiply.a(k) := xs(k).asSInt
    io.multiply.b(k) := ys(k).asSInt
  }
  private val productValid = ShiftRegister(groupActive, MultiplierBank.latency, false.B, true.B)
  private val productGroup = ShiftRegister(group, MultiplierBank.latency)
  private val addend       = if (p.has("alu_plus")) {
    val c     = RegEnable(dst, loading)
    val isMac = isPlus(execute, "MAC")
    Some(ShiftRegister(VecInit(select(c).map(v => Mux(isMac, v, 0.U))), MultiplierBank.latency))
  } else None
  for (g <- 0 until groups; k <- 0 until groupLanes) {
    val low = io.multiply.product(k)(p.accBits - 1, 0)
    when(productValid && productGroup === g.U) {
      result(g * groupLanes + k) := addend.fold(low)(c => low + c(k))
    }
  }

  flightValid(0) := fire
  when(fire) {
    flight(0).dst  := head.dst
    flight(0).sat  := control.sat
    flight(0).last := head.last
    flight(0).tag  := head.tag
  }
  for (age <- 1 to multiplyWrite) {
    flightValid(age) := flightValid(age - 1) && !writesAt(age - 1)
    when(flightValid(age - 1)) { flight(age) := flight(age - 1) }
  }

  private val written = Mux(multiplying, flight(multiplyWrite), flight(plainWrite))
  private val write   = Mux(multiplying, flightValid(multiplyWrite), flightValid(plainWrite))
  io.accWrite.valid      := write
  io.accWrite.bits.index := written.dst
  io.accWrite.bits.data  := result.asUInt
  io.accWrite.bits.tag   := written.tag
  io.outWrite.valid      := write
  io.outWrite.bits.index := written.dst
  io.outWrite.bits.data  := Narrow(p, result, written.sat)
  io.outWrite.bits.tag   := written.tag
  io.done                := write && written.last
  io.idle                := !io.operation.valid && !flightValid.reduce(_ || _)
}
