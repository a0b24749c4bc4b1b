// SPDX-License-Identifier: Apache-2.0
package openvta.compute

import chisel3._
import chisel3.util._
import openvta.spec._

object RequantLane {

  /** Stages before the result, which is combinational in the last: add, prepare, multiply (two), measure, round, shift, clamp. */
  val stages: Int = 4 + MultiplierBank.latency + 2
}

/** One lane of the requantizer.
  *
  * Throughput: one value a cycle. Latency: `RequantLane.stages - 1` cycles; `result` belongs to the value in the last stage.
  * Stage k loads its registers when `enable(k)` is set; the mode is stable while values are under way. No back-pressure.
  *
  * Integers stay in two's complement. In float mode the product is formed of minus the magnitude (which fits 32 bits even
  * for -2^31 and for 2^31, to which 2^31 - 1 rounds) and the sign returns before the last shift; ties to even look alike on both sides.
  */
class RequantLane(p: VtaParams) extends Module {
  private val isa      = new Isa(p)
  private val measure  = 2 + MultiplierBank.latency
  private val mantissa = 24

  val io = IO(new Bundle {
    val enable      = Input(Vec(RequantLane.stages, Bool()))
    val mode        = Input(UInt(3.W))
    val unsignedOut = Input(Bool())
    val acc         = Input(UInt(32.W))
    val words       = Input(Vec(3, UInt(32.W)))
    val a           = Output(SInt(32.W))
    val b           = Output(SInt(32.W))
    val product     = Input(SInt(64.W))
    val result      = Output(SInt(9.W))
  })

  private def mode(member: String): Bool = io.mode === isa.requantMode(member)
  private val isFloat                    = mode("FLOAT32")
  private val isTflite                   = mode("TFLITE_DOUBLE") || mode("TFLITE_RUY")

  /** What a shift right of a `width`-bit value by `amount` drops: the highest bit dropped, and those below it. */
  private def dropped(width: Int, amount: UInt): (UInt, UInt) = {
    val all   = Fill(width, 1.U(1.W)) >> (width.U - amount)
    val below = all >> 1
    (all & ~below, below)
  }

  /** `value` / 2^amount to nearest, ties to even. */
  private def halfEven(value: UInt, amount: UInt): UInt = {
    val (highest, below) = dropped(value.getWidth, amount)
    val floor            = value >> amount
    val up               = (value & highest).orR && ((value & below).orR || floor(0))
    (floor +& up)(value.getWidth, 0)
  }

  /** How many low bits go when `value` is rounded to `mantissa` significant bits. */
  private def excess(value: UInt): UInt = {
    val most = value.getWidth - mantissa
    PriorityMux((0 until most).map(k => value(value.getWidth - 1 - k) -> (most - k).U) :+ (true.B -> 0.U))
  }

  // Stage 0: add the bias.
  private val x      = RegEnable(io.acc + io.words(0), io.enable(0))
  private val word   = RegEnable(io.words(1), io.enable(0))
  private val packed = (0 until RequantLane.stages - 1).scanLeft(io.words(2)) { (w, k) => RegEnable(w, io.enable(k)) }

  // Stage 1: operands of the multiplication.
  private val sign      = x(31)
  private val magnitude = Mux(sign, 0.U - x, x)
  private val cut       = excess(magnitude)
  private val rounded   = (halfEven(magnitude, cut) << cut)(31, 0)
  private val exponent  = word(30, 23)
  private val shift1    = packed(1)(5, 0)
  private val shiftLeft = Mux(shift1 >= 31.U, 0.U, 31.U - shift1)(4, 0)
  private val integerA  = Mux(isTflite, (x << shiftLeft)(31, 0), x)
  private val floatB    = Mux(exponent === 0.U, 0.U(32.W), Cat(0.U(8.W), 1.U(1.W), word(22, 0)))
  io.a := RegEnable(Mux(isFloat, 0.U - rounded, integerA), io.enable(1)).asSInt
  io.b := RegEnable(Mux(isFloat, floatB, Cat(0.U(1.W), word(30, 0))), io.enable(1)).asSInt
  private def later[T <: Data](value: T, from: Int, to: Int): T =
    (from until to).foldLeft(value)((v, k) => RegEnable(v, io.enable(k)))
  private val productSign     = later(sign, 1, measure)
  private val productExponent = later(exponent, 1, measure)

