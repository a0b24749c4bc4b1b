// SPDX-License-Identifier: Apache-2.0
package openvta.fetch

import chisel3._
import chisel3.util._
import openvta.spec._

/** What is wrong with an instruction word, and which unit executes it. Combinational.
  *
  * The checks are those of the specification's `static_fault`, in the order of the causes; the lowest cause is the
  * answer. `unit` means something only where `cause` is zero.
  */
class Decoder(p: VtaParams) extends RawModule {
  val io = IO(new Bundle {
    val word  = Input(UInt(p.insnBits.W))
    val last  = Input(Bool())
    val cause = Output(UInt(8.W))
    val unit  = Output(UInt(4.W))
  })

  private val isa     = new Isa(p)
  private val opcodes = Seq("LOAD", "STORE", "GEMM", "FINISH", "ALU") ++ (if (p.has("requant")) Seq("REQUANT") else Nil)
  private val number  = io.word(2, 0)

  private def is(opcode: String): Bool                  = number === isa.opcode(opcode)
  private def field(layout: String, name: String): UInt = Isa.field(io.word, p.layout(layout), name)
  private def any(layout: String, names: String*): Bool = names.map(field(layout, _).orR).reduce(_ || _)
  private def bits(mask: BigInt): Bool                = if (mask == 0) false.B else (io.word & mask.U(p.insnBits.W)).orR
  private def oneOf(value: UInt, set: Iterable[UInt]) = set.map(value === _).reduce(_ || _)

  // Opcode
  private val aluOpcode = field("ALU", "alu_opcode")
  private val aluPlus   = oneOf(aluOpcode, Seq("MAC", "RSHR", "MOV").map(isa.aluOpcode))
  private val unknown   = !opcodes.map(is).reduce(_ || _) || (if (p.has("alu_plus")) false.B else is("ALU") && aluPlus)

  // Reserved bits: those of the layout, and immediates that the operations of alu_plus do not use
  private val imm                        = p.layout("ALU")("imm")
  private val useImm                     = field("ALU", "use_imm").asBool
  private def immediate(mask: Int): Bool = bits(BigInt(mask) << imm.lo)
  private val rounding                   = aluOpcode === isa.aluOpcode("RSHR")
  private val strayTensor                = Mux(rounding, immediate(0x7fff), aluPlus && immediate(0xffff))
  private val stray                      = Mux(useImm, rounding && immediate(0x7fe0), strayTensor)
  private val reserved                   = opcodes.map(o => is(o) && bits(p.layout(o).reservedMask)).reduce(_ || _) ||
    (is("ALU") && stray)

  // Tokens
  private val memory   = field("LOAD", "memory_id")
  private val forLoad  = is("LOAD") && oneOf(memory, Seq("INP", "WGT").map(isa.memId))
  private val forStore = is("STORE")
  private val token    = (forLoad && any("LOAD", "pop_prev", "push_prev")) ||
    (forStore && any("STORE", "pop_next", "push_next")) ||
    (is("FINISH") && any("FINISH", "push_prev", "push_next"))

  private val order = is("FINISH") =/= io.last

  // LOAD and STORE: no-ops are not looked at any further
  private val works     = field("LOAD", "x_size").orR && field("LOAD", "y_size").orR
  private val loadable  = Seq("UOP", "WGT", "INP", "ACC") ++ (if (p.has("acc8")) Seq("ACC_INT8", "ACC_UINT8") else Nil)
  private val badMemory = works &&
    ((is("STORE") && memory =/= isa.memId("OUT")) || (is("LOAD") && !oneOf(memory, loadable.map(isa.memId))))
  private val badPad = if (p.has("padv")) {
    val minimum = field("LOAD", "pad_min").asBool
    val value   = any("LOAD", "pad_value_high", "pad_value_low")
    is("LOAD") && ((minimum && value) || (memory === isa.memId("UOP") && (minimum || value)))
  } else false.B
  private val storePad    = is("STORE") && any("STORE", "y_pad_0", "y_pad_1", "x_pad_0", "x_pad_1")
  private val badTransfer = works && (badPad || storePad)

  // GEMM and ALU share their loop fields
  private def loops(layout: String): (Bool, Bool) = {
    val (begin, end) = (field(layout, "uop_begin"), field(layout, "uop_end"))
    (is(layout) && begin > end, is(layout) && end > p.uopDepth.U)
  }
  private val (gemmOrder, gemmRange) = loops("GEMM")
  private val (aluOrder, aluRange)   = loops("ALU")

  private val badRequant = if (p.has("requant")) {
    val modes = p.enums("RequantMode").values.toSeq.sorted.map(_.U(3.W))
    is("REQUANT") &&
    (!oneOf(field("REQUANT", "mode"), modes) || (any("REQUANT", "clear") && any("REQUANT", "write_acc")))
  } else false.B

  io.cause := MuxCase(
    isa.cause("NONE"),
    Seq(
      unknown                                              -> isa.cause("ILLEGAL_OPCODE"),
      reserved                                             -> isa.cause("RESERVED_BITS"),
      token                                                -> isa.cause("ILLEGAL_TOKEN"),
      order                                                -> isa.cause("FINISH_ORDER"),
      badMemory                                            -> isa.cause("ILLEGAL_MEMORY"),
      (badTransfer || gemmOrder || aluOrder || badRequant) -> isa.cause("ILLEGAL_FIELD"),
      (gemmRange || aluRange)                              -> isa.cause("INDEX_RANGE"),
    ),
  )
  io.unit := Mux(forLoad, isa.unit("LOAD"), Mux(forStore, isa.unit("STORE"), isa.unit("COMPUTE")))
}
