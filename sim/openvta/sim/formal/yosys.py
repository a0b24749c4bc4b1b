# SPDX-License-Identifier: Apache-2.0
"""Yosys scripts, each run in a bounded child process: the library ends the process on an error."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from importlib import util
from pathlib import Path

from openvta.sim.formal.errors import FormalError

_CHILD = "import sys; from pyosys import libyosys as y; y.run_pass('script ' + sys.argv[1], y.Design())"


def require() -> Path:
    """Folder of the pyosys package.

    Raises:
        FormalError: it is not installed.
    """
    spec = util.find_spec("pyosys")
    if spec is None or not spec.submodule_search_locations:
        raise FormalError("pyosys not found: needed for formal proofs; run 'make setup', or install 'openvta[formal]'")
    return Path(next(iter(spec.submodule_search_locations)))


def run(commands: Sequence[str], folder: Path, *, makes: Sequence[str], what: str, timeout: float = 300.0) -> str:
    """Run yosys commands in ``folder`` and return the log.

    Raises:
        FormalError: it failed, took longer than ``timeout`` seconds, or did not write every file of ``makes``.
    """
    require()
    script = folder / "script.ys"
    script.write_text("\n".join(commands) + "\n", "utf-8")
    for name in makes:
        (folder / name).unlink(missing_ok=True)
    try:
        done = subprocess.run(
            [sys.executable, "-c", _CHILD, script.name], cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, timeout=timeout, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise FormalError(f"{what}: yosys did not end within {timeout:.0f} s") from error
    text = done.stdout.decode("utf-8", "replace")
    (folder / "yosys.log").write_text(text, "utf-8")
    missing = [name for name in makes if not (folder / name).is_file()]
    if done.returncode != 0 or missing:
        tail = "\n".join(text.rstrip().splitlines()[-12:])
        raise FormalError(f"{what}: yosys ended with status {done.returncode} without {missing or 'failing'}\n{tail}")
    return text
