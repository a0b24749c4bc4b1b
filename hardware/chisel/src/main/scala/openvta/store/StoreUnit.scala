// SPDX-License-Identifier: Apache-2.0
package openvta.store

import chisel3._
import chisel3.util._
import openvta.mem.{AxiAddress, AxiResponse, AxiWriteChannels, ScratchRead}
import openvta.spec._
import openvta.util.{Bits, StallPoint}

/** Ports of the [[StoreUnit]]. */
class StoreUnitIO(p: VtaParams) extends Bundle {
  val insn           = Flipped(Decoupled(new QueuedInsn(p)))
  val popFromCompute = new TokenPop
  val pushToCompute  = new TokenPush

  /** Byte address of the out memory type, aligned to an element. */
  val baseOut  = Input(UInt(p.axiAddrBits.W))
  val outRead  = Flipped(new ScratchRead(p.accIndexBits, ScratchShape.out(p).elems * p.outElemBits))
  val axiWrite = new AxiWriteChannels(p)
  val retire   = Output(new Retire(p))
  val error    = Output(Valid(new UnitError(p)))

  /** Take no instruction, ask for no burst; finish the bursts asked for. Held until reset. */
  val halt      = Input(Bool())
  val busy      = Output(Bool())
  val waitToken = Output(Bool())

  /** The bus does not take an address or data, or responses are missing and nothing else is left to do. */
  val waitMemory = Output(Bool())

  /** Tokens waited for: bit 0 of the compute unit, bit 1 never. */
  val waitTokens = Output(UInt(2.W))

  /** Bytes of the burst asked for in this cycle; else zero. */
  val outBytes = Output(UInt(13.W))
}

object StoreUnit {

  /** Channel number of the write channel in the ERROR register. */
  val channel: Int = 8
}

/** Executes STORE instructions: out elements to strided rows in device memory.
  *
  * Throughput: one beat a cycle, also across rows and instructions; up to `axiOutstanding` bursts wait for their response.
  * Latency: four cycles from the instruction to its first address, six to its first beat. Back-pressure: addresses and beats are
  * held unchanged until they are taken; data is read only when a beat has room. Rows that follow each other in memory are one row.
  * An instruction retires, and pushes, when the response of its last burst is in; its tokens are taken when it starts, which may be
  * while earlier ones wait for responses. Elements beyond the depth are found before anything of the instruction is written.
  */
class StoreUnit(p: VtaParams) extends Module {
  private val shape  = new StoreShape(p)
  private val isa    = new Isa(p)
  private val layout = p.layout("STORE")

  val io = IO(new StoreUnitIO(p))

  // An instruction waits here for its token.
  private val rangeFault                = RegInit(false.B)
  private val busFault                  = RegInit(false.B)
  private val stop                      = io.halt || rangeFault || busFault
  private val waiting                   = Module(new Queue(new QueuedInsn(p), 1, pipe = true))
  private val word                      = waiting.io.deq.bits.word
  private def field(name: String): UInt = Isa.field(word, layout, name)
  waiting.io.enq :<>= io.insn

  private val lacks = field("pop_prev").asBool && !io.popFromCompute.ready
  private val task  = Module(new Queue(new StoreTask(p), 1, pipe = true))
  private val goes  = waiting.io.deq.valid && !lacks && !stop

