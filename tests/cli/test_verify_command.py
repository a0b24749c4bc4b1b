# SPDX-License-Identifier: Apache-2.0
"""`openvta verify`: arguments, and the lines it appends to a ledger."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from openvta.cli.main import main
from openvta.cli.verify import _append


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["random", "--seeds", "0"], "--seeds = 0"),
        (["faults", "--trials", "-1"], "--trials = -1"),
        (["random", "--instructions", "0"], "--instructions = 0"),
        (["random", "--config", "no-such"], "no-such"),
    ],
)
def test_bad_arguments_are_one_line(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1


def test_the_ledger_grows_by_a_line_a_configuration(tmp_path: Path) -> None:
    result = {
        "config": "tiny",
        "config_hash": "0" * 16,
        "seeds": [1],
        "instructions": 5,
        "mismatches": 0,
        "seconds": 1.0,
    }
    report = {"date": "d", "commit": "c", "campaign": "random", "results": [result, {**result, "trials": {"bus": 2}}]}
    ledger = tmp_path / "folder" / "ledger.jsonl"
    for count in (2, 4):
        _append(ledger, report)
        lines = [json.loads(line) for line in ledger.read_text("utf-8").splitlines()]
        assert len(lines) == count
    assert lines[0]["campaign"] == "random" and lines[1]["trials"] == {"bus": 2}
