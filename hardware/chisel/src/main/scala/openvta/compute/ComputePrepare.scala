// SPDX-License-Identifier: Apache-2.0
package openvta.compute

import chisel3._
import chisel3.util._
import openvta.spec._

/** Elements `first` to `last` of a scratchpad, both included. */
class ElementRange(bits: Int) extends Bundle {
  val first = UInt(bits.W)
  val last  = UInt(bits.W)

  def has(index: UInt): Bool             = first <= index && index <= last
  def meets(other: ElementRange): Bool   = first <= other.last && other.first <= last
  def set(from: UInt, until: UInt): Unit = { first := from; last := until }
  def assign(other: ElementRange): Unit  = { first := other.first; last := other.last }
}

/** An instruction of the compute unit with what decides when it may start. */
class PreparedInsn(p: VtaParams) extends Bundle {
  val insn  = new QueuedInsn(p)
  val kind  = ComputeKind()
  val isAlu = Bool()

  /** Micro-ops read (GEMM, ALU) or written (LOAD). */
  val uops = new ElementRange(p.uopIndexBits)

  /** Acc elements loaded, or requantized. */
  val data = new ElementRange(p.accIndexBits)

  /** Acc elements that are parameters of a REQUANT. */
  val params = new ElementRange(p.accIndexBits)
}

/** Ranges of an instruction, from its fields alone. Combinational. A range that leaves its scratchpad ends at the last element
  * (such an instruction is at fault).
  */
object ComputePrepare {

  /** The low `bits` bits, or the largest value of them. */
  private def capped(value: UInt, bits: Int): UInt =
    if (value.getWidth <= bits) value.pad(bits)
    else Mux((value >> bits).orR, Fill(bits, 1.U(1.W)), value(bits - 1, 0))

  def apply(p: VtaParams, insn: QueuedInsn): PreparedInsn = {
    def field(layout: String, name: String): UInt = Isa.field(insn.word, p.layout(layout), name)
    val result                                    = Wire(new PreparedInsn(p))
    result.insn  := insn
    result.kind  := ComputeDecode.kind(p, insn)
    result.isAlu := ComputeDecode.isAlu(p, insn)

    // LOAD: x_size + pads by y_size + pads elements.
    val countBits = math.max(p.uopIndexBits, p.accIndexBits) + 1
    val row       = field("LOAD", "x_size") +& field("LOAD", "x_pad_0") +& field("LOAD", "x_pad_1")
    val rows      = field("LOAD", "y_size") +& field("LOAD", "y_pad_0") +& field("LOAD", "y_pad_1")
    val beyond    = field("LOAD", "sram_base") +& capped(row, countBits) * capped(rows, countBits)
    def loaded(bits: Int): (UInt, UInt) = (capped(field("LOAD", "sram_base"), bits), capped(beyond - 1.U, bits))

    val isLoad             = result.kind === ComputeKind.loadUop
    val (uopBase, uopLast) = loaded(p.uopIndexBits)
    result.uops.set(
      Mux(isLoad, uopBase, field("GEMM", "uop_begin")),
      Mux(isLoad, uopLast, (field("GEMM", "uop_end") - 1.U)(p.uopIndexBits - 1, 0)),
    )
    val (accBase, accLast) = loaded(p.accIndexBits)
    if (p.has("requant")) {
      def requant(name: String): UInt           = field("REQUANT", name)
      def last(stream: String, more: Int): UInt =
        capped(
          requant(s"${stream}_base") +& (requant("iter_out") - 1.U) * requant(s"${stream}_factor_out") +&
            (requant("iter_in") - 1.U) * requant(s"${stream}_factor_in") +& more.U,
          p.accIndexBits,
        )
      val isRequant = result.kind === ComputeKind.requant
      result.data.set(Mux(isRequant, requant("data_base"), accBase), Mux(isRequant, last("data", 0), accLast))
      result.params.set(requant("param_base"), last("param", 2))
    } else {
      result.data.set(accBase, accLast)
      result.params.set(accBase, accLast)
    }
    result
  }
}
