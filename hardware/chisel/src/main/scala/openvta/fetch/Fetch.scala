// SPDX-License-Identifier: Apache-2.0
package openvta.fetch

import chisel3._
import chisel3.util._
import openvta.spec._
import openvta.util.StallPoint

/** Reads the instruction stream, checks every word and sends it to the queue of its unit.
  *
  * Throughput: one instruction a cycle. Latency: bus latency + 5 cycles. Back-pressure: an instruction whose queue is full
  * waits, and with it everything behind it; reading ahead goes on while the buffer has room.
  * The first word at fault raises `error` and nothing is sent afterwards. `halt` stops asking for bursts and sending.
  */
class Fetch(p: VtaParams) extends Module {
  private val isa   = new Isa(p)
  private val names = Seq("LOAD", "COMPUTE", "STORE")

  val io = IO(new Bundle {
    val start = Input(Bool())
    val base  = Input(UInt(p.axiAddrBits.W))
    val count = Input(UInt(p.indexBits.W))
    val halt  = Input(Bool())
    val read  = new ReadPort(p)

    val load    = Decoupled(new QueuedInsn(p))
    val compute = Decoupled(new QueuedInsn(p))
    val store   = Decoupled(new QueuedInsn(p))
    val error   = Output(Valid(new UnitError(p)))

    /** Instructions are left to read or to send. */
    val busy = Output(Bool())

    /** The instruction at hand waits for room in its queue. */
    val stallQueue = Output(Bool())

    /** An instruction was read (checked, and sent or refused). */
    val insnRead = Output(Bool())

    /** The instruction at hand, or the next to come. */
    val nextIndex = Output(UInt(p.indexBits.W))
  })

  private class Checked extends Bundle {
    val fetched = new FetchedWord(p)
    val cause   = UInt(8.W)
    val unit    = UInt(4.W)
  }

  private val reader  = Module(new InsnReader(p))
  private val decoder = Module(new Decoder(p))
  private val empty   = io.start && io.count === 0.U
  reader.io.start := io.start && io.count =/= 0.U
  reader.io.base  := io.base
  reader.io.count := io.count
  reader.io.halt  := io.halt
  io.read.command :<>= reader.io.read.command
  reader.io.read.data :<>= io.read.data

  private val faulted = RegInit(false.B)
  private val checked = Module(new Queue(new Checked, 1, pipe = true))
  private val word    = StallPoint(p, reader.io.word)
  decoder.io.word             := word.bits.word
  decoder.io.last             := word.bits.last
  checked.io.enq.valid        := word.valid
  checked.io.enq.bits.fetched := word.bits
  checked.io.enq.bits.cause   := Mux(word.bits.fault, isa.cause("BUS_READ"), decoder.io.cause)
  checked.io.enq.bits.unit    := decoder.io.unit
  word.ready                  := checked.io.enq.ready

  private val head   = checked.io.deq
  private val active = head.valid && !faulted && !io.halt
  private val legal  = head.bits.cause === isa.cause("NONE")
  private val queues = names.map { name =>
    val queue = Module(new Queue(new QueuedInsn(p), p.queueDepth))
    queue.suggestName(s"${name.toLowerCase}Queue")
    queue.io.enq.valid      := active && legal && head.bits.unit === isa.unit(name)
    queue.io.enq.bits.word  := head.bits.fetched.word
    queue.io.enq.bits.index := head.bits.fetched.index
    queue
  }
  private val sent = queues.map(_.io.enq.fire).reduce(_ || _)
  private val bad  = active && !legal
  head.ready := sent || bad
  io.load :<>= queues(0).io.deq
  io.compute :<>= queues(1).io.deq
  io.store :<>= queues(2).io.deq

  when(bad || empty) { faulted := true.B }
  io.error.valid        := bad || empty
  io.error.bits.cause   := Mux(empty, isa.cause("FINISH_ORDER"), head.bits.cause)
  io.error.bits.index   := Mux(empty, 0.U, head.bits.fetched.index)
  io.error.bits.channel := 0.U
  io.error.bits.address := Mux(bad && head.bits.fetched.fault, head.bits.fetched.address, 0.U)
  io.busy               := reader.io.busy || head.valid
  io.stallQueue         := active && legal && !sent
  io.insnRead           := head.fire
  io.nextIndex          := Mux(head.valid, head.bits.fetched.index, word.bits.index)
}
