# SPDX-License-Identifier: Apache-2.0
"""`openvta verify formal`: every property of hardware/formal, with its proof, its cover trace and the mutants it catches."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import Any

from openvta.cli import console
from openvta.sim.cosim.build import elaborate
from openvta.sim.formal import campaign
from openvta.sim.verify.configs import configuration
from openvta.spec import hash_text


def run_formal(name: str) -> dict[str, Any]:
    """Properties of a configuration as JSON; ``failures`` says which do not count, and why."""
    config = configuration(name)
    started = time.monotonic()
    design = elaborate(config, progress=console.say)
    found = campaign.run_all(design, progress=console.say)
    return {
        "config": name, "config_hash": hash_text(config), "label": config.label, "seeds": [1],
        "seconds": round(time.monotonic() - started, 1),
        "properties": [asdict(item) for item in found],
        "proved": sum(not item.faults for item in found),
        "mismatches": sum(bool(item.faults) for item in found),
        "failures": [f"{item.harness}.{item.name} ({item.text}): {', '.join(item.faults)}" for item in found if item.faults],
    }  # fmt: skip


def line(result: dict[str, Any]) -> str:
    """A result in a line and a table."""
    rows = [
        f"  {item['harness']}.{item['name']}: {item['method']} {item['depth']}, {item['seconds']} s, cover in cycle {item['cover']}, "
        f"{len(item['mutants'])} mutants"
        for item in result["properties"]
    ]
    head = f"formal on {result['config']} ({result['label']}): {result['proved']} of {len(result['properties'])} properties proved "
    return "\n".join(
        [head + f"for every run, each with a cover trace and a mutant it kills, in {result['seconds']} s", *rows]
    )
