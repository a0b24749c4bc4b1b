// SPDX-License-Identifier: Apache-2.0
package openvta.compute

import chisel3._
import chisel3.util._

/** A row of wide multiplications asked for in one cycle; products come `MultiplierBank.latency` cycles later. */
class MultiplyPort(lanes: Int) extends Bundle {
  val valid   = Output(Bool())
  val a       = Output(Vec(lanes, SInt(32.W)))
  val b       = Output(Vec(lanes, SInt(32.W)))
  val product = Input(Vec(lanes, SInt(64.W)))
}

object MultiplierBank {
  val latency: Int = 2
}

/** Signed 32 x 32 multipliers shared by the ALU and the requantizer, which never ask in the same cycle.
  *
  * Throughput: one row a cycle. Latency: `MultiplierBank.latency`. No back-pressure.
  */
class MultiplierBank(lanes: Int) extends Module {
  override def desiredName: String = s"MultiplierBank_$lanes"

  val io = IO(new Bundle {
    val alu     = Flipped(new MultiplyPort(lanes))
    val requant = Flipped(new MultiplyPort(lanes))
  })
  private val valid = io.alu.valid || io.requant.valid
  private val later = RegNext(valid, false.B)
  for (k <- 0 until lanes) {
    val a       = Mux(io.alu.valid, io.alu.a(k), io.requant.a(k))
    val b       = Mux(io.alu.valid, io.alu.b(k), io.requant.b(k))
    val product = RegEnable(RegEnable(a * b, valid), later)
    io.alu.product(k)     := product
    io.requant.product(k) := product
  }
}
