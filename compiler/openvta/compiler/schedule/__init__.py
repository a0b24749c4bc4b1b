# SPDX-License-Identifier: Apache-2.0
"""Schedules: tiles, scratchpad slots, steps and the token plan."""

from __future__ import annotations
