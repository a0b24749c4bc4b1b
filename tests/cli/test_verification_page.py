# SPDX-License-Identifier: Apache-2.0
"""The verification page says what the result files say, and the committed page is the one they make."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from openvta.cli import verification_page
from openvta.cli.main import main
from openvta.spec import SpecError

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "docs" / "verification"


def test_the_committed_page_is_the_one_its_results_make() -> None:
    results = verification_page.read_results(RESULTS)
    ledger = verification_page.read_ledger(RESULTS / verification_page.LEDGER)
    made = verification_page.page(results, ledger)
    assert (ROOT / "docs" / "verification.md").read_text("utf-8") == made, "run 'openvta verify page'"


def random_result(instructions: int) -> dict[str, object]:
    return {
        "campaign": "random", "commit": "0123456789abcdef", "date": "2026-01-02T03:04Z",
        "results": [
            {
                "config": "tiny", "config_hash": "aa", "label": "1x4", "seeds": [4, 5, 6], "programs": 7,
                "instructions": instructions, "stalls": ["none"], "mismatches": 0, "seconds": 1.0,
                "bins": {"declared": 500, "filled": 499, "missing": ["x"]},
            }
        ],
    }  # fmt: skip


def test_the_page_shows_the_figures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "random.json").write_text(json.dumps(random_result(12_345)), "utf-8")
    (tmp_path / "ledger.jsonl").write_text(
        '{"date": "d", "commit": "c0ffee", "campaign": "random", "config": "tiny", "seeds": [9], "instructions": 777}\n'
    )
    out = tmp_path / "page.md"
    assert main(["verify", "page", "--results", str(tmp_path), "--out", str(out)]) == 0
    text = out.read_text("utf-8")
    for words in ("12,345", "499 of 500 (99.8 %)", "4..6", "`0123456789ab`", "`c0ffee`", "777"):
        assert words in text
    assert "1 campaigns in the ledger" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("other.json", "{}", "no results"),
        ("random.json", "{", "not JSON"),
        ("random.json", '{"campaign": "faults"}', "not the result of campaign 'random'"),
    ],
)
def test_bad_results_are_named(tmp_path: Path, name: str, content: str, words: str) -> None:
    (tmp_path / name).write_text(content, "utf-8")
    with pytest.raises(SpecError, match=words):
        verification_page.read_results(tmp_path)


def test_a_bad_ledger_line_is_named(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    path.write_text("{}\n[1]\n", "utf-8")
    with pytest.raises(SpecError, match=r"ledger\.jsonl:2: not an object"):
        verification_page.read_ledger(path)
