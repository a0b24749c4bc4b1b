// SPDX-License-Identifier: Apache-2.0
package openvta.spec

import scala.collection.immutable.ListMap

/** One field of a word: bits `lo` to `lo + width - 1`. */
case class FieldSpec(name: String, lo: Int, width: Int, signed: Boolean) {
  def hi: Int = lo + width - 1
}

/** Bit layout of an instruction, micro-op or register, as the resolved configuration states it. */
case class LayoutSpec(name: String, bits: Int, fields: Seq[FieldSpec], ignored: Seq[(Int, Int)]) {
  private val byName = fields.map(f => f.name -> f).toMap

  def apply(field: String): FieldSpec =
    byName.getOrElse(field, throw new SpecMismatch(s"layout $name has no field $field"))

  def has(field: String): Boolean = byName.contains(field)

  private def mask(lo: Int, width: Int): BigInt = ((BigInt(1) << width) - 1) << lo

  /** Bits that must be zero. */
  def reservedMask: BigInt = {
    val used = fields.map(f => mask(f.lo, f.width)) ++ ignored.map { case (lo, w) => mask(lo, w) }
    ((BigInt(1) << bits) - 1) &~ used.foldLeft(BigInt(0))(_ | _)
  }
}

case class RegisterSpec(name: String, offset: Int, access: String, reset: BigInt)

/** The resolved configuration does not say what this hardware is written for. */
class SpecMismatch(message: String) extends RuntimeException(message)

/** Everything the hardware knows of its configuration: read from the resolved JSON, never written by hand.
  *
  * `trace` and `stalls` are for simulation only ([[openvta.util.WriteTap]], [[openvta.util.StallPoint]]): without them nothing is built.
  * Widths in bits and sizes in bytes unless the name says otherwise; U, I, W, A are `uopIndexBits` and so on.
  */
case class VtaParams(
    name: String,
    hash: BigInt,
    isaVersion: Int,
    batch: Int,
    block: Int,
    inpBits: Int,
    wgtBits: Int,
    accBits: Int,
    outBits: Int,
    uopDepth: Int,
    inpDepth: Int,
    wgtDepth: Int,
    accDepth: Int,
    axiDataBits: Int,
    axiIdBits: Int,
    axiBurstBeats: Int,
    axiOutstanding: Int,
    tokenDepth: Int,
    queueDepth: Int,
    requantCycles: Int,
    extensions: Set[String],
    features: ListMap[String, Int],
    constants: Map[String, BigInt],
    enums: Map[String, Map[String, Int]],
    layouts: Map[String, LayoutSpec],
    registers: Seq[RegisterSpec],
    registerLayouts: Map[String, LayoutSpec],
    counters: Seq[String],
    trace: Boolean = false,
    stalls: Boolean = false,
) {
  private def log2(n: Int): Int = {
    require(n > 0 && (n & (n - 1)) == 0, s"$n is not a power of two")
    Integer.numberOfTrailingZeros(n)
  }

  val lanes: Int        = batch * block
  val uopElemBits: Int  = 32
  val inpElemBits: Int  = lanes * inpBits
  val wgtElemBits: Int  = block * block * wgtBits
  val accElemBits: Int  = lanes * accBits
  val outElemBits: Int  = lanes * outBits
  val acc8ElemBits: Int = lanes * 8

  val uopIndexBits: Int = log2(uopDepth)
  val inpIndexBits: Int = log2(inpDepth)
  val wgtIndexBits: Int = log2(wgtDepth)
  val accIndexBits: Int = log2(accDepth)

  val axiAddrBits: Int  = 64
  val axiDataBytes: Int = axiDataBits / 8
  val insnBits: Int     = 128
  val indexBits: Int    = 32

  /** Bits of the instruction index that goes along with every write: none unless `trace`. */
  val tagBits: Int = if (trace) indexBits else 0

  def has(extension: String): Boolean = extensions.contains(extension)

  def enumValue(kind: String, member: String): Int =
    enums
      .getOrElse(kind, throw new SpecMismatch(s"resolved configuration has no enum $kind"))
      .getOrElse(member, throw new SpecMismatch(s"enum $kind has no member $member"))

  def layout(name: String): LayoutSpec =
    layouts.getOrElse(name, throw new SpecMismatch(s"resolved configuration has no layout $name"))

  def registerLayout(name: String): LayoutSpec =
    registerLayouts.getOrElse(name, throw new SpecMismatch(s"resolved configuration has no register layout $name"))

  def register(name: String): RegisterSpec =
    registers.find(_.name == name).getOrElse(throw new SpecMismatch(s"resolved configuration has no register $name"))
}

