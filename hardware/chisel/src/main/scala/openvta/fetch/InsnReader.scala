// SPDX-License-Identifier: Apache-2.0
package openvta.fetch

import chisel3._
import chisel3.util._
import openvta.spec._
import openvta.util.Bits

/** An instruction word as it came from memory. */
class FetchedWord(p: VtaParams) extends Bundle {
  val word  = UInt(p.insnBits.W)
  val index = UInt(p.indexBits.W)
  val last  = Bool()

  /** A beat of the word was a bus error; `address` is that of the beat. */
  val fault   = Bool()
  val address = UInt(p.axiAddrBits.W)
}

/** Reads an instruction stream ahead of its use.
  *
  * Throughput: one word a cycle out of the buffer; on the bus one beat a cycle. Latency: bus latency + 3 cycles.
  * Back-pressure: a burst is asked for only when the buffer has room for all of it, so read data never waits.
  * `start` begins a stream of `count` words (at least one) at `base`, of which the low four bits are not looked at.
  */
class InsnReader(p: VtaParams) extends Module {
  val io = IO(new Bundle {
    val start = Input(Bool())
    val base  = Input(UInt(p.axiAddrBits.W))
    val count = Input(UInt(p.indexBits.W))
    val halt  = Input(Bool())
    val read  = new ReadPort(p)
    val word  = Decoupled(new FetchedWord(p))
    val busy  = Output(Bool())
  })

  // A line of the buffer is a word or a beat, whichever is wider.
  private val wordBytes    = p.insnBits / 8
  private val lineBits     = math.max(p.insnBits, p.axiDataBits)
  private val beatsPerLine = lineBits / p.axiDataBits
  private val wordsPerLine = lineBits / p.insnBits
  private val lines        = math.max(4, InsnReader.bufferBytes * 8 / lineBits)
  private val bufferBeats  = lines * beatsPerLine
  private val burstBeats   = math.min(p.axiBurstBeats, bufferBeats / 2)
  private val beatShift    = log2Ceil(p.axiDataBytes)
  private val wordShift    = log2Ceil(wordBytes)
  private val selectBits   = log2Ceil(wordsPerLine)
  private val leftBits     = p.indexBits + log2Ceil(beatsPerLine) + 1

  private class Line extends Bundle {
    val data  = UInt(lineBits.W)
    val fault = Bool()
    val beat  = UInt(log2Ceil(beatsPerLine).W)
  }

  // Asking for bursts
  private val beatAddress = Reg(UInt((p.axiAddrBits - beatShift).W))
  private val beatsLeft   = RegInit(0.U(leftBits.W))
  private val reserved    = RegInit(0.U(log2Ceil(bufferBeats + 1).W))
  private val asked       = RegInit(false.B)
  private val command     = Reg(new ReadCommand(p))
  private val lineTaken   = Wire(Bool())

  private val toWindow = burstBeats.U - Bits.low(beatAddress, log2Ceil(burstBeats))
  private val beats    = Mux(beatsLeft < toWindow, beatsLeft, toWindow)(log2Ceil(burstBeats + 1) - 1, 0)
  private val ask      =
    beatsLeft =/= 0.U && !io.halt && (!asked || io.read.command.ready) && reserved +& beats <= bufferBeats.U

  when(ask) {
    asked           := true.B
    command.address := beatAddress << beatShift
    command.beats   := beats
    beatAddress     := beatAddress + beats
    beatsLeft       := beatsLeft - beats
  }.elsewhen(io.read.command.ready) {
    asked := false.B
  }
  reserved              := reserved + Mux(ask, beats, 0.U) - Mux(lineTaken, beatsPerLine.U, 0.U)
  io.read.command.valid := asked
  io.read.command.bits  := command

  // From beats to lines
  private val buffer = Module(new Queue(new Line, lines))
  private val beat   = io.read.data.bits
  io.read.data.ready := true.B
  if (beatsPerLine == 1) {
    buffer.io.enq.valid      := io.read.data.valid
    buffer.io.enq.bits.data  := beat.data
    buffer.io.enq.bits.fault := beat.fault
    buffer.io.enq.bits.beat  := 0.U(0.W)
  } else {
    val number    = RegInit(0.U(log2Ceil(beatsPerLine).W))
    val earlier   = Reg(Vec(beatsPerLine - 1, UInt(p.axiDataBits.W)))
    val bad       = RegInit(false.B)
    val badNumber = Reg(UInt(log2Ceil(beatsPerLine).W))
    val ends      = number === (beatsPerLine - 1).U
    when(io.read.data.valid) {
      number := number + 1.U
      bad    := !ends && (bad || beat.fault)
      when(!bad && beat.fault) { badNumber := number }
      when(!ends) {
        earlier.zipWithIndex.foreach { case (place, k) => when(number === k.U) { place := beat.data } }
      }
    }
    buffer.io.enq.valid      := io.read.data.valid && ends
    buffer.io.enq.bits.data  := Cat(beat.data +: earlier.reverse)
    buffer.io.enq.bits.fault := bad || beat.fault
    buffer.io.enq.bits.beat  := Mux(bad, badNumber, number)
  }

  // From lines to words
  private val line      = buffer.io.deq
  private val wordIndex = Reg(UInt(p.indexBits.W))
  private val select    = if (selectBits == 0) 0.U else Reg(UInt(selectBits.W))
  private val wordsLeft = RegInit(0.U(p.indexBits.W))
  private val isLast    = wordsLeft === 1.U
  private val words = VecInit((0 until wordsPerLine).map(k => line.bits.data((k + 1) * p.insnBits - 1, k * p.insnBits)))
  private val lineEnd = if (selectBits == 0) true.B else select.andR

  io.word.valid        := line.valid && wordsLeft =/= 0.U
  io.word.bits.word    := (if (selectBits == 0) words(0) else words(select))
  io.word.bits.index   := wordIndex
  io.word.bits.last    := isLast
  io.word.bits.fault   := line.bits.fault
  io.word.bits.address := ((io.base >> wordShift) +% wordIndex) ## 0.U(wordShift.W) |
    (line.bits.beat << beatShift).asUInt
  lineTaken  := io.word.fire && (lineEnd || isLast)
  line.ready := lineTaken
  when(io.word.fire) {
    wordIndex                  := wordIndex + 1.U
    wordsLeft                  := wordsLeft - 1.U
    if (selectBits > 0) select := select + 1.U
  }

  when(io.start) {
    val first = io.base >> wordShift
    beatAddress := io.base >> beatShift
    beatsLeft   := (if (selectBits == 0) io.count << log2Ceil(beatsPerLine)
                  else (io.count +& Bits.low(first, selectBits) +& (wordsPerLine - 1).U) >> selectBits)
    wordIndex                  := 0.U
    wordsLeft                  := io.count
    if (selectBits > 0) select := Bits.low(first, selectBits)
  }
  io.busy := wordsLeft =/= 0.U || reserved =/= 0.U
}

object InsnReader {

  /** Bytes of instructions that are read ahead. */
  val bufferBytes: Int = 1024
}
