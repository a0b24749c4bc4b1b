// SPDX-License-Identifier: Apache-2.0
package openvta.load

import chisel3._
import chisel3.util._
import openvta.spec._

/** What a [[TensorLoader]] loads.
  *
  * @param name     memory it fills, for names of modules
  * @param channel  read client number, reported with a bus error
  * @param shape    scratchpad
  * @param laneBits width of a lane, for pad values
  * @param signed   whether a lane may be padded at all with a value (micro-ops: zero only)
  * @param narrow   whether requests of 8-bit lanes, extended on the way in, are built
  */
case class LoaderSpec(name: String, channel: Int, shape: ScratchShape, laneBits: Int, signed: Boolean, narrow: Boolean)

object LoaderSpec {
  def uop(p: VtaParams): LoaderSpec = LoaderSpec("Uop", 1, ScratchShape.uop(p), p.uopElemBits, signed = false, narrow = false)
  def inp(p: VtaParams): LoaderSpec = LoaderSpec("Inp", 2, ScratchShape.inp(p), p.inpBits, signed = true, narrow = false)
  def wgt(p: VtaParams): LoaderSpec = LoaderSpec("Wgt", 3, ScratchShape.wgt(p), p.wgtBits, signed = true, narrow = false)
  def acc(p: VtaParams): LoaderSpec = LoaderSpec("Acc", 4, ScratchShape.acc(p), p.accBits, signed = true, narrow = p.has("acc8"))
}

/** Ports of a [[TensorLoader]]. */
class TensorLoaderIO(p: VtaParams, spec: LoaderSpec) extends Bundle {

  /** LOAD instructions, in order; one is taken before the one before is complete. */
  val request = Flipped(Decoupled(new LoadRequest(p)))
  val read    = new ReadPort(p)
  val write   = Output(Valid(spec.shape.write))

  /** The last write of an instruction was made in an earlier cycle, or in this one; in order. */
  val done = Output(new Retire(p))

  /** One pulse, with the first fault. No instruction is completed afterwards; beats in flight are taken and dropped. */
  val error = Output(Valid(new UnitError(p)))

  /** Take no request, ask for no burst; drain. Held until reset. */
  val halt = Input(Bool())

  /** A request is being worked on. */
  val busy = Output(Bool())

  /** Nothing can be written until read data comes. */
  val waitMemory = Output(Bool())

  /** Bytes read, padding not counted, of the instruction that is done in this cycle; else zero. */
  val bytes = Output(UInt(45.W))
}

/** Executes LOAD instructions of one memory. */
class TensorLoader(p: VtaParams, spec: LoaderSpec) extends Module {
  val io = IO(new TensorLoaderIO(p, spec))
}
