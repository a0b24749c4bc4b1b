// SPDX-License-Identifier: Apache-2.0
package openvta.load

import chisel3._
import chisel3.util._
import openvta.mem.BurstWindow
import openvta.spec._
import openvta.util.Bits

/** What the writer keeps of a request: rows of data, and the fill before, between and after them in elements. */
class WriterJob(p: VtaParams) extends Bundle {
  private val layout = p.layout("LOAD")
  val index          = UInt(p.indexBits.W)
  val sramBase       = UInt(layout("sram_base").width.W)
  val rows           = UInt(layout("y_size").width.W)
  val before         = UInt(WriterJob.fillBits(p).W)
  val between        = UInt((layout("x_pad_0").width + 1).W)
  val after          = UInt(WriterJob.fillBits(p).W)
  val padMin         = Bool()
  val padValue       = UInt(8.W)
  val narrow         = Bool()
  val unsigned       = Bool()
}

object WriterJob {

  /** Bits of the longest fill: all rows of one side and the pad of a row. */
  def fillBits(p: VtaParams): Int = {
    val layout = p.layout("LOAD")
    layout("x_size").width + 2 + layout("y_pad_0").width
  }

  def apply(p: VtaParams, request: LoadRequest): WriterJob = {
    val job   = Wire(new WriterJob(p))
    val row   = request.xSize +& request.xPad0 +& request.xPad1
    val empty = request.isNoop
    job.index    := request.index
    job.sramBase := request.sramBase
    job.rows     := Mux(empty, 0.U, Mux(RowMerge(request), 1.U, request.ySize))
    job.before   := Mux(empty, 0.U, request.yPad0 * row + request.xPad0)
    job.between  := request.xPad0 +& request.xPad1
    job.after    := request.yPad1 * row + request.xPad1
    job.padMin   := request.padMin
    job.padValue := request.padValue
    job.narrow   := request.narrow
    job.unsigned := request.unsigned
    job
  }
}

/** Writes beats of a [[BurstGenerator]]'s bursts, and fill, into a scratchpad.
  *
  * Throughput: one write a cycle without a bubble between bursts, rows, fills and jobs. A write takes a whole beat, but for
  * 8-bit lanes with several elements in a beat, where it takes as many as the scratchpad can write. Latency 1.
  * Back-pressure: takes a beat in the cycle in which the last of it is written; a write waits, unchanged, until it is taken.
  *
  * On a fault it stops for good and drops every beat.
  */
class LoadWriter(p: VtaParams, spec: LoaderSpec, choice: FormatChoice) extends Module {
  override def desiredName: String = s"LoadWriter${spec.name}"

  val io = IO(new Bundle {
    val job        = Flipped(Decoupled(new WriterJob(p)))
    val note       = Flipped(Decoupled(new BurstNote(p)))
    val beat       = Flipped(Decoupled(new ReadBeat(p)))
    val halt       = Input(Bool())
    val write      = Decoupled(spec.shape.write)
    val done       = Output(new Retire(p))
    val error      = Output(Valid(new UnitError(p)))
    val stopped    = Output(Bool())
    val busy       = Output(Bool())
    val waitMemory = Output(Bool())
    val bytes      = Output(UInt(new BurstWindow(p).countBits.W))
  })

  private val isa       = new Isa(p)
  private val shape     = spec.shape
  private val window    = new BurstWindow(p)
  private val beatBytes = p.axiDataBytes
  private val stepBits  = log2Ceil(beatBytes + 1)
  private val elemBits  = log2Ceil(shape.elems + 1)
  private val beatsMax  = choice.formats.map(_.beats).max

  private val faulted = RegInit(false.B)
  private val stop    = faulted || io.halt
  private val held    = io.write.valid && !io.write.ready

  // The job: a fill is written while `fill` is not zero, else a row of data while `rows` is not zero.
  private val active = RegInit(false.B)
  private val job    = Reg(new WriterJob(p))
  private val fill   = Reg(UInt(WriterJob.fillBits(p).W))
  private val rows   = Reg(UInt(job.rows.getWidth.W))
  private val index  = Reg(UInt((job.sramBase.getWidth + 1).W))
  private val part   = if (beatsMax > 1) RegInit(0.U(log2Ceil(beatsMax).W)) else 0.U(1.W)

  // The burst: the note of the oldest, and how far it is written.
  private val started = RegInit(false.B)
  private val left    = Reg(UInt(window.countBits.W))
  private val lane    = Reg(UInt(log2Ceil(beatBytes).W))
  private val beats   = Reg(UInt(log2Ceil(p.axiBurstBeats).W))
  private val nowLeft = Mux(started, left, io.note.bits.count)
  private val nowLane = Mux(started, lane, window.lane(io.note.bits.address))
  private val nowBeat = Mux(started, beats, 0.U)

  private val filling  = active && fill =/= 0.U
  private val loading  = active && fill === 0.U && rows =/= 0.U
  private val step     = loading && io.note.valid && io.beat.valid && !stop && !held
  private val limit    = choice(job.narrow)(format => format.stepBytes.U(stepBits.W))
  private val inBeat   = beatBytes.U(stepBits.W) - nowLane
  private val reach    = Mux(inBeat < limit, inBeat, limit)
  private val ends     = nowLeft <= reach
  private val take     = Mux(ends, nowLeft, reach)(stepBits - 1, 0)
  private val beatDone = ends || take === inBeat
  private val rowEnd   = step && ends && io.note.bits.rowEnd

