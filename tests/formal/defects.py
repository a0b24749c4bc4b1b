# SPDX-License-Identifier: Apache-2.0
"""Defects planted in the SystemVerilog, among them those known from the original, and the property that must name each."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Defect:
    """A change of one module's text: ``pattern`` must match exactly once; ``known``: the original had it."""

    name: str
    harness: str
    pattern: str
    replacement: str
    breaks: str
    known: bool = False


DEFECTS = (
    Defect("a token is taken that is not there", "token_queue", r"taken = io_pop & \w+;", "taken = io_pop;", "count"),
    Defect(
        "tokens beyond the depth vanish in silence", "token_queue", r"assign io_overflow = .*;",
        "assign io_overflow = 1'b0;", "overflow", known=True,
    ),
    Defect(
        "bursts are not cut at their window", "burst_generator", r"7'h40 - \{1'h0, address\[5:0\]\}", "7'h40", "window",
        known=True,
    ),
    Defect(
        "BREADY follows BVALID instead of the client", "write_engine", r"(wire +io_axi_b_ready_0 =)[^;]*;",
        r"\1 io_axi_b_valid;", "answer", known=True,
    ),
    Defect(
        "a response of before the reset reaches the client", "write_engine", r"assign io_client_b_valid = .*;",
        "assign io_client_b_valid = io_axi_b_valid;", "epoch",
    ),
    Defect(
        "a beat goes to a client whatever its id", "read_engine", r"assign io_clients_2_data_valid = .*;",
        "assign io_clients_2_data_valid = io_axi_r_valid;", "route", known=True,
    ),
    Defect("an unknown opcode is not noticed", "decoder", r": 8'h1;", ": 8'h0;", "opcode", known=True),
    Defect("an error is forgotten", "error_collector", r"\bvalid <= (\w+) \| valid;", r"valid <= \1;", "sticky"),
)  # fmt: skip


def plant(defect: Defect, module: str, design: Path) -> None:
    """Change ``module`` in a file of SystemVerilog.

    Raises:
        ValueError: the text to change is not there, or is there more than once.
    """
    text = design.read_text("utf-8")
    start = text.index(f"\nmodule {module}(")
    end = text.index("\nendmodule", start)
    changed, count = re.subn(defect.pattern, defect.replacement, text[start:end])
    if count != 1:
        raise ValueError(f"{module}: {count} places match {defect.pattern!r}: adapt the defect '{defect.name}'")
    design.write_text(text[:start] + changed + text[end:], "utf-8")
