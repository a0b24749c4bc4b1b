# SPDX-License-Identifier: Apache-2.0
"""Errors of exhaustion campaigns."""

from __future__ import annotations

from openvta.sim.errors import SimError


class ExhaustionError(SimError):
    """A configuration that the campaign is not for, or a bench that does not answer as it should."""
