// SPDX-License-Identifier: Apache-2.0
package openvta.shell

import chisel3._
import chisel3.util._
import openvta.spec._
import openvta.util.Bits

/** The register file: every register of the specification at its offset, and no other.
  *
  * Registers that are written keep their value over a soft reset, which clears IRQ_STATUS. The base addresses and the instruction count cannot be
  * written during a run. Writes to read-only registers change nothing; an offset without a register answers SLVERR.
  * The interrupt is a level: an enabled bit of IRQ_STATUS is set.
  */
class Registers(p: VtaParams) extends Module {
  private val addrBits = log2Ceil(p.constants("register_space_bytes").toInt)

  val io = IO(new Bundle {
    val axil    = Flipped(new AxiLite(addrBits))
    val control = Output(new CoreControl(p))
    val status  = Input(new CoreStatus(p))

    /** One pulse asks for a soft reset. */
    val softReset     = Output(Bool())
    val resetting     = Input(Bool())
    val readsPending  = Input(Bool())
    val writesPending = Input(Bool())
    val interrupt     = Output(Bool())
  })

  private val port  = Module(new RegisterPort(addrBits))
  private val write = port.io.write
  port.io.axil :<>= io.axil

  private def at(address: UInt, name: String): Bool = address(addrBits - 1, 2) === (p.register(name).offset / 4).U
  private def written(name: String): Bool           = write.valid && at(write.bits.address, name)
  private val byteMask                              = FillInterleaved(8, write.bits.strobe)
  private val newBits                               = write.bits.data & byteMask

  /** A register that software writes. */
  private def setting(name: String, width: Int, open: Bool = true.B): UInt = {
    val value = RegInit(p.register(name).reset.U(width.W))
    when(written(name) && open) { value := (newBits | (value & (~byteMask).asUInt))(width - 1, 0) }
    value.suggestName(name.toLowerCase)
  }

  private val status = io.status
  private val idle   = !status.running
  private val bases  = Seq("INSN", "UOP", "INP", "WGT", "ACC", "OUT").map { memory =>
    (memory, setting(s"${memory}_BASE_LO", 32, idle), setting(s"${memory}_BASE_HI", 32, idle))
  }
  private val base      = bases.map { case (memory, low, high) => memory -> Cat(high, low) }.toMap
  private val insnCount = setting("INSN_COUNT", 32, idle)
  private val watchdog  = setting("WATCHDOG", 32)
  private val irqEnable = setting("IRQ_ENABLE", 2)

  // Commands
  private val launchBit = p.registerLayout("CONTROL")("launch").lo
  io.softReset         := written("RESET") && newBits(0)
  io.control.launch    := written("CONTROL") && newBits(launchBit) && !io.resetting
  io.control.insnCount := insnCount
  io.control.insnBase  := base("INSN")
  io.control.uopBase   := base("UOP")
  io.control.inpBase   := base("INP")
  io.control.wgtBase   := base("WGT")
  io.control.accBase   := base("ACC")
  io.control.outBase   := base("OUT")
  io.control.watchdog  := watchdog

  // Interrupts: set by the event, cleared by writing 1
  private val events    = Cat(status.error.valid, status.finished)
  private val irqStatus = RegInit(0.U(2.W))
  private val cleared   = Mux(written("IRQ_STATUS"), newBits(1, 0), 0.U)
  irqStatus := (irqStatus & (~cleared).asUInt) | (events & (~RegNext(events, 0.U(2.W))).asUInt)
  when(io.resetting) { irqStatus := 0.U }
  io.interrupt := (irqStatus & irqEnable).orR

  // Everything that can be read
  private val error                     = status.error.bits
  private val held                      = status.error.valid
  private def ifHeld(value: UInt): UInt = Mux(held, value, 0.U)
  private val errorWord                 = Bits.pack(
    p.registerLayout("ERROR"),
    "cause"   -> error.detail.cause,
    "unit"    -> error.unit,
    "channel" -> error.detail.channel,
    "wait"    -> error.wait_,
    "finish"  -> error.finish,
  )
  private val controlWord =
    Bits.pack(p.registerLayout("CONTROL"), "launch" -> status.running, "finish" -> status.finished)
  private val statusWord = Bits.pack(
    p.registerLayout("STATUS"),
    "running"        -> status.running,
    "fetch_busy"     -> status.fetchBusy,
    "load_busy"      -> status.loadBusy,
    "compute_busy"   -> status.computeBusy,
    "store_busy"     -> status.storeBusy,
    "reads_pending"  -> io.readsPending,
    "writes_pending" -> io.writesPending,
    "halted"         -> held,
  )
  private val features                  = p.features.values.map(BigInt(1) << _).foldLeft(BigInt(0))(_ | _)
  private val values: Map[String, UInt] = Map(
    "CONTROL"        -> controlWord,
    "CYCLES"         -> status.cycles(31, 0),
    "CYCLES_HI"      -> status.cycles(63, 32),
    "INSN_COUNT"     -> insnCount,
    "ACC_WRITES"     -> status.accWrites,
    "ID"             -> p.register("ID").reset.U(32.W),
    "ISA_VERSION"    -> p.isaVersion.U(32.W),
    "CONFIG_HASH_LO" -> (p.hash & 0xffffffffL).U(32.W),
    "CONFIG_HASH_HI" -> (p.hash >> 32).U(32.W),
    "FEATURES"       -> features.U(32.W),
    "STATUS"         -> statusWord,
    "ERROR"          -> ifHeld(errorWord),
    "ERROR_INDEX"    -> ifHeld(error.detail.index),
    "ERROR_ADDR_LO"  -> ifHeld(error.detail.address(31, 0)),
    "ERROR_ADDR_HI"  -> ifHeld(error.detail.address(63, 32)),
    "IRQ_ENABLE"     -> irqEnable,
    "IRQ_STATUS"     -> irqStatus,
    "WATCHDOG"       -> watchdog,
    "RESET"          -> 0.U(31.W) ## io.resetting,
  ) ++
    bases.flatMap { case (memory, low, high) => Seq(s"${memory}_BASE_LO" -> low, s"${memory}_BASE_HI" -> high) } ++
    p.counters.zip(status.counters).map { case (name, value) => s"COUNTER_${name.toUpperCase}" -> value }
  if (values.keySet != p.registers.map(_.name).toSet) {
    val (extra, missing) = (values.keySet -- p.registers.map(_.name), p.registers.map(_.name).toSet -- values.keySet)
    throw new SpecMismatch(s"registers: the configuration lacks $extra, the hardware lacks $missing")
  }
  port.io.writeMapped := p.registers.map(r => at(write.bits.address, r.name)).reduce(_ || _)
  port.io.readMapped  := p.registers.map(r => at(port.io.readAddress, r.name)).reduce(_ || _)
  port.io.readData    := Mux1H(p.registers.map(r => at(port.io.readAddress, r.name) -> values(r.name).pad(32)))
}