  // Taken apart and checked.
  private val (xSize, ySize) = (field("x_size"), field("y_size"))
  private val total          = xSize * ySize
  private val noop           = xSize === 0.U || ySize === 0.U
  private val outside        = !noop && field("sram_base") +& total > p.accDepth.U
  private val merged         = field("x_stride") === xSize
  private val base           = io.baseOut + (field("dram_base") << shape.elemByteBits)
  private val row            = Mux(merged, total, xSize)
  task.io.enq.valid         := goes && !outside
  task.io.enq.bits.index    := waiting.io.deq.bits.index
  task.io.enq.bits.push     := field("push_prev")
  task.io.enq.bits.noop     := noop
  task.io.enq.bits.address  := base >> shape.unitByteBits
  task.io.enq.bits.stride   := field("x_stride") << shape.partBits
  task.io.enq.bits.rowUnits := Bits.low(row << shape.partBits, shape.countBits)
  task.io.enq.bits.rows     := Mux(merged, 1.U, ySize)
  task.io.enq.bits.source   := Bits.low(field("sram_base") << shape.partBits, shape.sourceBits)
  waiting.io.deq.ready      := task.io.enq.ready && goes && !outside
  io.popFromCompute.pop     := waiting.io.deq.fire && field("pop_prev").asBool

  private val badRange = goes && outside
  when(badRange) { rangeFault := true.B }

  // A burst goes to the address channel, to the reader and to the list of responses together.
  private val planner = Module(new StorePlanner(p))
  private val reader  = Module(new StoreReader(p))
  private val pending = Module(new Queue(new StoreBurst(p), math.max(2, p.axiOutstanding)))
  private val address = Module(new Queue(new AxiAddress(p), 2))
  private val plan    = Module(new Queue(new StoreBurst(p), math.max(2, p.axiOutstanding)))
  planner.io.task :<>= StallPoint(p, task.io.deq)
  planner.io.halt := io.halt || busFault

  private val burst = planner.io.burst
  private val free  = pending.io.enq.ready && (burst.bits.empty || (address.io.enq.ready && plan.io.enq.ready))
  burst.ready              := free
  pending.io.enq.valid     := burst.fire
  pending.io.enq.bits      := burst.bits
  plan.io.enq.valid        := burst.fire && !burst.bits.empty
  plan.io.enq.bits         := burst.bits
  address.io.enq.valid     := burst.fire && !burst.bits.empty
  address.io.enq.bits.id   := 0.U
  address.io.enq.bits.addr := burst.bits.address
  address.io.enq.bits.len  := burst.bits.beats - 1.U
  address.io.enq.bits.tag  := Bits.low(burst.bits.index, p.tagBits)
  io.axiWrite.aw :<>= address.io.deq
  reader.io.burst :<>= StallPoint(p, plan.io.deq)
  io.axiWrite.w :<>= reader.io.beat
  reader.io.outRead :<>= io.outRead

  // Responses, in order.
  private val head = pending.io.deq
  private val b    = io.axiWrite.b
  b.ready    := head.valid && !head.bits.empty
  head.ready := head.bits.empty || b.valid
  private val bad  = b.fire && AxiResponse.isFault(b.bits.resp) && !busFault
  private val done = head.fire && head.bits.last && !bad && !busFault
  when(bad) { busFault := true.B }
  io.retire.valid       := done
  io.retire.index       := head.bits.index
  io.pushToCompute.push := done && head.bits.push

  io.error.valid        := bad || badRange
  io.error.bits.cause   := Mux(bad, isa.cause("BUS_WRITE"), isa.cause("INDEX_RANGE"))
  io.error.bits.index   := Mux(bad, head.bits.index, waiting.io.deq.bits.index)
  io.error.bits.channel := Mux(bad, StoreUnit.channel.U, 0.U)
  io.error.bits.address := Mux(bad, head.bits.address, 0.U)

  io.busy       := waiting.io.deq.valid || task.io.deq.valid || planner.io.busy || head.valid
  io.waitToken  := waiting.io.deq.valid && lacks && !stop
  io.waitTokens := io.waitToken
  private val sending = task.io.deq.valid || planner.io.busy || plan.io.deq.valid || reader.io.busy
  io.waitMemory := (io.axiWrite.aw.valid && !io.axiWrite.aw.ready) || (io.axiWrite.w.valid && !io.axiWrite.w.ready) ||
    (head.valid && !sending && !io.axiWrite.w.valid)
  io.outBytes := Mux(burst.fire && !burst.bits.empty, burst.bits.units << shape.unitByteBits, 0.U)
}