  // Elements: `touched` lie in this write, `passed` are complete with it.
  private val lastPart = choice(job.narrow)(format => if (format.wide) part === (format.beats - 1).U else true.B)
  private val inStep   =
    choice(job.narrow)(format => if (format.wide) 1.U(elemBits.W) else (take >> format.elemLog).pad(elemBits))
  private val inFill   = Mux(fill < shape.elems.U, fill, shape.elems.U)(elemBits - 1, 0)
  private val touched  = Mux(filling, inFill, inStep)
  private val passed   = Mux(filling || lastPart, touched, 0.U)
  private val moves    = filling && !stop && !held || step
  private val beyond   = moves && index +& touched > shape.depth.U
  private val busFault = step && io.beat.bits.fault
  private val fault    = beyond || busFault

  private val fillEnd = filling && fill <= shape.elems.U
  private val lastRow = rows === 1.U
  private val nextGap = Mux(lastRow, job.after, job.between)
  private val done    = active && !stop && !held && !fault && Mux(
    filling,
    fillEnd && rows === 0.U,
    rows === 0.U || rowEnd && lastRow && nextGap === 0.U,
  )

  when(moves) { index := index + passed }
  when(filling && !stop && !held) { fill := fill - inFill }
  when(step) {
    started                := !ends
    left                   := nowLeft - take
    lane                   := (nowLane + take)(lane.getWidth - 1, 0)
    beats                  := nowBeat + beatDone
    if (beatsMax > 1) part := Mux(lastPart, 0.U, part + 1.U)
  }
  when(rowEnd) {
    rows := rows - 1.U
    fill := nextGap
  }
  when(done) { active := false.B }
  io.job.ready := !stop && !held && (!active || done)
  when(io.job.fire) {
    active := true.B
    job    := io.job.bits
    fill   := io.job.bits.before
    rows   := io.job.bits.rows
    index  := io.job.bits.sramBase
  }
  when(fault) { faulted := true.B }

  io.note.ready := step && ends
  io.beat.ready := stop || step && beatDone

  // The write, registered.
  private val lane8    = job.padValue
  private val fillLane =
    if (!spec.padded) 0.U(spec.laneBits.W)
    else {
      val value =
        if (spec.laneBits <= 8) lane8(spec.laneBits - 1, 0)
        else Cat(Fill(spec.laneBits - 8, lane8(7) && !job.unsigned), lane8)
      Mux(job.padMin, (BigInt(1) << (spec.laneBits - 1)).U(spec.laneBits.W), value)
    }
  private val fillData = Fill(shape.elems * shape.elemBits / spec.laneBits, fillLane)
  private val loadData = choice(job.narrow) { format =>
    val beat = io.beat.bits.data
    if (format.wide) Fill(shape.parts / format.partsPerBeat, format.extend(beat, job.unsigned))
    else {
      val shift   = log2Ceil(format.elemBytes)
      val slots   = beatBytes / format.elemBytes
      val aligned = if (slots == 1) beat else (beat >> Cat(nowLane >> shift, 0.U((shift + 3).W)))(shape.beatBits - 1, 0)
      format.extend(aligned(format.stepBytes * 8 - 1, 0), job.unsigned)
    }
  }
  private val loadParts = choice(job.narrow) { format =>
    if (format.wide) {
      val count = shape.parts / format.partsPerBeat
      Cat((0 until count).map(k => Fill(format.partsPerBeat, part === k.U)).reverse)
    } else Fill(shape.parts, 1.U(1.W))
  }
  private val ok    = moves && !fault
  private val write = Wire(shape.write)
  write.index    := index(shape.indexBits - 1, 0)
  write.elemMask := VecInit((0 until shape.elems).map(_.U < touched)).asUInt
  write.partMask := Mux(filling, Fill(shape.parts, 1.U(1.W)), loadParts)
  write.data     := Mux(filling, fillData, loadData)
  write.tag      := Bits.low(job.index, p.tagBits)
  private val bytes = Mux(step && ends && !fault, io.note.bits.count, 0.U)
  io.write.valid := RegEnable(ok, false.B, !held)
  io.write.bits  := RegEnable(write, ok)
  io.done.valid  := RegEnable(done, false.B, !held) && !held
  io.done.index  := RegEnable(job.index, done)
  io.bytes       := Mux(held, 0.U, RegEnable(bytes, 0.U, !held))

  private val error = Wire(new UnitError(p))
  error.cause    := Mux(beyond, isa.cause("INDEX_RANGE"), isa.cause("BUS_READ"))
  error.index    := job.index
  error.channel  := Mux(beyond, 0.U, spec.channel.U)
  error.address  := Mux(beyond, 0.U, window.beatAddress(io.note.bits.address) + (nowBeat << log2Ceil(beatBytes)))
  io.error.valid := RegNext(fault && !faulted, false.B)
  io.error.bits  := RegEnable(error, fault)
  io.stopped     := faulted
  io.busy        := active
  io.waitMemory  := loading && !stop && !io.beat.valid
}
