// SPDX-License-Identifier: Apache-2.0
package openvta.mem

import chisel3._
import chisel3.util._
import openvta.spec._

/** The kinds of scratchpad the core is made of, side by side, as the unit tests drive them: inp with two read ports of one
  * element, acc with bypass, out with reads of a beat's elements. Not part of the core.
  */
class ScratchpadBench(p: VtaParams) extends Module {
  private val shapes = Seq(ScratchShape.inp(p), ScratchShape.acc(p), ScratchShape.out(p))
  private val pads = Seq(
    Module(new Scratchpad(shapes(0), readPorts = 2)),
    Module(new Scratchpad(shapes(1), writeFirst = true)),
    Module(new Scratchpad(shapes(2), readElems = shapes(2).elems)),
  )

  val io = IO(new Bundle {
    val writeInp = Flipped(Valid(shapes(0).write))
    val writeAcc = Flipped(Valid(shapes(1).write))
    val writeOut = Flipped(Valid(shapes(2).write))
    val readInp0 = new ScratchRead(shapes(0).indexBits, shapes(0).elemBits)
    val readInp1 = new ScratchRead(shapes(0).indexBits, shapes(0).elemBits)
    val readAcc  = new ScratchRead(shapes(1).indexBits, shapes(1).elemBits)
    val readOut  = new ScratchRead(shapes(2).indexBits, shapes(2).elems * shapes(2).elemBits)
  })

  pads.zip(Seq(io.writeInp, io.writeAcc, io.writeOut)).foreach { case (pad, write) => pad.io.write := write }
  io.readInp0 :<>= pads(0).io.read(0)
  io.readInp1 :<>= pads(0).io.read(1)
  io.readAcc  :<>= pads(1).io.read(0)
  io.readOut  :<>= pads(2).io.read(0)
}
