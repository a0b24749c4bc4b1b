# SPDX-License-Identifier: Apache-2.0
"""Errors of the formal tools."""

from __future__ import annotations

from openvta.sim.errors import SimError


class FormalError(SimError):
    """A harness that does not fit the design, or a tool that is missing or failed."""
