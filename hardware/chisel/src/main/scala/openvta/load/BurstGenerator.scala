// SPDX-License-Identifier: Apache-2.0
package openvta.load

import chisel3._
import chisel3.util._
import openvta.mem.BurstWindow
import openvta.spec._

/** What the writer must know of a burst: `count` bytes from `address` on; the last of them may end a row. */
class BurstNote(p: VtaParams) extends Bundle {
  val address = UInt(p.axiAddrBits.W)
  val count   = UInt(new BurstWindow(p).countBits.W)
  val rowEnd  = Bool()
}

object RowMerge {

  /** Whether the rows of a request follow each other without a gap, in memory and in the scratchpad: they are one row. */
  def apply(request: LoadRequest): Bool =
    request.xStride === request.xSize && request.xPad0 === 0.U && request.xPad1 === 0.U
}

/** Cuts LOAD requests into bursts, row after row; rows that follow each other without a gap are cut as one.
  *
  * Throughput: a burst a cycle, also across requests; one cycle more for every row that is merged into a burst. Latency 1.
  * Back-pressure: works on one request until its last burst is taken on both outputs (each burst goes to both at once).
  */
class BurstGenerator(p: VtaParams, choice: FormatChoice) extends Module {
  val io = IO(new Bundle {
    val request = Flipped(Decoupled(new LoadRequest(p)))
    val command = Decoupled(new ReadCommand(p))
    val note    = Decoupled(new BurstNote(p))
  })

  private val window  = new BurstWindow(p)
  private val rowBits = io.request.bits.xSize.getWidth + choice.elemLogMax
  private val active  = RegInit(false.B)
  private val address = Reg(UInt(p.axiAddrBits.W))
  private val row     = Reg(UInt(p.axiAddrBits.W))
  private val left    = Reg(UInt((rowBits + 1).W))
  private val rows    = Reg(UInt(io.request.bits.ySize.getWidth.W))
  private val width   = Reg(UInt(rowBits.W))
  private val stride  = Reg(UInt(rowBits.W))
  private val merged  = Reg(Bool())

  private val room    = window.bytesLeft(address)
  private val further = rows =/= 0.U
  private val extend  = active && merged && further && left < room
  private val ends    = left <= room
  private val count   = Mux(ends, left, room)(window.countBits - 1, 0)
  private val rowEnd  = ends && !(merged && further)
  private val offer   = active && !extend
  private val goes    = offer && io.command.ready && io.note.ready

  io.command.valid        := offer && io.note.ready
  io.command.bits.address := window.beatAddress(address)
  io.command.bits.beats   := window.beats(address, count)
  io.note.valid           := offer && io.command.ready
  io.note.bits.address    := address
  io.note.bits.count      := count
  io.note.bits.rowEnd     := rowEnd

  private val finished = goes && rowEnd && !further
  when(extend) {
    left := left + width
    rows := rows - 1.U
  }
  when(goes) {
    address := address + count
    left    := left - count
    when(rowEnd) {
      address := row + stride
      row     := row + stride
      left    := width
      rows    := rows - 1.U
    }
  }

  private val next                     = io.request.bits
  private def bytes(count: UInt): UInt =
    choice(next.narrow)(format => (count << format.elemLog).pad(count.getWidth + choice.elemLogMax))
  private val first = next.base + bytes(next.dramBase)
  // A base that is not aligned to an element (or a beat, if that is less) is taken as if it were.
  private val start = choice(next.narrow) { format =>
    val low = log2Ceil(math.min(format.elemBytes, format.beatBytes))
    if (low == 0) first else Cat(first(p.axiAddrBits - 1, low), 0.U(low.W))
  }
  io.request.ready := !active || finished
  when(finished) { active := false.B }
  when(io.request.fire) {
    active  := !next.isNoop
    address := start
    row     := start
    width   := bytes(next.xSize)
    left    := bytes(next.xSize)
    stride  := bytes(next.xStride)
    rows    := next.ySize - 1.U
    merged  := RowMerge(next)
  }
}
