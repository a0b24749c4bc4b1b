# SPDX-License-Identifier: Apache-2.0
"""The commit a figure was measured at."""

from __future__ import annotations

import subprocess
from pathlib import Path


def commit() -> str:
    """Short hash of the checkout, with "+changes" where the tree differs from it; "unknown" outside a checkout."""
    try:
        short, changes = _git("rev-parse", "--short=12", "HEAD"), _git("status", "--porcelain", "--untracked-files=no")
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return f"{short}+changes" if changes else short


def _git(*arguments: str) -> str:
    folder = Path(__file__).resolve().parent
    command = ["git", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=20, check=True).stdout.strip()
