# SPDX-License-Identifier: Apache-2.0
"""Bus agents in Python for cocotb test benches: AXI4 memory, AXI4-Lite master, ready/valid streams."""
