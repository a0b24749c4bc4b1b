// SPDX-License-Identifier: Apache-2.0
package openvta.mem

import chisel3._
import chisel3.util._
import openvta.spec._
import openvta.util.Bits

/** The read clients: position, AXI id and channel number are the same. */
object ReadClient {
  val insn: Int  = 0
  val uop: Int   = 1
  val inp: Int   = 2
  val wgt: Int   = 3
  val acc: Int   = 4
  val count: Int = 5
}

/** Puts the bursts of the read clients on one AXI4 read port and hands the beats back.
  *
  * Addresses: round robin among the clients that ask and have less than `axiOutstanding` bursts in flight, one a cycle; a
  * registered address is stable until it is taken (latency 1). Data: routed by id in the cycle it comes, one beat a cycle; a
  * client that is not ready holds up the channel, so clients take every beat they asked for within a bounded time.
  *
  * `flush` (a pulse or longer) begins a new epoch: beats of bursts asked for before are taken and dropped, commands are not
  * taken while it lasts. So this module needs no soft reset: reset the clients, flush here.
  */
class ReadEngine(p: VtaParams) extends Module {
  require(
    (1 << p.axiIdBits) >= ReadClient.count,
    s"${ReadClient.count} read clients need more than ${p.axiIdBits} id bits"
  )

  val io = IO(new Bundle {
    val clients = Vec(ReadClient.count, Flipped(new ReadPort(p)))
    val axi     = new AxiReadChannels(p)
    val flush   = Input(Bool())

    /** No burst is waiting or in flight. */
    val idle = Output(Bool())
  })

  private val countBits   = log2Ceil(p.axiOutstanding + 1)
  private val outstanding = RegInit(VecInit.fill(ReadClient.count)(0.U(countBits.W)))
  private val stale       = RegInit(VecInit.fill(ReadClient.count)(0.U(countBits.W)))

  private val arbiter = Module(new RRArbiter(new ReadCommand(p), ReadClient.count))
  private val address = Module(new Queue(new AxiAddress(p), 2))
  for (((client, request), count) <- io.clients.zip(arbiter.io.in).zip(outstanding)) {
    val open = count < p.axiOutstanding.U && !io.flush
    request.valid        := client.command.valid && open
    request.bits         := client.command.bits
    client.command.ready := request.ready && open
  }
  arbiter.io.out.ready     := address.io.enq.ready
  address.io.enq.valid     := arbiter.io.out.valid
  address.io.enq.bits.id   := arbiter.io.chosen
  address.io.enq.bits.addr := arbiter.io.out.bits.address
  address.io.enq.bits.len  := arbiter.io.out.bits.beats - 1.U
  address.io.enq.bits.tag  := Bits.low(0.U, p.tagBits)
  io.axi.ar :<>= address.io.deq

  private val beat   = io.axi.r
  private val select = (0 until ReadClient.count).map(id => beat.bits.id === id.U)
  private val keep   = select.zip(stale).map { case (mine, old) => mine && old === 0.U && !io.flush }
  for ((client, mine) <- io.clients.zip(keep)) {
    client.data.valid      := beat.valid && mine
    client.data.bits.data  := beat.bits.data
    client.data.bits.last  := beat.bits.last
    client.data.bits.fault := AxiResponse.isFault(beat.bits.resp)
  }
  beat.ready := io.clients.zip(keep).map { case (client, mine) => !mine || client.data.ready }.reduce(_ && _)

  for (id <- 0 until ReadClient.count) {
    val asked = arbiter.io.in(id).fire
    val ended = beat.fire && beat.bits.last && select(id)
    val after = outstanding(id) + asked - ended
    outstanding(id) := after
    when(io.flush) { stale(id) := after }.elsewhen(ended && stale(id) =/= 0.U) { stale(id) := stale(id) - 1.U }
  }
  io.idle := outstanding.map(_ === 0.U).reduce(_ && _)
}
