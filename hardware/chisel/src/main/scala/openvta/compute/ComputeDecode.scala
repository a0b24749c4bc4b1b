// SPDX-License-Identifier: Apache-2.0
package openvta.compute

import chisel3._
import openvta.spec._

/** What an instruction of the compute unit asks for. */
object ComputeKind extends ChiselEnum {

  /** Nothing but its tokens. */
  val nothing, loadUop, loadAcc, uops, requant, finish = Value
}

/** An instruction of the compute unit, taken apart. Fetch has checked it; what is illegal never comes here. */
object ComputeDecode {
  private def word(insn: QueuedInsn, p: VtaParams)(layout: String, name: String): UInt =
    Isa.field(insn.word, p.layout(layout), name)

  def kind(p: VtaParams, insn: QueuedInsn): ComputeKind.Type = {
    val isa                      = new Isa(p)
    val field                    = word(insn, p) _
    val opcode                   = field("FINISH", "opcode")
    def is(member: String): Bool = opcode === isa.opcode(member)
    val isUops                   = is("GEMM") || is("ALU")
    val isRequant                = if (p.has("requant")) is("REQUANT") else false.B
    // The loops and micro-op range of GEMM and ALU are in the same place: openvta.compute.ComputeDecode.uops requires it.
    val noLoops   = field("GEMM", "iter_out") === 0.U || field("GEMM", "iter_in") === 0.U
    val noUops    = field("GEMM", "uop_begin") === field("GEMM", "uop_end")
    val noLoad    = field("LOAD", "x_size") === 0.U || field("LOAD", "y_size") === 0.U
    val isUopLoad = field("LOAD", "memory_id") === isa.memId("UOP")
    val result    = WireInit(ComputeKind.nothing)
    when(is("FINISH")) { result := ComputeKind.finish }
      .elsewhen(is("LOAD")) {
        when(!noLoad) { result := Mux(isUopLoad, ComputeKind.loadUop, ComputeKind.loadAcc) }
      }
      .elsewhen(isUops) { when(!noLoops && !noUops) { result := ComputeKind.uops } }
    if (p.has("requant")) {
      when(isRequant && field("REQUANT", "iter_out") =/= 0.U && field("REQUANT", "iter_in") =/= 0.U) {
        result := ComputeKind.requant
      }
    }
    result
  }

  def isAlu(p: VtaParams, insn: QueuedInsn): Bool =
    word(insn, p)("ALU", "opcode") === new Isa(p).opcode("ALU")

  def uops(p: VtaParams, insn: QueuedInsn, epoch: UInt): UopCommand = {
    for (name <- Seq("uop_begin", "uop_end", "iter_out", "iter_in") ++ Option.when(p.has("sat"))("sat"))
      if (p.layout("GEMM")(name) != p.layout("ALU")(name))
        throw new SpecMismatch(s"GEMM and ALU disagree on field $name")
    val field   = word(insn, p) _
    val alu     = isAlu(p, insn)
    val command = Wire(new UopCommand(p))
    command.index          := insn.index
    command.loops.uopBegin := field("GEMM", "uop_begin")
    command.loops.uopEnd   := field("GEMM", "uop_end")
    command.loops.iterOut  := field("GEMM", "iter_out")
    command.loops.iterIn   := field("GEMM", "iter_in")
    command.loops.base.foreach(_ := 0.U)
    for ((factor, suffix) <- Seq(command.loops.factorOut -> "out", command.loops.factorIn -> "in")) {
      factor(0) := Mux(alu, field("ALU", s"dst_factor_$suffix"), field("GEMM", s"dst_factor_$suffix"))
      factor(1) := Mux(alu, field("ALU", s"src_factor_$suffix"), field("GEMM", s"src_factor_$suffix"))
      factor(2) := Mux(alu, 0.U, field("GEMM", s"wgt_factor_$suffix"))
    }
    command.control.isAlu  := alu
    command.control.reset  := !alu && field("GEMM", "reset").asBool
    command.control.sat    := (if (p.has("sat")) field("GEMM", "sat").asBool else false.B)
    command.control.opcode := field("ALU", "alu_opcode")
    command.control.useImm := field("ALU", "use_imm")
    command.control.imm    := field("ALU", "imm")
    command.control.epoch  := epoch
    command
  }

  def requant(p: VtaParams, insn: QueuedInsn, separate: Bool): RequantCommand = {
    val field   = word(insn, p)("REQUANT", _: String)
    val command = Wire(new RequantCommand(p))
    command.index          := insn.index
    command.loops.uopBegin := 0.U
    command.loops.uopEnd   := 1.U
    command.loops.iterOut  := field("iter_out")
    command.loops.iterIn   := field("iter_in")
    for ((stream, name) <- Seq(0 -> "data", 1 -> "param")) {
      command.loops.base(stream)      := field(s"${name}_base")
      command.loops.factorOut(stream) := field(s"${name}_factor_out")
      command.loops.factorIn(stream)  := field(s"${name}_factor_in")
    }
    command.mode        := field("mode")
    command.clear       := field("clear")
    command.writeAcc    := field("write_acc")
    command.unsignedOut := field("unsigned_out")
    command.separate    := separate
    command
  }
}
