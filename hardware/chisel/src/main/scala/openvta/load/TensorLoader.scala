// SPDX-License-Identifier: Apache-2.0
package openvta.load

import chisel3._
import chisel3.util._
import openvta.mem.{BurstWindow, ReadClient}
import openvta.spec._
import openvta.util.StallPoint

/** What a [[TensorLoader]] loads.
  *
  * @param name     memory it fills, for names of modules
  * @param channel  read client number, reported with a bus error
  * @param shape    scratchpad
  * @param laneBits width of a lane, for pad values
  * @param padded   whether pads may be other than zero (micro-ops: zero only)
  * @param narrow   whether requests of 8-bit lanes, extended on the way in, are built
  */
case class LoaderSpec(name: String, channel: Int, shape: ScratchShape, laneBits: Int, padded: Boolean, narrow: Boolean)

object LoaderSpec {
  def uop(p: VtaParams): LoaderSpec =
    LoaderSpec("Uop", ReadClient.uop, ScratchShape.uop(p), p.uopElemBits, padded = false, narrow = false)
  def inp(p: VtaParams): LoaderSpec =
    LoaderSpec("Inp", ReadClient.inp, ScratchShape.inp(p), p.inpBits, padded = true, narrow = false)
  def wgt(p: VtaParams): LoaderSpec =
    LoaderSpec("Wgt", ReadClient.wgt, ScratchShape.wgt(p), p.wgtBits, padded = true, narrow = false)
  def acc(p: VtaParams): LoaderSpec =
    LoaderSpec("Acc", ReadClient.acc, ScratchShape.acc(p), p.accBits, padded = true, narrow = p.has("acc8"))
}

/** Ports of a [[TensorLoader]]. */
class TensorLoaderIO(p: VtaParams, spec: LoaderSpec) extends Bundle {

  /** LOAD instructions, in order; one is taken before the one before is complete. */
  val request = Flipped(Decoupled(new LoadRequest(p)))
  val read    = new ReadPort(p)
  val write   = Decoupled(spec.shape.write)

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

  /** Bytes of a burst whose last element was written, padding not counted; else zero. All are counted when `done` comes. */
  val bytes = Output(UInt(new BurstWindow(p).countBits.W))
}

/** Executes LOAD instructions of one memory, in order, as if one at a time.
  *
  * Throughput: a beat a cycle, within an instruction and from one to the next, while memory delivers; pads take cycles of
  * their own (`elems` elements each), in which beats wait in a small queue. 8-bit lanes with several elements in a beat take a
  * cycle for every `shape.elems` elements. Latency: 2 cycles from a request to its first command, 2 from a beat to its write.
  *
  * Bursts of up to `ahead` further instructions are asked for while beats of the first still arrive. Back-pressure: a
  * request waits while that many are in hand; beats are taken within a bounded time. Of a burst that was offered and not
  * taken when a fault or `halt` comes, the offer is withdrawn.
  */
class TensorLoader(p: VtaParams, spec: LoaderSpec) extends Module {
  override def desiredName: String = s"TensorLoader${spec.name}"

  val io = IO(new TensorLoaderIO(p, spec))

  private val ahead     = 4
  private val beatQueue = 16
  private val plain     = ElementFormat(spec.shape, spec.shape.elemBits / 8, 1)
  private val bytes     = if (spec.narrow) Seq(ElementFormat(spec.shape, p.acc8ElemBits / 8, p.accBits / 8)) else Nil
  private val choice    = new FormatChoice(plain +: bytes)

  private val generator = Module(new BurstGenerator(p, choice))
  private val writer    = Module(new LoadWriter(p, spec, choice))
  private val jobs      = Module(new Queue(new WriterJob(p), ahead))
  private val commands  = Module(new Queue(new ReadCommand(p), 2))
  private val notes     = Module(new Queue(new BurstNote(p), p.axiOutstanding + 4))
  private val beats     = Module(new Queue(new ReadBeat(p), beatQueue))
  private val stop      = io.halt || writer.io.stopped

  io.request.ready           := generator.io.request.ready && jobs.io.enq.ready && !stop
  generator.io.request.valid := io.request.valid && jobs.io.enq.ready && !stop
  generator.io.request.bits  := io.request.bits
  jobs.io.enq.valid          := io.request.valid && generator.io.request.ready && !stop
  jobs.io.enq.bits           := WriterJob(p, io.request.bits)

  commands.io.enq :<>= StallPoint(p, generator.io.command)
  notes.io.enq :<>= StallPoint(p, generator.io.note)
  beats.io.enq :<>= io.read.data
  writer.io.job :<>= StallPoint(p, jobs.io.deq)
  writer.io.note :<>= StallPoint(p, notes.io.deq)
  writer.io.beat :<>= StallPoint(p, beats.io.deq)
  writer.io.halt := io.halt

  io.read.command.valid := commands.io.deq.valid && !stop
  io.read.command.bits  := commands.io.deq.bits
  commands.io.deq.ready := io.read.command.ready && !stop

  io.write :<>= writer.io.write
  io.done       := writer.io.done
  io.error      := writer.io.error
  io.bytes      := writer.io.bytes
  io.busy       := writer.io.busy || jobs.io.deq.valid
  io.waitMemory := writer.io.waitMemory
}

/** The loader of micro-ops, to be elaborated alone. */
class TensorLoaderUop(p: VtaParams) extends TensorLoader(p, LoaderSpec.uop(p))

/** The loader of acc, to be elaborated alone. */
class TensorLoaderAcc(p: VtaParams) extends TensorLoader(p, LoaderSpec.acc(p))
