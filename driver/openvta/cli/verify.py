# SPDX-License-Identifier: Apache-2.0
"""`openvta verify`: random programs, faults and coverage on the RTL against fsim, as JSON and as ledger lines."""

from __future__ import annotations

import argparse
import datetime
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from openvta.cli import console, verification_page, verify_exhaustion, verify_formal
from openvta.cli.commit import commit
from openvta.cli.main import EXIT_NO
from openvta.sim.verify.configs import configuration
from openvta.spec import SpecError, hash_text
from openvta.spec.bins import STALLS, bins

EXAMPLE = "openvta verify random --config tiny --config random-3 --instructions 20000 --json random.json"
SCHEMA = 1
CAMPAIGNS = {
    "random": "random programs, compared after every retired instruction",
    "disturbed": "the same with random stalls on the bus and inside only",
    "faults": "damaged streams, lost tokens, bus errors, lost responses, soft resets in any cycle",
    "coverage": "random programs with line and toggle coverage",
    "formal": "properties of the control logic, proved for every run",
    "mutation": "faults planted in a copy of the RTL, to be caught by random programs or injected faults",
    "exhaustion": "every pair of the multiplier cells, and the requantizer on its grid and many random points",
}
WHAT = {**CAMPAIGNS, "page": "the page that shows the results of all campaigns"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    parser.add_argument(
        "campaign", choices=[*sorted(CAMPAIGNS), "page"], help="; ".join(f"{k}: {v}" for k, v in WHAT.items())
    )
    parser.add_argument(
        "--config",
        action="append",
        metavar="NAME",
        help="a name, a TOML file or random-SEED; may be given again (tiny)",
    )
    parser.add_argument("--seed", type=int, default=1, help="first seed (default 1)")
    parser.add_argument("--seeds", type=int, default=1, help="how many seeds, each in a fresh simulator (default 1)")
    parser.add_argument("--instructions", type=int, default=10_000, help="instructions a configuration (default 10000)")
    parser.add_argument(
        "--points", type=int, default=100_000_000, help="exhaustion: random points of the requantizer (default 10^8)"
    )
    parser.add_argument("--trials", type=int, default=200, help="faults a configuration (default 200)")
    parser.add_argument(
        "--sweep", type=int, default=0, metavar="CYCLES",
        help="faults: also every beat of a short program, and a soft reset in each of so many cycles",
    )  # fmt: skip
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results to FILE")
    parser.add_argument("--ledger", type=Path, metavar="FILE", help="append a line a configuration to FILE")
    parser.add_argument(
        "--results", type=Path, metavar="DIR", default=Path("docs/verification"),
        help="page: the campaigns' result files and ledger (docs/verification)",
    )  # fmt: skip
    parser.add_argument(
        "--out", type=Path, metavar="FILE", default=Path("docs/verification.md"), help="page: (docs/verification.md)"
    )


def run(options: argparse.Namespace) -> int:
    """Run, show, write; 1 if anything did not agree."""
    if options.campaign == "page":
        return _page(options)
    for name in ("seeds", "instructions", "trials", "points"):
        if getattr(options, name) < 1:
            raise SpecError(f"--{name} = {getattr(options, name)}: must be at least 1")
    if options.sweep < 0:
        raise SpecError(f"--sweep = {options.sweep}: must be at least 0")
    if options.seed < 0:
        raise SpecError(f"--seed = {options.seed}: must be at least 0")
    names = options.config or ["tiny"]
    for name in names:
        configuration(name)
    seeds = tuple(range(options.seed, options.seed + options.seeds))
    results = [_CAMPAIGNS[options.campaign](name, seeds, options) for name in names]
    report: dict[str, Any] = {
        "schema": SCHEMA,
        "campaign": options.campaign,
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%MZ"),
        "commit": commit(),
        "results": results,
    }
    for result in results:
        console.out(_line(options.campaign, result))
        for failure in result["failures"]:
            console.out(failure)
    if options.json is not None:
        console.write_file(options.json, json.dumps(report, indent=1) + "\n")
    if options.ledger is not None:
        _append(options.ledger, report)
    return EXIT_NO if any(result["failures"] for result in results) else 0


def _page(options: argparse.Namespace) -> int:
    results = verification_page.read_results(options.results)
    ledger = verification_page.read_ledger(options.results / verification_page.LEDGER)
    console.write_file(options.out, verification_page.page(results, ledger))
    console.out(f"{options.out}: {', '.join(results)}; {len(ledger)} campaigns in the ledger")
    return 0


def _line(campaign: str, result: dict[str, Any]) -> str:
    if campaign == "formal":
        return verify_formal.line(result)
    if campaign == "exhaustion":
        return verify_exhaustion.line(result)
    if campaign == "mutation":
        caught = len(result["mutants"]) - result["mismatches"]
        return f"mutation on {result['config']}: {caught} of {len(result['mutants'])} planted faults caught in {result['seconds']} s"
    what = f"{campaign} on {result['config']} ({result['label']}), seeds {', '.join(map(str, result['seeds']))}: "
    if "trials" in result:
        what += f"{sum(result['trials'].values())} faults, "
    what += f"{result['instructions']} instructions, {result['mismatches']} mismatches in {result['seconds']} s"
    if "bins" in result:
        what += f"; bins {result['bins']['filled']} of {result['bins']['declared']}"
    if "lines" in result:
        what += f"; lines {result['lines']['percent']} %, toggles {result['toggles']['percent']} %"
    return what


def _head(name: str, seeds: tuple[int, ...], result: Any) -> dict[str, Any]:
    return {
        "config": name, "config_hash": hash_text(configuration(name)), "label": result.label, "seeds": list(seeds),
        "instructions": result.instructions, "mismatches": len(result.failures), "seconds": round(result.seconds, 1),
        "failures": [str(failure) for failure in result.failures],
    }  # fmt: skip


def _random(name: str, seeds: tuple[int, ...], options: argparse.Namespace) -> dict[str, Any]:
    from openvta.sim.verify.campaign import DISTURBED, run_config

    stalls = DISTURBED if options.campaign == "disturbed" else STALLS
    result = run_config(name, seeds, options.instructions, stalls=stalls, progress=console.say)
    report = {**_head(name, seeds, result), "programs": result.programs, "stalls": list(stalls)}
    if options.campaign == "random":
        missing = result.missing()
        total = len(bins(configuration(name)))
        report["bins"] = {"declared": total, "filled": total - len(missing), "missing": missing}
    return report


def _faults(name: str, seeds: tuple[int, ...], options: argparse.Namespace) -> dict[str, Any]:
    from openvta.sim.verify.faults import run_faults

    result = run_faults(name, seeds, options.trials, sweep=options.sweep, progress=console.say)
    return {
        **_head(name, seeds, result), "trials": dict(result.trials), "outcomes": dict(sorted(result.outcomes.items())),
    }  # fmt: skip


def _coverage(name: str, seeds: tuple[int, ...], options: argparse.Namespace) -> dict[str, Any]:
    from openvta.sim.verify.linecoverage import measure

    result, lines, toggles = measure(name, seeds, options.instructions, options.trials, progress=console.say)
    missing = result.missing()
    total = len(bins(configuration(name)))
    return {
        **_head(name, seeds, result), "programs": result.programs, "stalls": list(STALLS),
        "bins": {"declared": total, "filled": total - len(missing), "missing": missing},
        "lines": lines.as_json(), "toggles": toggles.as_json(),
    }  # fmt: skip


def _formal(name: str, seeds: tuple[int, ...], options: argparse.Namespace) -> dict[str, Any]:
    return verify_formal.run_formal(name)


def _mutation(name: str, seeds: tuple[int, ...], options: argparse.Namespace) -> dict[str, Any]:
    from openvta.sim.mutation.catch import catch
    from openvta.sim.mutation.known import FAULTS

    started = time.monotonic()
    caught = catch(configuration(name), FAULTS, seed=seeds[0], progress=console.say)
    missed = [item.fault for item in caught if item.caught_by is None]
    return {
        "config": name, "config_hash": hash_text(configuration(name)), "label": configuration(name).label,
        "seeds": list(seeds[:1]), "seconds": round(time.monotonic() - started, 1), "mismatches": len(missed),
        "failures": [f"planted fault '{fault.name}' ({fault.text}): not caught" for fault in missed],
        "mutants": [
            {
                "name": item.fault.name, "unit": item.fault.unit, "module": item.fault.module, "text": item.fault.text,
                "known": item.fault.known, "caught_by": item.caught_by, "seen": item.text.partition("\n")[0],
            }
            for item in caught
        ],
    }  # fmt: skip


def _exhaustion(name: str, seeds: tuple[int, ...], options: argparse.Namespace) -> dict[str, Any]:
    return verify_exhaustion.run_exhaustion(name, options.points, seeds[0])


_CAMPAIGNS: dict[str, Callable[[str, tuple[int, ...], argparse.Namespace], dict[str, Any]]] = {
    "random": _random,
    "disturbed": _random,
    "faults": _faults,
    "coverage": _coverage,
    "formal": _formal,
    "mutation": _mutation,
    "exhaustion": _exhaustion,
}


def _append(path: Path, report: dict[str, Any]) -> None:
    """One line a configuration: what was run, when, at which commit, and how it ended."""
    kept = (
        "config",
        "config_hash",
        "seeds",
        "instructions",
        "trials",
        "proved",
        "products",
        "points",
        "mismatches",
        "seconds",
    )
    lines = []
    for result in report["results"]:
        line = {name: report[name] for name in ("date", "commit", "campaign")}
        line.update({name: result[name] for name in kept if name in result})
        if "bins" in result:
            line["bins"] = [result["bins"]["filled"], result["bins"]["declared"]]
        for kind in ("lines", "toggles"):
            if kind in result:
                line[kind] = result[kind]["percent"]
        lines.append(json.dumps(line, separators=(",", ":")))
    path.parent.mkdir(parents=True, exist_ok=True)
    before = path.read_text("utf-8") if path.is_file() else ""
    console.write_file(path, before + "\n".join(lines) + "\n")
