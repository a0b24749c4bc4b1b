# SPDX-License-Identifier: Apache-2.0
"""Run the tests' own campaigns on a core with one planted fault, until one of them sees it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from openvta.sim.cosim.cache import Progress, tell
from openvta.sim.cosim.errors import SimulationFailed
from openvta.sim.mutation.planted import Fault, plant
from openvta.sim.verify.campaign import Result, run_seed
from openvta.sim.verify.faults import FaultCampaign, FaultResult
from openvta.sim.verify.rig import Rig
from openvta.spec import HardwareConfig

INSTRUCTIONS = 6_000
TRIALS = 150


@dataclass(frozen=True)
class Caught:
    """What became of one fault: the campaign that saw it (None: nobody did) and what that said."""

    fault: Fault
    caught_by: str | None
    text: str
    seconds: float


def _campaigns(rig: Rig, seed: int) -> tuple[str | None, str]:
    result = Result(rig.config.name, rig.config.label, (seed,))
    try:
        run_seed(rig, result, seed, INSTRUCTIONS)
    except SimulationFailed as error:
        return "random programs", str(error)
    if result.failures:
        return "random programs", str(result.failures[0])
    faults = FaultResult(rig.config.name, rig.config.label, (seed,))
    try:
        FaultCampaign(rig, seed, faults).run(TRIALS)
    except SimulationFailed as error:
        return "injected faults", str(error)
    return ("injected faults", faults.failures[0]) if faults.failures else (None, "")


def catch(
    config: HardwareConfig, faults: Sequence[Fault], *, seed: int = 1, progress: Progress | None = None
) -> list[Caught]:
    """Every fault on its own, in one build; first of all a run with none, which must find nothing.

    Raises:
        PlantError: an edit that does not fit the RTL, or a build that differs with every fault switched off.
        ToolMissing, BuildFailed: as the names say.
    """
    caught = []
    for number, fault in enumerate([None, *faults]):
        started = time.monotonic()
        arguments = [f"+planted={number}"]
        with Rig(config, seed=seed, change=lambda d: plant(d, faults), arguments=arguments, progress=progress) as rig:
            campaign, text = _campaigns(rig, seed)
        seconds = time.monotonic() - started
        if fault is None:
            if campaign is not None:
                raise SimulationFailed(f"with no planted fault switched on: {text}")
            continue
        caught.append(Caught(fault, campaign, text, seconds))
        tell(progress, f"{fault.name}: {campaign or 'NOT CAUGHT'} after {seconds:.0f} s")
    return caught