object VtaParams {

  /** Read a resolved configuration. Throws [[SpecMismatch]] where it lacks what the hardware needs. */
  def fromJson(text: String): VtaParams = {
    val json    = ujson.read(text)
    val knobs   = json("knobs")
    val derived = json("derived")

    def layoutOf(name: String, value: ujson.Value): LayoutSpec = LayoutSpec(
      name,
      value("bits").num.toInt,
      value("fields").arr.toSeq.map(f =>
        FieldSpec(f("name").str, f("lo").num.toInt, f("width").num.toInt, f("signed").bool)
      ),
      value("ignored").arr.toSeq.map(r => (r(0).num.toInt, r(1).num.toInt)),
    )
    def layoutsOf(key: String): Map[String, LayoutSpec] =
      json(key).obj.map { case (name, value) => name -> layoutOf(name, value) }.toMap
    def knob(key: String): Int = knobs(key).num.toInt
    def size(key: String): Int = derived(key).num.toInt

    val params = VtaParams(
      name = json("name").str,
      hash = BigInt(json("hash").str, 16),
      isaVersion = json("isa_version").num.toInt,
      batch = knob("batch"),
      block = knob("block"),
      inpBits = knob("inp_bits"),
      wgtBits = knob("wgt_bits"),
      accBits = knob("acc_bits"),
      outBits = size("out_bits"),
      uopDepth = size("uop_depth"),
      inpDepth = size("inp_depth"),
      wgtDepth = size("wgt_depth"),
      accDepth = size("acc_depth"),
      axiDataBits = knob("axi_data_bits"),
      axiIdBits = knob("axi_id_bits"),
      axiBurstBeats = knob("axi_burst_beats"),
      axiOutstanding = knob("axi_outstanding"),
      tokenDepth = knob("token_depth"),
      queueDepth = knob("queue_depth"),
      requantCycles = knob("requant_cycles"),
      extensions = knobs("extensions").arr.map(_.str).toSet,
      features = ListMap.from(json("features").obj.map { case (k, v) => k -> v.num.toInt }),
      constants = json("constants").obj.map { case (k, v) => k -> BigInt(v.num.toLong) }.toMap,
      enums = json("enums").obj.map { case (kind, members) =>
        kind -> members.obj.map { case (k, v) => k -> v.num.toInt }.toMap
      }.toMap,
      layouts = layoutsOf("layouts"),
      registers = json("registers").arr.toSeq.map(r =>
        RegisterSpec(r("name").str, r("offset").num.toInt, r("access").str, BigInt(r("reset").num.toLong))
      ),
      registerLayouts = layoutsOf("register_layouts"),
      counters = json("counters").arr.toSeq.map(_.str),
    )
    Seq(
      "uop" -> params.uopIndexBits,
      "inp" -> params.inpIndexBits,
      "wgt" -> params.wgtIndexBits,
      "acc" -> params.accIndexBits
    )
      .foreach { case (memory, bits) =>
        if (bits != size(s"${memory}_index_bits"))
          throw new SpecMismatch(
            s"$memory index: hardware derives $bits bits, the configuration says ${size(s"${memory}_index_bits")}"
          )
      }
    params
  }
}
