// SPDX-License-Identifier: Apache-2.0
package openvta.compute

import chisel3._
import chisel3.util._

/** Sum of products of two vectors of signed numbers, pipelined.
  *
  * Throughput: one vector pair a cycle. Latency: `DotProduct.latency` cycles; stage k loads when `enable(k)` is set, so an
  * idle array does not toggle. No back-pressure. The result is exact: `aBits + bBits + log2(length)` bits.
  */
object DotProduct {

  /** Adder levels between two registers. */
  val levelsPerStage: Int = 4

  def sumBits(length: Int, aBits: Int, bBits: Int): Int = aBits + bBits + log2Ceil(length)

  /** One stage for the products, one for every `levelsPerStage` levels of the adder tree. */
  def latency(length: Int): Int = 1 + math.max(1, (log2Ceil(length) + levelsPerStage - 1) / levelsPerStage)

  def apply(a: Seq[SInt], b: Seq[SInt], enable: Seq[Bool]): SInt = {
    require(a.length == b.length && enable.length == latency(a.length))
    def level(terms: Seq[SInt]): Seq[SInt] = terms.grouped(2).map(_.reduce(_ +& _)).toSeq
    val products                           = a.zip(b).map { case (x, y) => RegEnable(x * y, enable.head) }
    val sums                               = enable.tail.foldLeft(products) { (terms, load) =>
      (0 until levelsPerStage).foldLeft(terms)((t, _) => if (t.length > 1) level(t) else t).map(RegEnable(_, load))
    }
    require(sums.length == 1)
    sums.head
  }
}
