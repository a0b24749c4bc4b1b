# SPDX-License-Identifier: Apache-2.0
"""The functional simulator: interprets the binary stream exactly, fast or with every check on."""

from __future__ import annotations

from openvta.sim.fsim.machine import Fault, Machine, Outcome
from openvta.sim.fsim.scratchpads import Memory

__all__ = ["Fault", "Machine", "Memory", "Outcome"]
