# SPDX-License-Identifier: Apache-2.0
"""Campaigns of random programs: undisturbed, with a disturbed bus, and with stalls inside as well."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from openvta.sim.cosim.cache import Progress, tell
from openvta.sim.cosim.errors import SimulationFailed
from openvta.sim.cosim.session import IDEAL, MemoryModel
from openvta.sim.verify.configs import configuration
from openvta.sim.verify.dump import dump_programs
from openvta.sim.verify.generator import Generator, RandomProgram
from openvta.sim.verify.rig import Mismatch, Rig
from openvta.sim.verify.shrink import shrunk
from openvta.spec.asm import format_program
from openvta.spec.bins import STALLS, bins

LENGTH = 120
DISTURBED = STALLS[1:]
"""The kinds of stall of `openvta verify disturbed`; `openvta verify random` has all of them."""
SLOWEST = 1000
DUMP_EVERY = 8
"""Programs between two comparisons of whole scratchpads."""


@dataclass(frozen=True)
class Failure:
    """A mismatch: what differs, the smallest program that shows it as assembly, and the command that repeats it."""

    config: str
    seed: int
    program: int
    stalls: str
    text: str
    assembly: str
    command: str

    def __str__(self) -> str:
        return (
            f"configuration {self.config}, seed {self.seed}, program {self.program}, stalls {self.stalls}: {self.text}\n"
            f"{self.assembly}\nrepeat with: {self.command}"
        )


@dataclass
class Result:
    """What a campaign did on one configuration. ``filled``: how often each functional bin was met."""

    config: str
    label: str
    seeds: tuple[int, ...]
    programs: int = 0
    instructions: int = 0
    seconds: float = 0.0
    failures: list[Failure] = field(default_factory=list)
    filled: Counter[str] = field(default_factory=Counter)

    def missing(self) -> list[str]:
        """Functional bins of the configuration that were not met."""
        return [name for name in bins(configuration(self.config)) if not self.filled[name]]


def memory_model(stalls: str, rng: np.random.Generator) -> MemoryModel:
    """A random memory for a kind of stall: latency from 1 to 1,000 cycles, most of them short."""
    if stalls == "none":
        return IDEAL
    slow = rng.random() < 0.05
    latency = int(rng.integers(1, 400 if slow else 12))
    return MemoryModel(
        read_latency=latency,
        write_latency=int(rng.integers(1, 400 if slow else 12)),
        outstanding=int(rng.integers(1, 33)),
        spread=int(rng.integers(0, SLOWEST - 400 if slow else 10)),
        stall=int(rng.choice([0, 16, 64, 128, 200])),
        inside=int(rng.choice([8, 32, 64, 128, 200])) if stalls == "inside" else 0,
        disorder=bool(rng.random() < 0.5),
        seed=int(rng.integers(1 << 31)),
    )


def run_seed(
    rig: Rig, result: Result, seed: int, instructions: int, stalls: Sequence[str] = STALLS, *, length: int = LENGTH
) -> None:
    """Programs of one seed until ``instructions`` were run, with the kinds of stall in turn; stops at a mismatch."""
    campaign = "disturbed" if tuple(stalls) == DISTURBED else "random"
    generator = Generator(rig.config, seed)
    rng = np.random.default_rng([seed, 0xD157])
    done, number = 0, 0
    areas = generator.program(8).areas
    rig.set_memory(IDEAL)
    found = rig.fill(areas)
    if found is not None:
        result.failures.append(
            _failure(rig, campaign, seed, -1, "none", found, "(the program that fills the scratchpads)")
        )
        return
    while done < instructions:
        kind = stalls[number % len(stalls)]
        program = generator.program(length)
        model = memory_model(kind, rng)
        rig.set_memory(model)
        rig.write_areas(program.areas)
        try:
            found = rig.compare(program.program)
        except SimulationFailed as error:
            text = format_program(program.program)
            result.failures.append(_failure(rig, campaign, seed, number, kind, Mismatch(str(error)), text))
            return
        if found is not None:
            result.failures.append(_report(rig, campaign, seed, number, kind, model, program, found))
            return
        done += len(program.program.words)
        number += 1
        for name in program.bins:
            result.filled[name] += 1
            result.filled[f"{name}@{kind}"] += 1
        if number % DUMP_EVERY == 0 or done >= instructions:
            found = _dumped(rig)
            if found is not None:
                result.failures.append(
                    _failure(rig, campaign, seed, number, kind, found, "(acc and out after the programs)")
                )
                return
    result.programs += number
    result.instructions += done


def _dumped(rig: Rig) -> Mismatch | None:
    """Whether acc and out hold the same on both sides."""
    for program in dump_programs(rig.config):
        found = rig.compare(program)
        if found is not None:
            return Mismatch(f"contents of acc or out: {found.text}")
    return None


def _report(
    rig: Rig,
    campaign: str,
    seed: int,
    number: int,
    kind: str,
    model: MemoryModel,
    program: RandomProgram,
    found: Mismatch,
) -> Failure:
    smallest, text = shrunk(rig, program, model, found)
    return _failure(rig, campaign, seed, number, kind, Mismatch(text), format_program(smallest))


def _failure(rig: Rig, campaign: str, seed: int, number: int, kind: str, found: Mismatch, assembly: str) -> Failure:
    name = rig.config.name
    command = f"openvta verify {campaign} --config {name} --seed {seed} --instructions {max(1, number + 1) * LENGTH}"
    return Failure(name, seed, number, kind, found.text, assembly, command)


def run_config(
    name: str,
    seeds: Sequence[int],
    instructions: int,
    *,
    stalls: Sequence[str] = STALLS,
    coverage_file: Path | None = None,
    progress: Progress | None = None,
) -> Result:
    """A campaign on one configuration: ``instructions`` shared among the seeds, each in a fresh simulator.

    Raises:
        ConfigError, ToolMissing, BuildFailed, SimulationFailed: as the names say.
    """
    config = configuration(name)
    result = Result(name, config.label, tuple(seeds))
    started = time.monotonic()
    for seed in seeds:
        with Rig(config, seed=seed, coverage_file=coverage_file, progress=progress) as rig:
            run_seed(rig, result, seed, -(-instructions // len(seeds)), stalls)
        tell(progress, f"{name}: seed {seed}, {result.instructions} instructions, {len(result.failures)} mismatches")
        if result.failures:
            break
    result.seconds = time.monotonic() - started
    return result
