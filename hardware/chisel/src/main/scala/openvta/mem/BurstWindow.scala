// SPDX-License-Identifier: Apache-2.0
package openvta.mem

import chisel3._
import chisel3.util._
import openvta.spec._

/** Where bursts are cut: no burst leaves its aligned window of `axiBurstBeats` beats.
  *
  * A window is at most 4 KiB and a power of two, so no burst crosses a 4 KiB boundary either.
  */
class BurstWindow(p: VtaParams) {
  require(
    isPow2(p.axiBurstBeats) && p.axiBurstBeats * p.axiDataBytes <= 4096,
    "the burst window must be a power of two up to 4 KiB"
  )

  /** Bytes of a window. */
  val bytes: Int = p.axiBurstBeats * p.axiDataBytes

  /** Bits that hold 0 to `bytes`. */
  val countBits: Int = log2Ceil(bytes + 1)

  private val beatBits = log2Ceil(p.axiDataBytes)

  /** Bytes from `address` to the end of its window: 1 to `bytes`. */
  def bytesLeft(address: UInt): UInt = bytes.U(countBits.W) - address(log2Ceil(bytes) - 1, 0)

  /** Byte lane of `address` in its beat. */
  def lane(address: UInt): UInt = address(beatBits - 1, 0)

  /** `address` without its byte lane. */
  def beatAddress(address: UInt): UInt = Cat(address(p.axiAddrBits - 1, beatBits), 0.U(beatBits.W))

  /** Beats that hold `count` bytes from `address` on, all in one window. */
  def beats(address: UInt, count: UInt): UInt =
    (count +& lane(address) +& (p.axiDataBytes - 1).U)(log2Ceil(bytes + 1) - 1, beatBits)
}
