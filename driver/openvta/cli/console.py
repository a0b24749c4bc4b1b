# SPDX-License-Identifier: Apache-2.0
"""What verbs print: progress to standard error, results as tables or JSON to standard output, whole files at once."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

_STARTED = time.monotonic()


def say(text: str) -> None:
    """One line of progress, with the seconds since start."""
    sys.stderr.write(f"[{time.monotonic() - _STARTED:6.1f} s] {text}\n")
    sys.stderr.flush()


def out(text: str) -> None:
    """A line of the result."""
    sys.stdout.write(text + "\n")


def table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[object]], *, left: int = 1, bars: bool = False
) -> None:
    """A table; the first ``left`` columns, and with ``bars`` the last, are aligned left, the rest right."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    drawn = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left")
    for number, column in enumerate(columns):
        drawn.add_column(
            column,
            justify="left" if number < left or (bars and column is columns[-1]) else "right",
            no_wrap=number == 0,
        )
    for row in rows:
        drawn.add_row(*("" if cell is None else str(cell) for cell in row))
    width = None if sys.stdout.isatty() else 140
    Console(width=width, highlight=False).print(drawn)


def show_json(value: Any) -> None:
    """JSON on standard output."""
    sys.stdout.write(json.dumps(value, indent=1) + "\n")


def write_file(path: Path, data: bytes | str) -> None:
    """Write a file whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    content = data.encode() if isinstance(data, str) else data
    handle, name = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(name).chmod(0o644)
        Path(name).replace(path)
    finally:
        with suppress(FileNotFoundError):
            Path(name).unlink()
