// SPDX-License-Identifier: Apache-2.0
package openvta.shell

import chisel3._
import chisel3.util._
import openvta.spec._

/** What the register file tells the core. Bases and count do not change while it runs. */
class CoreControl(p: VtaParams) extends Bundle {

  /** One pulse starts a run; it is not heard while one is going on or an error is held. */
  val launch    = Bool()
  val insnCount = UInt(p.indexBits.W)
  val insnBase  = UInt(p.axiAddrBits.W)
  val uopBase   = UInt(p.axiAddrBits.W)
  val inpBase   = UInt(p.axiAddrBits.W)
  val wgtBase   = UInt(p.axiAddrBits.W)
  val accBase   = UInt(p.axiAddrBits.W)
  val outBase   = UInt(p.axiAddrBits.W)

  /** Cycles without progress that are an error; zero switches the watchdog off. */
  val watchdog = UInt(32.W)
}

/** The first error since reset. */
class HeldError(p: VtaParams) extends Bundle {
  val unit   = UInt(4.W)
  val detail = new UnitError(p)

  /** Watchdog: token queues waited for, bit by number, and whether FINISH waits. */
  val wait_  = UInt(4.W)
  val finish = Bool()
}

/** What the core tells the register file. */
class CoreStatus(p: VtaParams) extends Bundle {
  val running     = Bool()
  val finished    = Bool()
  val fetchBusy   = Bool()
  val loadBusy    = Bool()
  val computeBusy = Bool()
  val storeBusy   = Bool()
  val error       = Valid(new HeldError(p))
  val cycles      = UInt(64.W)
  val accWrites   = UInt(32.W)
  val counters    = Vec(p.counters.length, UInt(32.W))
}

/** Retired instructions, and the last micro-op of each GEMM, for traces. */
class RetireTrace(p: VtaParams) extends Bundle {
  val load     = new Retire(p)
  val compute  = new Retire(p)
  val store    = new Retire(p)
  val gemmLast = Bool()
}
