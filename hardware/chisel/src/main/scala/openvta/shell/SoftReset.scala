// SPDX-License-Identifier: Apache-2.0
package openvta.shell

import chisel3._
import chisel3.util._

/** Soft reset: halts the core, waits for what is outstanding on the bus, then resets the core.
  *
  * The wait is over when nothing has been outstanding for `settle` cycles, or when no handshake was seen for `bound` cycles
  * (`fallback` where the bound is zero); the bus engines drop what comes later. `busy` from the cycle after `request` to the end.
  */
class SoftReset(fallback: BigInt) extends Module {
  private val settle      = 8
  private val resetCycles = 4

  val io = IO(new Bundle {
    val request  = Input(Bool())
    val bound    = Input(UInt(32.W))
    val pending  = Input(Bool())
    val progress = Input(Bool())
    val halt     = Output(Bool())
    val reset    = Output(Bool())
    val busy     = Output(Bool())
  })

  private object State extends ChiselEnum {
    val idle, drain, reset = Value
  }
  private val state   = RegInit(State.idle)
  private val stalled = Reg(UInt(32.W))
  private val calm    = Reg(UInt(log2Ceil(settle + 1).W))
  private val limit   = Mux(io.bound === 0.U, fallback.U(32.W), io.bound)
  private val left    = Reg(UInt(log2Ceil(resetCycles).W))
  private val reset_  = RegInit(false.B)

  switch(state) {
    is(State.idle) {
      stalled := 0.U
      calm    := 0.U
      when(io.request) { state := State.drain }
    }
    is(State.drain) {
      stalled := Mux(io.progress, 0.U, stalled + 1.U)
      calm    := Mux(io.pending, 0.U, calm + 1.U)
      left    := (resetCycles - 1).U
      when(calm === (settle - 1).U || stalled >= limit) {
        state  := State.reset
        reset_ := true.B
      }
    }
    is(State.reset) {
      left := left - 1.U
      when(left === 0.U) {
        state  := State.idle
        reset_ := false.B
      }
    }
  }
  io.halt  := state === State.drain
  io.reset := reset_
  io.busy  := state =/= State.idle
}