  // Stage `measure`: take the high half (TFLite), or find how far a float product is to be rounded.
  private val product     = io.product
  private val high        = ((product + (BigInt(1) << 30).S(64.W)) >> 31).pad(64)
  private val productBits = 56 // 2^31 times a 24-bit mantissa
  private val productSize = (0.S(64.W) - product).asUInt(productBits - 1, 0)
  private val shift2      = packed(measure)(5, 0)
  private val beyond      = Mux(shift2 > 31.U, shift2 - 31.U, 0.U)
  private val value1      = RegEnable(
    Mux(isFloat, productSize.pad(64).asSInt, Mux(isTflite, high, product)),
    io.enable(measure),
  )
  private val amount1 = RegEnable(Mux(isFloat, excess(productSize), Mux(isTflite, beyond, shift2)), io.enable(measure))
  private val sign1   = RegEnable(productSign, io.enable(measure))
  private val exponent1 = RegEnable(productExponent, io.enable(measure))

  // Next stage: round a float product to its mantissa; what remains is a shift by n, to the right where n >= 0.
  private val leftMost    = 16 // a shift further left is clamped all the same
  private val significant = halfEven(value1.asUInt(productBits - 1, 0), amount1)(mantissa, 0)
  private val n           = 150.S(10.W) - exponent1.zext - amount1.zext
  private val leftBy      = Mux(n <= (-leftMost).S, leftMost.U, (0.S - n).asUInt(4, 0))
  private val scaled      = Mux(n < 0.S, (significant << leftBy)(mantissa + leftMost, 0), significant)
  private val signed      = Mux(sign1, 0.S - scaled.zext, scaled.zext).pad(64)
  private val rightBy     = Mux(n < 0.S, 0.U, Mux(n > 63.S, 63.U, n.asUInt(5, 0)))
  private val value2      = RegEnable(Mux(isFloat, signed, value1), io.enable(measure + 1))
  private val amount2     = RegEnable(Mux(isFloat, rightBy, amount1), io.enable(measure + 1))

  // Next stage: shift right and round, limited to a range that the zero point cannot lead back from.
  private val limited          = 12
  private val (highest, lower) = dropped(64, amount2)

  private val floor  = value2 >> amount2
  private val guard  = (value2.asUInt & highest).orR
  private val sticky = (value2.asUInt & lower).orR
  private val up     = guard && MuxLookup(io.mode, !(mode("FLOOR")))(
    Seq(
      isa.requantMode("HALF_EVEN")     -> (sticky || floor(0)),
      isa.requantMode("FLOAT32")       -> (sticky || floor(0)),
      isa.requantMode("TFLITE_DOUBLE") -> (sticky || !value2(63)),
    )
  )
  private val fits    = floor(63, limited - 1) === Fill(64 - limited + 1, floor(63))
  private val near    = Mux(fits, floor(limited - 1, 0), Cat(floor(63), Fill(limited - 1, !floor(63)))).asSInt
  private val shifted = RegEnable(near +& Cat(0.U(1.W), up).asSInt, io.enable(measure + 2))

  // Last stage: zero point and clamp.
  private def byte(position: Int): SInt = {
    val raw = packed.last(position + 7, position)
    Mux(io.unsignedOut, raw.zext, raw.asSInt)
  }
  private val moved = shifted +& byte(8)
  private val below = Mux(moved > byte(24), byte(24), moved)
  io.result := Mux(below < byte(16), byte(16), below)(8, 0).asSInt
}
