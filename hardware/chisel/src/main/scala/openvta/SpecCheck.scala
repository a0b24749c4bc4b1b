// SPDX-License-Identifier: Apache-2.0
package openvta

import openvta.spec._

/** Refuses a resolved configuration that says more, or less, than this hardware knows. */
object SpecCheck {
  private val schema     = 1
  private val isaVersion = 0x0100

  private val head     = Set("opcode", "pop_prev", "pop_next", "push_prev", "push_next")
  private val transfer = Set("memory_id", "sram_base", "dram_base", "y_size", "x_size", "x_stride") ++
    Set("y_pad_0", "y_pad_1", "x_pad_0", "x_pad_1")
  private val loops                                  = Set("uop_begin", "uop_end", "iter_out", "iter_in")
  private def factors(streams: String*): Set[String] =
    streams.flatMap(s => Seq(s"${s}_factor_out", s"${s}_factor_in")).toSet

  private def layouts(p: VtaParams): Map[String, Set[String]] = {
    val padv = if (p.has("padv")) Set("pad_min", "pad_value_high", "pad_value_low") else Set.empty[String]
    val sat  = if (p.has("sat")) Set("sat") else Set.empty[String]
    val base = Map(
      "LOAD"   -> (head ++ transfer ++ padv),
      "STORE"  -> (head ++ transfer),
      "GEMM"   -> (head ++ loops ++ sat + "reset" ++ factors("dst", "src", "wgt")),
      "ALU"    -> (head ++ loops ++ sat ++ factors("dst", "src") ++ Set("alu_opcode", "use_imm", "imm")),
      "FINISH" -> head,
      "UOP"    -> Set("dst", "src", "wgt"),
    )
    val requant = head ++ Set("clear", "data_base", "param_base", "iter_out", "iter_in", "mode", "write_acc") ++
      Set("unsigned_out") ++ factors("data", "param")
    if (p.has("requant")) base + ("REQUANT" -> requant) else base
  }

  private val registerLayouts = Map(
    "CONTROL" -> Set("launch", "finish"),
    "STATUS"  -> (Set("running", "fetch_busy", "load_busy", "compute_busy", "store_busy") ++
      Set("reads_pending", "writes_pending", "halted")),
    "ERROR" -> Set("cause", "unit", "channel", "wait", "finish"),
  )

  private val enums = Map(
    "Opcode"      -> Set("LOAD", "STORE", "GEMM", "FINISH", "ALU", "REQUANT"),
    "MemId"       -> Set("UOP", "WGT", "INP", "ACC", "OUT", "ACC_INT8", "ACC_UINT8"),
    "AluOpcode"   -> Set("MIN", "MAX", "ADD", "SHR", "MUL", "MAC", "RSHR", "MOV"),
    "RequantMode" -> Set("HALF_UP", "HALF_EVEN", "TFLITE_DOUBLE", "TFLITE_RUY", "FLOAT32", "FLOOR"),
    "Unit"        -> Set("FETCH", "LOAD", "COMPUTE", "STORE"),
    "Queue"       -> Set("LOAD_TO_COMPUTE", "COMPUTE_TO_LOAD", "COMPUTE_TO_STORE", "STORE_TO_COMPUTE"),
    "Cause" -> (Set("NONE", "ILLEGAL_OPCODE", "RESERVED_BITS", "ILLEGAL_TOKEN", "FINISH_ORDER", "ILLEGAL_MEMORY") ++
      Set("ILLEGAL_FIELD", "INDEX_RANGE", "TOKEN_OVERFLOW", "BUS_READ", "BUS_WRITE", "WATCHDOG")),
  )

  private val knobs = Set("batch", "block", "inp_bits", "wgt_bits", "acc_bits", "uop_buffer_bytes") ++
    Set("inp_buffer_bytes", "wgt_buffer_bytes", "acc_buffer_bytes", "axi_data_bits", "axi_id_bits") ++
    Set("axi_burst_beats", "axi_outstanding", "token_depth", "queue_depth", "requant_cycles", "extensions")

  private val extensions = Set("acc8", "alu_plus", "padv", "requant", "sat")

  private val sections =
    Set("schema", "isa_version", "knobs", "derived", "constants", "enums", "layouts", "features") ++
      Set("registers", "register_layouts", "counters", "name", "hash")

  private def same(what: String, configured: Set[String], known: Set[String]): Unit = {
    val extra   = (configured -- known).toSeq.sorted
    val missing = (known -- configured).toSeq.sorted
    if (extra.nonEmpty)
      throw new SpecMismatch(
        s"$what: the hardware does not know ${extra.mkString(", ")}; change hardware and specification together"
      )
    if (missing.nonEmpty)
      throw new SpecMismatch(s"$what: the configuration lacks ${missing.mkString(", ")}; resolve it with this version")
  }

  /** The parameters in a resolved configuration.
    *
    * Throws [[openvta.spec.SpecMismatch]], naming what differs, if it is not what this hardware was written for.
    */
  def read(text: String): VtaParams = {
    val json = ujson.read(text)
    same("resolved configuration", json.obj.keySet.toSet, sections)
    if (json("schema").num.toInt != schema)
      throw new SpecMismatch(s"schema ${json("schema").num.toInt}: this hardware reads schema $schema")
    if (json("isa_version").num.toInt != isaVersion)
      throw new SpecMismatch(
        f"instruction set 0x${json("isa_version").num.toInt}%04x: this hardware implements 0x$isaVersion%04x"
      )
    same("knobs", json("knobs").obj.keySet.toSet, knobs)
    val p = VtaParams.fromJson(text)
    same("extensions", p.extensions ++ p.features.keySet, p.extensions intersect extensions)
    same("layouts", p.layouts.keySet, layouts(p).keySet)
    layouts(p).foreach { case (name, fields) => same(s"layout $name", p.layout(name).fields.map(_.name).toSet, fields) }
    same("register layouts", p.registerLayouts.keySet, registerLayouts.keySet)
    registerLayouts.foreach { case (name, fields) =>
      same(s"register layout $name", p.registerLayout(name).fields.map(_.name).toSet, fields)
    }
    same("enums", p.enums.keySet, enums.keySet)
    enums.foreach { case (name, members) => same(s"enum $name", p.enums(name).keySet, members) }
    p
  }
}
