# SPDX-License-Identifier: Apache-2.0
"""The page's charts as SVG."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from openvta.cli.reporting.waterfall import Waterfall, waterfall

Record = Mapping[str, Any]
WIDTH = 1000
COLOURS = {
    "padding": "#8d99a8",
    "fill and drain": "#b58bd6",
    "memory": "#e0663d",
    "tokens": "#d9a514",
    "requantization": "#2aa889",
    "constants": "#4fb3d9",
    "ALU": "#c75d8f",
    "other": "#6b7480",
}


def _svg(height: float, parts: Sequence[str]) -> str:
    return f'<svg viewBox="0 0 {WIDTH} {height:.0f}" role="img">{"".join(parts)}</svg>'


def _text(x: float, y: float, text: str, anchor: str = "start", kind: str = "") -> str:
    css = f' class="{kind}"' if kind else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{css}>{escape(text)}</text>'


def _rect(x: float, y: float, width: float, height: float, fill: str, title: str) -> str:
    paint = 'class="use"' if fill == "use" else f'fill="{fill}"'
    return (
        f'<rect x="{x:.2f}" y="{y:.2f}" width="{max(width, 0):.2f}" height="{height:.1f}" {paint}>'
        f"<title>{escape(title)}</title></rect>"
    )


def scale_start(reached: float) -> float:
    """Where a share axis that ends at 1 begins, so that small losses can be seen: 0, 0.5, 0.8 or 0.9."""
    return next((start for start in (0.9, 0.8, 0.5) if reached >= start + 0.02), 0.0)


def waterfall_bars(whole: Waterfall) -> str:
    """From 100 % down, one row a loss."""
    start, left, right, row = scale_start(whole.reached), 150.0, 830.0, 26.0
    shown = [step for step in whole.steps if step.cycles]

    def x(share: float) -> float:
        return left + (right - left) * max(0.0, share - start) / (1 - start)

    parts = [_text(left, 12, f"{start:.0%}", "middle", "soft"), _text(right, 12, "100 %", "middle", "soft")]
    y, before = 20.0, 1.0
    for step in shown:
        parts.append(_text(left - 10, y + 15, step.name, "end"))
        title = f"{step.name}: {step.cycles:,} cycles, {step.meaning}"
        parts.append(_rect(x(step.left), y, max(x(before) - x(step.left), 1.5), row - 6, COLOURS[step.name], title))
        note = f"{step.cycles:,} cycles, {before - step.left:.2%}"
        parts.append(_text(right + 10, y + 15, note, kind="soft"))
        y, before = y + row, step.left
    parts.append(_text(left - 10, y + 15, "reached", "end"))
    parts.append(_rect(left, y, x(whole.reached) - left, row - 6, "use", f"{whole.reached:.2%} of peak"))
    parts.append(_text(right + 10, y + 15, f"{whole.reached:.2%} of peak"))
    return _svg(y + row + 4, parts)


def layer_bars(layers: Sequence[Record], peak: int) -> str:
    """One bar a layer: where its cycles went, as shares."""
    found = [waterfall([layer], peak) for layer in layers]
    start = scale_start(min((one.reached for one in found if one.cycles), default=0.0))
    left, right, row = 150.0, 830.0, 20.0

    def x(share: float) -> float:
        return left + (right - left) * max(0.0, share - start) / (1 - start)

    parts = [_text(left, 12, f"{start:.0%}", "middle", "soft"), _text(right, 12, "100 %", "middle", "soft")]
    y = 20.0
    for layer, one in zip(layers, found, strict=True):
        parts.append(_text(left - 10, y + 12, layer["name"], "end"))
        if one.cycles:
            at = one.reached
            parts.append(_rect(left, y, x(at) - left, row - 5, "use", f"{layer['name']}: {at:.2%} of peak"))
            for step in one.steps:
                share = step.cycles / one.cycles
                if share > 0:
                    title = f"{layer['name']}: {step.name}, {step.cycles:,} cycles"
                    parts.append(_rect(x(at), y, x(at + share) - x(at), row - 5, COLOURS[step.name], title))
                    at += share
            parts.append(_text(right + 10, y + 12, f"{one.reached:.1%}, {one.cycles:,} cycles", kind="soft"))
        y += row
    return _svg(y + 4, parts)


def roofline(layers: Sequence[Record], peak: int, bus_bytes: int) -> str:
    """Layers below the roof of the array and the slope of the bus, both axes logarithmic."""
    points = [
        (layer["name"], layer["macs"] / layer["bytes"], layer["macs"] / (layer["end"] - layer["start"]))
        for layer in layers
        if layer["macs"] and layer["bytes"] and layer["end"] > layer["start"]
    ]
    if not points:
        return _svg(30, [_text(10, 20, "no layer multiplies", kind="soft")])
    knee = peak / bus_bytes
    low = math.log2(min(knee, *(p[1] for p in points))) - 1
    high = math.log2(max(knee, *(p[1] for p in points))) + 1
    bottom = math.log2(min(peak / 4, *(p[2] for p in points))) - 0.3
    top = math.log2(peak) + 0.3
    left, right, height = 70.0, 940.0, 330.0

    def at(intensity: float, speed: float) -> tuple[float, float]:
        px = left + (right - left) * (math.log2(intensity) - low) / (high - low)
        return px, 10 + (height - 40) * (top - math.log2(speed)) / (top - bottom)

    floor = max(2**bottom, 2**low * bus_bytes)
    corners = [at(floor / bus_bytes, floor), at(knee, peak), at(2**high, peak)]
    parts = []
    for power in range(math.ceil(bottom), math.floor(top) + 1):
        y = at(knee, 2.0**power)[1]
        parts.append(f'<line class="axis" x1="{left}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(_text(left - 8, y + 4, f"{2.0**power:g}", "end", "soft"))
    for power in range(math.ceil(low), math.floor(high) + 1):
        parts.append(_text(at(2.0**power, peak)[0], height - 12, f"{2.0**power:g}", "middle", "soft"))
    parts.append('<polyline class="roof" points="' + " ".join(f"{x:.1f},{y:.1f}" for x, y in corners) + '"/>')
    parts.append(_text(right, height + 6, "multiply-accumulates a byte", "end", "soft"))
    for name, intensity, speed in points:
        x, y = at(intensity, speed)
        title = f"{name}: {speed:.1f} a cycle, {intensity:.1f} a byte"
        parts.append(f'<circle class="use" cx="{x:.1f}" cy="{y:.1f}" r="5"><title>{escape(title)}</title></circle>')
    return _svg(height + 14, parts)
