# SPDX-License-Identifier: Apache-2.0
"""The Python of the README runs as it stands, on the RTL."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]


def test_the_example_runs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    monkeypatch.chdir(ROOT)
    with np.load(ROOT / "examples" / "digits" / "mnist_subset.npz", allow_pickle=False) as digits:
        pixels = digits["test_x"][:2].reshape(2, 1, 28, 28)
        labels = digits["test_y"][:2]
    names: dict[str, Any] = {"x": ((pixels.astype(np.float32) - 128) / 128).astype(np.float32)}
    exec(compile(code, "README.md", "exec"), names)
    assert names["result"].outputs["logits"].argmax(1).tolist() == labels.tolist()
    assert names["result"].counters["cycles"] > 0
    assert "accelerator" in capsys.readouterr().out
