# SPDX-License-Identifier: Apache-2.0
"""The page that says how hard the core was tried, written from the results of campaigns and their ledger alone."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from openvta.spec import SpecError

RESULTS = ("random", "disturbed", "faults", "coverage", "formal", "mutation", "exhaustion")
"""Campaigns in the order of the page; each is a file NAME.json in the results folder."""
LEDGER = "ledger.jsonl"
Report = Mapping[str, Any]

HEAD = """<!-- Written by `openvta verify page` from the files in docs/verification/; do not edit. -->
# Verification

What the RTL was compared with, how often, and what the comparison would have caught. Every figure comes from a campaign's own
result file, which names the commit it ran at; the same commands repeat it.
"""


def read_results(folder: Path) -> dict[str, Report]:
    """Result files by campaign.

    Raises:
        SpecError: no result at all, or a file that is not one.
    """
    found: dict[str, Report] = {}
    for name in RESULTS:
        path = folder / f"{name}.json"
        if not path.is_file():
            continue
        try:
            report = json.loads(path.read_text("utf-8"))
        except ValueError as error:
            raise SpecError(f"{path}: not JSON: {error}; run the campaign again") from error
        if not isinstance(report, dict) or report.get("campaign") != name:
            raise SpecError(f"{path}: not the result of campaign '{name}'; run the campaign again")
        found[name] = report
    if not found:
        raise SpecError(
            f"{folder}: no results; run 'openvta verify {RESULTS[0]} --json {folder}/{RESULTS[0]}.json' first"
        )
    return found


def read_ledger(path: Path) -> list[Report]:
    """Lines of the ledger, oldest first.

    Raises:
        SpecError: a line that is not a JSON object.
    """
    lines: list[Report] = []
    if not path.is_file():
        return lines
    for number, text in enumerate(path.read_text("utf-8").splitlines(), 1):
        try:
            line = json.loads(text)
        except ValueError as error:
            raise SpecError(f"{path}:{number}: not JSON: {error}") from error
        if not isinstance(line, dict):
            raise SpecError(f"{path}:{number}: not an object")
        lines.append(line)
    return lines


def page(results: Mapping[str, Report], ledger: Sequence[Report]) -> str:
    """The page in Markdown."""
    parts = [HEAD, _summary(results)]
    parts += [SECTIONS[name](results[name]) for name in RESULTS if name in results]
    if ledger:
        parts.append(_ledger(ledger))
    return "\n".join(parts)


def table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, left: int = 1) -> str:
    """A Markdown table; the first ``left`` columns are aligned left."""
    head = "| " + " | ".join(columns) + " |"
    rule = "| " + " | ".join("---" if number < left else "---:" for number in range(len(columns))) + " |"
    body = ["| " + " | ".join(_cell(cell) for cell in row) + " |" for row in rows]
    return "\n".join([head, rule, *body, ""])


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return str(value).replace("|", "\\|").replace("\n", " ")


def _share(part: int, whole: int) -> str:
    return f"{part:,} of {whole:,}" + (f" ({100 * part / whole:.1f} %)" if whole else "")


def _origin(report: Report) -> str:
    return f"Commit `{str(report.get('commit', 'unknown'))[:12]}`, {report.get('date', 'no date')}.\n"


def _summary(results: Mapping[str, Report]) -> str:
    rows: list[tuple[str, str]] = []
    runs = [row for name in ("random", "disturbed", "coverage") if name in results for row in results[name]["results"]]
    if runs:
        rows.append(("random instructions, RTL against fsim", f"{sum(r['instructions'] for r in runs):,}"))
        rows.append(("mismatches", f"{sum(r['mismatches'] for r in runs):,}"))
        rows.append(("configurations", f"{len({r['config_hash'] for r in runs})}"))
    if "faults" in results:
        trials = sum(sum(r["trials"].values()) for r in results["faults"]["results"])
        rows.append(("injected faults (damaged streams, lost tokens, bus errors, resets)", f"{trials:,}"))
    if "coverage" in results:
        row = results["coverage"]["results"][0]
        rows.append(("functional bins filled", _share(row["bins"]["filled"], row["bins"]["declared"])))
        rows.append(("lines of SystemVerilog", f"{row['lines']['percent']} %"))
    if "formal" in results:
        formal = results["formal"]["results"]
        proved, stated = sum(r["proved"] for r in formal), sum(len(r["properties"]) for r in formal)
        rows.append(("properties proved for runs of any length", _share(proved, stated)))
    if "mutation" in results:
        planted = [mutant for result in results["mutation"]["results"] for mutant in result["mutants"]]
        caught = sum(mutant["caught_by"] is not None for mutant in planted)
        rows.append(("faults planted in the RTL and caught", _share(caught, len(planted))))
    if "exhaustion" in results:
        tried = results["exhaustion"]["results"]
        rows.append(("pairs of operands tried on every multiplier cell", f"{min(r['pairs'] for r in tried):,}"))
        points = sum(r["grid"] + r["points"] for r in tried)
        rows.append(("requantizations, RTL against the rule in wide integers", f"{points:,}"))
    return "## At a glance\n" + table(("what", "figure"), rows, left=1)


def _random(title: str, text: str) -> Callable[[Report], str]:
    def section(report: Report) -> str:
        rows = [
            (
                f"`{r['config']}` {r['label']}", _seeds(r["seeds"]), r.get("programs"), r["instructions"],
                ", ".join(r.get("stalls", ())), r["mismatches"],
                _share(r["bins"]["filled"], r["bins"]["declared"]) if "bins" in r else None,
            )
            for r in report["results"]
        ]  # fmt: skip
        columns = ("configuration", "seeds", "programs", "instructions", "stalls", "mismatches", "bins filled")
        return f"## {title}\n{text}\n\n" + table(columns, rows) + "\n" + _origin(report)

    return section


def _seeds(seeds: Sequence[int]) -> str:
    if len(seeds) > 2 and list(seeds) == list(range(seeds[0], seeds[-1] + 1)):
        return f"{seeds[0]}..{seeds[-1]}"
    return ", ".join(map(str, seeds))


def _faults(report: Report) -> str:
    kinds = sorted({kind for r in report["results"] for kind in r["trials"]})
    rows = [
        (f"`{r['config']}` {r['label']}", *(r["trials"].get(kind, 0) for kind in kinds), r["mismatches"])
        for r in report["results"]
    ]
    outcomes: dict[str, int] = {}
    for r in report["results"]:
        for name, count in r["outcomes"].items():
            outcomes[name] = outcomes.get(name, 0) + count
    text = (
        "## Injected faults\nEvery run must end within its bound, write nothing outside its buffers, report the cause, and leave a core "
        "that runs the next program exactly.\n\n"
    )
    text += table(("configuration", *kinds, "faults missed"), rows)
    return text + "\n" + table(("how they ended", "runs"), sorted(outcomes.items())) + "\n" + _origin(report)


def _coverage(report: Report) -> str:
    rows = [
        (
            f"`{r['config']}` {r['label']}", _share(r["bins"]["filled"], r["bins"]["declared"]),
            _share(r["lines"]["covered"], r["lines"]["total"]), r["lines"]["excluded"],
            _share(r["toggles"]["covered"], r["toggles"]["total"]), r["toggles"]["excluded"],
        )
        for r in report["results"]
    ]  # fmt: skip
    columns = ("configuration", "functional bins", "lines", "excluded", "toggles", "excluded")
    text = "## Coverage\nBins are declared in `openvta.spec.bins`; exclusions stand with their reasons in `hardware/chisel/lint`.\n\n"
    text += table(columns, rows)
    missed = sorted({line for r in report["results"] for line in r["lines"]["missed"]})
    if missed:
        text += "\nLines missed:\n" + "".join(f"- `{line}`\n" for line in missed[:40])
    return text + "\n" + _origin(report)


def _formal(report: Report) -> str:
    rows = [
        (f"{p['harness']}.{p['name']}", p["text"], p["method"], p["depth"], p["cover"], "; ".join(p["mutants"]))
        for result in report["results"]
        for p in result["properties"]
    ]
    columns = ("property", "what it says", "method", "depth", "cover trace, cycles", "some of the mutants it kills")
    text = (
        "## Properties\nProved for runs of any length on the SystemVerilog that is simulated; a property counts when a trace shows that "
        "it can be met, and when it refutes at least one mutant. Depth: cycles of the induction step, or clauses of the invariant.\n\n"
    )
    failed = [f"- {failure}\n" for result in report["results"] for failure in result["failures"]]
    return text + table(columns, rows, left=3) + "\n" + "".join(failed) + _origin(report)


def _mutation(report: Report) -> str:
    mutants = [mutant for result in report["results"] for mutant in result["mutants"]]
    rows = [(f"`{m['name']}`", m["unit"], m["text"], m["known"], m["caught_by"] or "NOT CAUGHT") for m in mutants]
    columns = ("planted fault", "part", "what is wrong", "the original's defect of this kind", "caught by")
    text = "## Planted faults\nPut into a copy of the RTL one at a time; the campaigns above must see each.\n\n"
    seen = "".join(f"- `{m['name']}`: {m['seen']}\n" for m in mutants)
    return text + table(columns, rows, left=5) + "\nWhat they said:\n" + seen + "\n" + _origin(report)


def _exhaustion(report: Report) -> str:
    rows = [
        (
            f"`{r['config']}` {r['label']}", r["pairs"], r["cells"], r["products"], r["grid"], r["points"], r["against_spec"],
            r["mismatches"],
        )
        for r in report["results"]
    ]  # fmt: skip
    columns = (
        "configuration", "pairs", "multiplier cells", "products", "requantizer: corner grid", "random points",
        "of both against the specification", "mismatches",
    )  # fmt: skip
    text = (
        "## Exhaustion\nEvery pair of 8-bit operands on every cell of the array, in GEMM instructions; the requantizer's lane on a "
        "grid of corners and on random points in all modes, against the rule in 128-bit integers, which is itself compared with the "
        "specification's scalar arithmetic on the grid and on the first random points.\n\n"
    )
    return text + table(columns, rows) + "\n" + _origin(report)


def _ledger(ledger: Sequence[Report]) -> str:
    rows = [
        (
            line.get("date"), f"`{str(line.get('commit'))[:12]}`", line.get("campaign"), line.get("config"),
            _seeds(line.get("seeds", ())), line.get("instructions"), line.get("mismatches"),
        )
        for line in ledger
    ]  # fmt: skip
    columns = ("date", "commit", "campaign", "configuration", "seeds", "instructions", "mismatches")
    return "## Ledger\nEvery campaign that was run for the record, oldest first.\n\n" + table(columns, rows, left=4)


SECTIONS: Mapping[str, Callable[[Report], str]] = {
    "random": _random("Random programs", "RTL and fsim are compared after every retired instruction and at the end."),
    "disturbed": _random(
        "Disturbed programs", "The same under random stalls on the bus and inside, from random initial state."
    ),
    "faults": _faults,
    "coverage": _coverage,
    "formal": _formal,
    "mutation": _mutation,
    "exhaustion": _exhaustion,
}
