# SPDX-License-Identifier: Apache-2.0
"""All properties of the project on one configuration: proof, cover trace, and the mutants each catches."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

from openvta.sim.cosim import cache
from openvta.sim.cosim.build import ElaboratedDesign
from openvta.sim.cosim.cache import Progress
from openvta.sim.formal import circuit, harness, kill, prove
from openvta.sim.formal.errors import FormalError
from openvta.sim.formal.harness import Harness

ROUNDS = 4
SECONDS = 60.0


@dataclass(frozen=True)
class Property:
    """One property on one configuration.

    Attributes:
        harness, name, text: where it stands and what it says.
        module: the module of the design it is about.
        method: "induction" or "reachability" (both hold for every run), "counterexample", or None (not decided).
        depth: cycles of the induction step, clauses of the invariant, or cycles of the counterexample.
        seconds: time of the proof.
        cover: cycle in which a run first shows its interesting case; None: not within the depth.
        mutants: changes of the design that break it, in words.
    """

    harness: str
    name: str
    text: str
    module: str
    method: str | None
    depth: int
    seconds: float
    cover: int | None
    mutants: tuple[str, ...]

    @property
    def faults(self) -> list[str]:
        """Why it does not count; empty if it does."""
        found = []
        if self.method not in prove.PROVED:
            found.append("counterexample" if self.method else f"not decided within {SECONDS:.0f} s")
        if self.cover is None:
            found.append("no cover trace")
        if not self.mutants:
            found.append("survives every mutant")
        return found


@dataclass(frozen=True)
class Result:
    """Properties of a harness, and facts that proofs rest on which were not proved themselves."""

    properties: tuple[Property, ...]
    open_facts: tuple[str, ...]


def run_one(found: Harness, design: ElaboratedDesign, *, seed: int = 1, progress: Progress | None = None) -> Result:
    """Prove, cover and mutate one harness; what was done before on the same sources is read from the cache.

    Raises:
        FormalError: the harness does not fit the design, or a tool is missing.
    """
    sources = sorted(Path(__file__).parent.glob("*.py"))
    key = cache.hash_text(
        "formal",
        found.source,
        design.config.label,
        cache.hash_files(design.files),
        cache.hash_files(sources),
        str(seed),
    )
    folder = cache.cache_folder() / "formal" / f"{found.name}-{key}"
    with cache.entry(folder) as work:
        if work is not None:
            started = time.monotonic()
            result = _run(found, design, work, seed)
            for path in work.iterdir():
                path.unlink()
            (work / "result.json").write_text(json.dumps(asdict(result), indent=1), "utf-8")
            cache.tell(
                progress, f"{found.name}: {len(result.properties)} properties, {time.monotonic() - started:.0f} s"
            )
    stored = json.loads((folder / "result.json").read_text("utf-8"))
    properties = [Property(**{**item, "mutants": tuple(item["mutants"])}) for item in stored["properties"]]
    return Result(tuple(properties), tuple(stored["open_facts"]))


def _run(found: Harness, design: ElaboratedDesign, work: Path, seed: int) -> Result:
    circuit.prepare(found, design, work)
    plain = circuit.build(found, work)
    proofs = {p.name: p for p in prove.prove(plain, steps=found.steps, depth=found.depth, seconds=SECONDS, folder=work)}
    covers = kill.covered(plain, list(found.texts), found.depth)
    killers: dict[str, list[str]] = {name: [] for name in found.texts}
    for number in range(ROUNDS):
        missing = [name for name, texts in killers.items() if not texts]
        if not missing:
            break
        mutated, mutants = circuit.build_mutated(found, work, found.mutants, seed + number)
        kills = kill.kills(mutated, missing, len(mutants), found.depth)
        for name, numbers in kills.by_property.items():
            killers[name] += [mutants[k - 1].text for k in numbers]
    module = found.module(design.config)
    properties = []
    for name, text in found.texts.items():
        proof = proofs[f"p_{name}"]
        properties.append(
            Property(
                found.name, name, text, module, proof.method, proof.depth, round(proof.seconds, 3), covers.get(name),
                tuple(killers[name]),
            )
        )  # fmt: skip
    facts = [name for name, proof in proofs.items() if name.startswith("i_") and not proof.proved]
    return Result(tuple(properties), tuple(facts))


def run_all(
    design: ElaboratedDesign, *, names: Sequence[str] = (), jobs: int = 2, progress: Progress | None = None
) -> list[Property]:
    """Every property (or those of the named harnesses), ``jobs`` harnesses at a time.

    Raises:
        FormalError: no such harness, one that does not fit, or a fact that a proof rests on does not hold.
    """
    known = {found.name: found for found in harness.all_harnesses()}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise FormalError(f"no such harness: {', '.join(unknown)}; harnesses are {', '.join(known)}")
    chosen = [known[name] for name in names] or list(known.values())
    with ThreadPoolExecutor(max(1, jobs)) as pool:
        results = list(pool.map(lambda found: run_one(found, design, progress=progress), chosen))
    for found, result in zip(chosen, results, strict=True):
        if result.open_facts:
            raise FormalError(f"{found.path.name}: {', '.join(result.open_facts)} not proved: proofs rest on it")
    return [item for result in results for item in result.properties]
