// SPDX-License-Identifier: Apache-2.0
package openvta.mem

import chisel3._
import chisel3.util._
import openvta.spec._

/** Read port of a memory as the memory sees it: `data` is there in the cycle after `enable`, and only then. */
class ScratchRead(indexBits: Int, dataBits: Int) extends Bundle {
  val enable = Input(Bool())
  val index  = Input(UInt(indexBits.W))
  val data   = Output(UInt(dataBits.W))
}

/** A scratchpad: one write port that takes a bus beat a cycle, and read ports.
  *
  * Element `i` is in bank `i % banks`, row `i / banks`; there are as many banks as a write (or a read) touches elements, so
  * that consecutive elements are taken in one cycle wherever they start. Elements wider than a beat are one bank with a
  * write enable per part.
  *
  * Throughput: one write and one read per port every cycle; read latency 1; no back-pressure. A read of what is written in
  * the same cycle gives the new value with `writeFirst`, anything without. Elements at or beyond the depth are not kept:
  * the user of the write port must not set their mask bits. Contents survive reset.
  *
  * @param shape      depth, element width and how a beat cuts it
  * @param readPorts  read ports; each beyond the first costs a copy of the memory in block RAM
  * @param readElems  consecutive elements a read returns, `index` in the low bits: 1 or `shape.elems`
  * @param writeFirst bypass from the write port to the read ports: a comparator and a multiplexer per bank and read port
  */
class Scratchpad(shape: ScratchShape, readPorts: Int = 1, readElems: Int = 1, writeFirst: Boolean = false)
    extends Module {
  require(readPorts >= 1, s"a scratchpad needs a read port, got $readPorts")
  require(readElems == 1 || readElems == shape.elems, s"a read returns 1 or ${shape.elems} elements, not $readElems")

  override def desiredName: String = {
    val base = s"Scratchpad_${shape.depth}x${shape.elemBits}_w${shape.elems}p${shape.parts}_r${readPorts}x$readElems"
    if (writeFirst) s"${base}_wf" else base
  }

  val io = IO(new Bundle {
    val write = Flipped(Valid(shape.write))
    val read  = Vec(readPorts, new ScratchRead(shape.indexBits, readElems * shape.elemBits))
  })

  private val banks    = shape.elems
  private val bankBits = log2Ceil(banks)
  private val rows     = math.max(2, shape.depth / banks)
  private val rowBits  = log2Ceil(rows)
  private val partBits = shape.elemBits / shape.parts

  /** Row of the element that bank `bank` holds among those from `index` on. */
  private def rowOf(index: UInt, bank: Int): UInt = {
    val wide = index.pad(bankBits + rowBits)
    val row  = wide(bankBits + rowBits - 1, bankBits)
    if (bank == banks - 1 || banks == 1) row else row + (bank.U < wide(bankBits - 1, 0))
  }

  /** First bank of the elements from `index` on. */
  private def firstBank(index: UInt): UInt = index.pad(bankBits + rowBits)(math.max(1, bankBits) - 1, 0)

  /** Items turned so that item k comes to place (k + by) % items. */
  private def rotateUp[T <: Data](items: Seq[T], by: UInt): Seq[T] = (0 until bankBits).foldLeft(items) {
    (turned, bit) =>
      val step = 1 << bit
      turned.indices.map(k => Mux(by(bit), turned((k - step + banks) % banks), turned(k)))
  }

  /** Items turned so that place k has item (k + by) % items. */
  private def rotateDown[T <: Data](items: Seq[T], by: UInt): Seq[T] = (0 until bankBits).foldLeft(items) {
    (turned, bit) =>
      val step = 1 << bit
      turned.indices.map(k => Mux(by(bit), turned((k + step) % banks), turned(k)))
  }

  private val w         = io.write.bits
  private val elements  = (0 until banks).map(k => w.data((k + 1) * shape.elemBits - 1, k * shape.elemBits))
  private val bankData  = rotateUp(elements, firstBank(w.index))
  private val bankMask  = rotateUp((0 until banks).map(k => w.elemMask(k)), firstBank(w.index))
  private val partMask  = (0 until shape.parts).map(k => w.partMask(k))
  private val memories  = Seq.fill(banks)(SyncReadMem(rows, Vec(shape.parts, UInt(partBits.W)), SyncReadMem.Undefined))
  private val writeRows = (0 until banks).map(rowOf(w.index, _))

  private def parts(element: UInt): Vec[UInt] =
    VecInit((0 until shape.parts).map(k => element((k + 1) * partBits - 1, k * partBits)))

  for (bank <- 0 until banks) {
    when(io.write.valid && bankMask(bank)) { memories(bank).write(writeRows(bank), parts(bankData(bank)), partMask) }
  }

  for (port <- io.read) {
    val words = (0 until banks).map { bank =>
      val row    = rowOf(port.index, bank)
      val stored = memories(bank).read(row, port.enable)
      if (writeFirst) {
        val hit = RegNext(io.write.valid && bankMask(bank) && port.enable && writeRows(bank) === row, false.B)
        val by  = RegEnable(parts(bankData(bank)), port.enable)
        val on  = RegEnable(VecInit(partMask), port.enable)
        Cat((0 until shape.parts).map(k => Mux(hit && on(k), by(k), stored(k))).reverse)
      } else Cat(stored.reverse)
    }
    val first  = RegEnable(firstBank(port.index), port.enable)
    val turned = rotateDown(words, first)
    port.data := Cat(turned.take(readElems).reverse)
  }
}
