// SPDX-License-Identifier: Apache-2.0
package openvta.load

import chisel3._
import openvta.mem.{ReadEngine, Scratchpad}
import openvta.spec._

/** The units of the memory and load path side by side, each with ports of its own, so that unit tests need one build per
  * configuration. Scratchpads: inp with two read ports of an element, acc with bypass, out with reads of a beat's elements.
  * Not part of the core.
  */
class LoadBench(p: VtaParams) extends Module {
  private def expose[T <: Data](io: T): T = {
    val port = IO(chiselTypeOf(io))
    port :<>= io
    port
  }

  private val loadUnit   = Module(new LoadUnit(p))
  private val uopLoader  = Module(new TensorLoader(p, LoaderSpec.uop(p)))
  private val accLoader  = Module(new TensorLoader(p, LoaderSpec.acc(p)))
  private val readEngine = Module(new ReadEngine(p))
  private val outShape   = ScratchShape.out(p)
  private val inpPad     = Module(new Scratchpad(ScratchShape.inp(p), readPorts = 2))
  private val accPad     = Module(new Scratchpad(ScratchShape.acc(p), writeFirst = true))
  private val outPad     = Module(new Scratchpad(outShape, readElems = outShape.elems))

  val load   = expose(loadUnit.io).suggestName("load")
  val uop    = expose(uopLoader.io).suggestName("uop")
  val acc    = expose(accLoader.io).suggestName("acc")
  val engine = expose(readEngine.io).suggestName("engine")
  val padInp = expose(inpPad.io).suggestName("padInp")
  val padAcc = expose(accPad.io).suggestName("padAcc")
  val padOut = expose(outPad.io).suggestName("padOut")
}
