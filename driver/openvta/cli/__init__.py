# SPDX-License-Identifier: Apache-2.0
"""The command `openvta`. Verbs live in files of their own and are imported only when they run."""

from __future__ import annotations

from openvta.cli.main import main

__all__ = ["main"]
