# SPDX-License-Identifier: Apache-2.0
"""The demo's HTML page, drawn from report.json alone: digits with predictions, a chart of the layers, the figures."""

from __future__ import annotations

import base64
import html
import struct
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

Report = Mapping[str, Any]

_STYLE = """
:root { --ink: #1c2430; --soft: #66707f; --line: #dfe4ea; --bar: #2f6fdf; --bar2: #9fc0f5; --ok: #1d8a4e; --bad: #c23b3b; --page: #fbfcfd; }
* { box-sizing: border-box; }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--page); }
body { margin: 0 auto; max-width: 1080px; padding: 28px 24px 60px; }
h1 { font-size: 26px; margin: 0 0 4px; } h2 { font-size: 19px; margin: 36px 0 8px; } p { margin: 6px 0; color: var(--soft); }
.cards { display: flex; gap: 12px; flex-wrap: wrap; margin: 16px 0; }
.card { border: 1px solid var(--line); border-radius: 8px; background: #fff; padding: 10px 16px; min-width: 150px; }
.card b { display: block; font-size: 21px; } .card span { color: var(--soft); font-size: 13px; }
.digits { display: grid; grid-template-columns: repeat(10, 1fr); gap: 8px; }
.digit { text-align: center; border: 1px solid var(--line); border-radius: 6px; background: #fff; padding: 6px 4px 2px; font-size: 13px; }
.digit img { width: 100%; image-rendering: pixelated; border-radius: 3px; display: block; }
.ok { color: var(--ok); } .bad { color: var(--bad); font-weight: 600; }
table { border-collapse: collapse; width: 100%; font-size: 13.5px; background: #fff; }
th, td { text-align: right; padding: 4px 10px; border-bottom: 1px solid var(--line); }
th { color: var(--soft); font-weight: 500; } th:first-child, td:first-child, td.text { text-align: left; }
.track { background: #edf1f6; border-radius: 3px; height: 12px; width: 240px; position: relative; }
.fill { background: var(--bar); border-radius: 3px; height: 12px; }
code { font-size: 13px; }
"""


def png(pixels: Sequence[int], width: int) -> bytes:
    """A grey-scale PNG of row-major pixels (0..255)."""
    height = len(pixels) // width
    rows = b"".join(b"\0" + bytes(pixels[y * width : (y + 1) * width]) for y in range(height))

    def chunk(kind: bytes, data: bytes) -> bytes:
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b"")


def _card(value: str, label: str) -> str:
    return f'<div class="card"><b>{html.escape(value)}</b><span>{html.escape(label)}</span></div>'


def _digit(sample: Report) -> str:
    image = base64.b64encode(png(bytes.fromhex(sample["pixels"]), sample["width"])).decode()
    right = sample["prediction"] == sample["label"]
    mark = f'<span class="{"ok" if right else "bad"}">{sample["prediction"]}</span>'
    note = "" if right else f" (is {sample['label']})"
    return f'<div class="digit"><img alt="digit" src="data:image/png;base64,{image}">{mark}{note}</div>'


def _layer_rows(layers: Sequence[Report]) -> str:
    longest = max((layer["cycles"] or 0 for layer in layers), default=0) or 1
    rows = []
    for layer in layers:
        cycles = layer["cycles"]
        share = 100 * (cycles or 0) / longest
        used = "" if layer["utilization"] is None else f"{100 * layer['utilization']:.1f} %"
        rows.append(
            f'<tr><td>{html.escape(layer["name"])}</td><td class="text">{html.escape(layer["op"])}</td>'
            f'<td class="text">{html.escape(layer["where"])}</td>'
            f"<td>{layer['macs']:,}</td><td>{'' if cycles is None else f'{cycles:,}'}</td><td>{used}</td>"
            f'<td class="text"><div class="track"><div class="fill" style="width:{share:.1f}%"></div></div></td></tr>'
        )
    return "\n".join(rows)


def _model(name: str, model: Report, peak: int) -> str:
    compared = model["logits_equal_onnxruntime"]
    total = model["logits"]
    cards = "".join(
        (
            _card(f"{100 * model['accuracy']:.1f} %", f"of {model['images']:,} test digits right"),
            _card(
                f"{model['logits_equal_reference']:,} / {total:,}",
                "logits on the simulator equal to the integer reference",
            ),
            _card(f"{compared:,} / {total:,}", "logits equal to onnxruntime, graph optimisation off"),
            _card(f"{model['rtl_equal_fsim']} / {model['rtl_images']}", "images on the RTL equal to the simulator"),
            _card(f"{model['cycles']:,}", "RTL cycles an image"),
        )
    )
    digits = "".join(_digit(sample) for sample in model["samples"])
    return f"""
<h2>{html.escape(name)}</h2>
<p>{html.escape(model["description"])}</p>
<div class="cards">{cards}</div>
<div class="digits">{digits}</div>
<p>Predictions of the simulator; green is right. The last ones are digits it got wrong.</p>
<table><tr><th>layer</th><th class="text" style="text-align:left">operator</th><th style="text-align:left">where</th><th>MAC</th>
<th>cycles</th>
<th>MAC utilization</th><th style="text-align:left">cycles, drawn</th></tr>
{_layer_rows(model["layers"])}
</table>
<p>Cycles are the RTL's own: from the last retired instruction of the layer before to the layer's last. Utilization is
MAC / (cycles &times; {peak}).</p>
"""


def render(report: Report) -> str:
    """The page as one self-contained HTML document."""
    sections = "".join(_model(name, model, report["macs_per_cycle"]) for name, model in report["models"].items())
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>OpenVTA demo</title><style>{_STYLE}</style></head><body>
<h1>OpenVTA demo</h1>
<p>Trained ResNet-8 digit networks, compiled from quantized ONNX to one instruction stream each, run on the functional
simulator and on the Chisel RTL under Verilator. Configuration
<code>{html.escape(report["config"])}</code>, hash
<code>{html.escape(report["config_hash"])}</code>,
commit <code>{html.escape(report["commit"])}</code>.</p>
{sections}
</body></html>
"""
