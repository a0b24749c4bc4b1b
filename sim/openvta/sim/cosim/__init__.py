# SPDX-License-Identifier: Apache-2.0
"""The RTL under Verilator, driven by cocotb: tool chain, cached builds, sessions, transport."""
