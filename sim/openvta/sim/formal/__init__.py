# SPDX-License-Identifier: Apache-2.0
"""Formal proofs of the RTL's control logic: properties written in SystemVerilog beside the design, proved for every input."""
