# SPDX-License-Identifier: Apache-2.0
"""The decoder against the specification's static check."""

from __future__ import annotations

from pathlib import Path

import pytest
from rtl_units import run_unit

from conftest import RecordCoverage


@pytest.mark.parametrize("config", ["tiny", "default"])
def test_decoder(config: str, seed: int, record_coverage: RecordCoverage) -> None:
    """Random, legal and damaged words: same cause, same unit."""
    run_unit(config, "Decoder", "tb_decoder", seed=seed)
    record_coverage("rtl decoder", config)


def test_decoder_without_extensions(tmp_path: Path, seed: int, record_coverage: RecordCoverage) -> None:
    """Without extensions their opcodes, fields and memory ids are errors."""
    plain = tmp_path / "plain.toml"
    plain.write_text('base = "tiny"\nextensions = []\n', "utf-8")
    run_unit(str(plain), "Decoder", "tb_decoder", seed=seed)
    record_coverage("rtl decoder", "tiny without extensions")
