# SPDX-License-Identifier: Apache-2.0
"""The report as one HTML page without scripts: figures, waterfall, layers, roofline, units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from openvta.cli.reporting.charts import COLOURS, layer_bars, roofline, waterfall_bars
from openvta.cli.reporting.waterfall import STEPS, unit_counters, waterfall

Record = Mapping[str, Any]

_STYLE = """
:root { color-scheme: light dark; --ink: #1b2430; --soft: #5f6b7a; --line: #dde3ea; --page: #f7f9fb; --card: #fff;
  --use: #2f6fdf; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6ebf2; --soft: #98a4b3; --line: #2c3643; --page: #12171e; --card: #1a212b; --use: #6b9df5; } }
* { box-sizing: border-box; }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--page); margin: 0 auto;
  max-width: 1080px; padding: 28px 24px 60px; }
h1 { font-size: 26px; margin: 0 0 4px; } h2 { font-size: 20px; margin: 40px 0 6px; } h3 { font-size: 16px;
  margin: 26px 0 6px; }
p { color: var(--soft); margin: 4px 0 10px; max-width: 75ch; }
.cards { display: flex; flex-wrap: wrap; gap: 12px; margin: 14px 0; }
.card { border: 1px solid var(--line); border-radius: 8px; background: var(--card); padding: 10px 16px;
  min-width: 150px; }
.card b { display: block; font-size: 22px; font-variant-numeric: tabular-nums; } .card span { color: var(--soft);
  font-size: 13px; }
figure { margin: 0; border: 1px solid var(--line); border-radius: 8px; background: var(--card); padding: 14px;
  overflow-x: auto; }
svg { display: block; width: 100%; min-width: 640px; height: auto; } svg text { fill: var(--ink);
  font: 12px system-ui, sans-serif; } svg .soft { fill: var(--soft); }
svg .axis { stroke: var(--line); } svg .roof { stroke: var(--ink); stroke-width: 1.6; fill: none; }
  svg .use { fill: var(--use); }
.key { display: flex; flex-wrap: wrap; gap: 4px 16px; font-size: 13px; color: var(--soft); margin: 8px 0 0; }
  .key i { display: inline-block; width: 11px; height: 11px; border-radius: 2px; margin-right: 5px; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; width: 100%; font-size: 13.5px;
  background: var(--card); font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: 4px 10px; border-bottom: 1px solid var(--line); white-space: nowrap; }
  th { color: var(--soft); font-weight: 500; }
th:first-child, td:first-child { text-align: left; }
"""


def page(title: str, records: Mapping[str, Record]) -> str:
    """Return the page."""
    body = "".join(_run(run, record) for run, record in records.items())
    head = f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(title)}</title>'
    head += f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style>'
    return f"{head}<h1>{escape(title)}</h1><p>Every cycle of the run has one reason.</p>{body}</html>\n"


def _card(value: str, label: str) -> str:
    return f'<div class="card"><b>{escape(value)}</b><span>{escape(label)}</span></div>'


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f'<div class="scroll"><table><tr>{head}</tr>{body}</table></div>'


def _run(run: str, record: Record) -> str:
    peak, layers = record["macs_per_cycle"], record["layers"]
    whole = waterfall(layers, peak)
    read = sum(value for name, value in record["counters"].items() if name.endswith("_bytes"))
    cards = [
        _card(f"{whole.reached:.1%}".replace("%", " %"), "of peak"),
        _card(f"{whole.cycles:,}", "cycles"),
        _card(f"{round(whole.useful):,}", "cycles at peak"),
        _card(
            f"{read / whole.cycles:.2f}" if whole.cycles else "-", f"bytes a cycle; bus {record['bus_bytes']} each way"
        ),
    ]
    used = [step.name for step in whole.steps if step.cycles]
    key = '<div class="key"><span><i style="background:var(--use)"></i>multiply-accumulates</span>' + "".join(
        f'<span><i style="background:{COLOURS[name]}"></i>{escape(name)}: {escape(meaning)}</span>'
        for name, meaning, _ in STEPS
        if name in used
    )
    rows = []
    for layer in layers:
        own = waterfall([layer], peak)
        lost = {step.name: step.cycles for step in own.steps}
        losses = [f"{lost[name]:,}" if lost[name] else "" for name in used]
        rows.append([layer["name"], f"{own.cycles:,}", f"{own.reached:.1%}", f"{layer['bytes']:,}", *losses])
    units = [[f"{unit} {what}", f"{cycles:,}", f"{share:.1%}"] for unit, what, cycles, share in unit_counters(record)]
    return (
        f"<h2>{escape(run)} memory</h2><div class='cards'>{''.join(cards)}</div>"
        f"<h3>From peak to reached</h3><figure>{waterfall_bars(whole)}</figure>"
        f"<h3>Layers</h3><figure>{layer_bars(layers, peak)}{key}</div></figure>"
        "<h3>Roofline</h3><p>Multiply-accumulates a cycle over multiply-accumulates a byte moved; a layer on the roof "
        f"could not be faster.</p><figure>{roofline(layers, peak, record['bus_bytes'])}</figure>"
        f"<h3>Layers in figures</h3>{_table(['layer', 'cycles', 'of peak', 'bytes', *used], rows)}"
        f"<h3>Units</h3>{_table(['unit and state', 'cycles', 'of run'], units)}"
    )
