# SPDX-License-Identifier: Apache-2.0
"""Where cycles go: hand-made events with known answers; waterfall, timeline and page of a small run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from openvta.cli.benchmarks.network import network_graph, residual_stages
from openvta.cli.main import main
from openvta.cli.reporting import ReportError
from openvta.cli.reporting.page import page
from openvta.cli.reporting.perfetto import nesting_fault, trace_events
from openvta.cli.reporting.tables import bar
from openvta.cli.reporting.waterfall import unit_counters, waterfall
from openvta.cli.timeline import run_record
from openvta.cli.timing import TimingError, analyse
from openvta.compiler.pipeline import compile_graph
from openvta.driver.result import LaunchResult, gemm_uops, layer_cycles
from openvta.spec import load_config
from openvta.spec.bundle import Bundle
from openvta.spec.isa import Opcode, Unit

LAYERS = residual_stages(6, (8, 8), repeats=1)


@pytest.fixture(scope="module")
def bundle() -> Bundle:
    return compile_graph(network_graph(LAYERS, 1), load_config("tiny"), strict=True).bundle


def one_after_the_other(bundle: Bundle, wait: int = 3) -> LaunchResult:
    """A launch in which every instruction takes its micro-ops, or ``wait`` cycles, and nothing overlaps."""
    now = 0
    events, ends = [], []
    for index, insn in enumerate(bundle.segments[0].program.insns()):
        uops = gemm_uops(insn)
        now += uops or wait
        if uops:
            ends.append(now + 100)
        events.append((now + 100, int(insn.unit), index))
    return LaunchResult(0, {"cycles": now, "load_busy": now // 2, "inp_load_bytes": 64}, events, ends)


def test_every_cycle_has_a_reason(bundle: Bundle) -> None:
    launch = one_after_the_other(bundle)
    timing = analyse(bundle, launch)
    assert [layer.name for layer in timing.layers] == [layer.name for layer in LAYERS]
    assert sum(layer.cycles for layer in timing.layers) == timing.cycles == launch.counters["cycles"]
    assert layer_cycles(bundle, [launch]) == {layer.name: layer.cycles for layer in timing.layers}
    for layer in timing.layers:
        assert layer.cycles == layer.uops + sum(layer.stalls.values())
        assert min(layer.stalls.values()) >= 0
    stalls = timing.stalls()
    insns = bundle.segments[0].program.insns()
    assert min(stalls[reason] for reason in ("fill", "requant", "constants", "other", "drain")) > 0
    assert stalls["alu"] == stalls["store"] == 0
    waits = next(k for k, insn in enumerate(insns) if insn.unit is Unit.COMPUTE and insn["pop_prev"])
    slow = [
        (cycle + (500 if unit == Unit.LOAD or index >= waits else 0), unit, index)
        for cycle, unit, index in launch.events
    ]
    ends = [launch.gemm_ends[0], *(end + 500 for end in launch.gemm_ends[1:])]
    found = analyse(bundle, LaunchResult(0, {"cycles": timing.cycles + 500}, slow, ends))
    assert found.stalls()["load"] >= 500 - 60


def test_requantization_beside_the_next_gemm_costs_nothing(bundle: Bundle) -> None:
    launch = one_after_the_other(bundle)
    insns = bundle.segments[0].program.insns()
    late = [(c + (10_000 if insns[i].opcode is Opcode.REQUANT else 0), u, i) for c, u, i in launch.events]
    longest = max(c for c, _, _ in late)
    late[-1] = (longest + 1, late[-1][1], late[-1][2])
    moved = LaunchResult(0, {"cycles": longest + 1 - 100}, late, launch.gemm_ends)
    assert analyse(bundle, moved).stalls()["requant"] == 0


def test_events_that_do_not_fit_are_refused(bundle: Bundle) -> None:
    launch = one_after_the_other(bundle)
    with pytest.raises(TimingError, match=r"the ends of 0 GEMM only; use the device 'cosim'"):
        analyse(bundle, LaunchResult(0, launch.counters, launch.events))
    with pytest.raises(TimingError, match=r"reported 1 GEMM ends more than the program has"):
        analyse(bundle, LaunchResult(0, launch.counters, launch.events, [*launch.gemm_ends, 10**6]))
    with pytest.raises(TimingError, match="no retired instructions"):
        analyse(bundle, LaunchResult(0, {}, []))


def test_waterfall_and_timeline(bundle: Bundle) -> None:
    launch = one_after_the_other(bundle)
    record = run_record(bundle, launch, analyse(bundle, launch))
    whole = waterfall(record["layers"], record["macs_per_cycle"])
    assert whole.steps[-1].left == pytest.approx(whole.reached)
    assert sum(step.cycles for step in whole.steps) == pytest.approx(whole.cycles - whole.useful, abs=1)
    assert unit_counters(record) == [("load", "busy", whole.cycles // 2, pytest.approx(0.5, abs=0.01))]
    trace = trace_events({"ideal": record})
    assert nesting_fault(trace) is None
    names = {event["name"] for event in trace["traceEvents"] if event["ph"] == "X"}
    assert {layer.name for layer in LAYERS} | {"gemm", "requant", "load inp", "store out"} <= names
    broken: dict[str, Any] = {**record["layers"][0], "end": record["layers"][0]["end"] + 50}
    with pytest.raises(ReportError, match=r"50 of .* cycles have no reason"):
        waterfall([broken], record["macs_per_cycle"])
    text = page("small <net>", {"ideal": record})
    assert "small &lt;net&gt;" in text and text.count("<svg") == 3
    for layer in LAYERS:
        assert layer.name in text


def test_overlapping_slices_are_found() -> None:
    def piece(name: str, start: int, cycles: int) -> dict[str, Any]:
        return {"ph": "X", "pid": 1, "tid": 1, "name": name, "ts": start, "dur": cycles}

    assert nesting_fault({"traceEvents": [piece("a", 0, 10), piece("b", 2, 8), piece("c", 10, 5)]}) is None
    fault = nesting_fault({"traceEvents": [piece("a", 0, 10), piece("b", 5, 10)]})
    assert fault is not None and "'b' from 5 to 15 leaves 'a'" in fault


def test_bars() -> None:
    assert bar(1, 4) == "████" and bar(0, 4) == "" and bar(0.5, 1) == "▌" and bar(7, 2) == "██"


def test_the_command(bundle: Bundle, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    launch = one_after_the_other(bundle)
    record = run_record(bundle, launch, analyse(bundle, launch))
    source = tmp_path / "bench.json"
    source.write_text(json.dumps({"benchmark": "small", "config": "tiny", "runs": {"ideal": record}}))
    html, trace = tmp_path / "page.html", tmp_path / "trace.json"
    assert main(["report", str(source), "--html", str(html), "--trace", str(trace)]) == 0
    shown = capsys.readouterr().out
    assert "from peak to reached" in shown and "requantization" in shown and "s2d" in shown
    assert html.read_text().startswith("<!doctype html>")
    assert nesting_fault(json.loads(trace.read_text())) is None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("no json", "neither a bundle nor JSON"),
        ("{}", "no 'runs' in it: give a bundle"),
        ('{"runs": {"ideal": {"cycles": 1}}}', "run 'ideal' has no 'macs_per_cycle': the file is damaged"),
    ],
)
def test_files_no_report_can_be_made_of(
    content: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "x.json"
    source.write_text(content)
    assert main(["report", str(source)]) == 2
    assert message in capsys.readouterr().err
