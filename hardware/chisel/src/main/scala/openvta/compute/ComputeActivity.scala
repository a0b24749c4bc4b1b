// SPDX-License-Identifier: Apache-2.0
package openvta.compute

import chisel3._

/** What a cycle of the compute unit is counted as: exactly one of these. */
object ComputeActivity extends ChiselEnum {
  val gemm, alu, stallRequant, stallPipeline, waitMemory, waitToken, waitFinish, idle = Value

  private val names = Map(
    gemm          -> "compute_gemm",
    alu           -> "compute_alu",
    stallRequant  -> "compute_stall_requant",
    stallPipeline -> "compute_stall_pipeline",
    waitMemory    -> "compute_wait_memory",
    waitToken     -> "compute_wait_token",
    waitFinish    -> "compute_wait_finish",
    idle          -> "compute_idle",
  )

  /** Counter of the specification that counts these cycles. */
  def name(what: Type): String = names(what)
}
