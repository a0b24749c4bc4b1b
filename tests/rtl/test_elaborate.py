# SPDX-License-Identifier: Apache-2.0
"""Elaboration: deterministic, described by its manifest, and refused where specification and hardware differ."""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from openvta.sim.cosim import toolchain
from openvta.sim.cosim.build import check_masks, compile_scala
from openvta.sim.cosim.build import elaborate as elaborate_core
from openvta.sim.cosim.errors import BuildFailed
from openvta.sim.verify.configs import configuration
from openvta.spec import load_config
from openvta.spec.resolve import canonical_json, hash_text, resolve

Change = Callable[[dict[str, Any]], object]


def elaborate(folder: Path, text: str, *extra: str) -> subprocess.CompletedProcess[str]:
    """Elaborate a small module from a resolved configuration given as text."""
    config = folder / "resolved.json"
    config.write_text(text, "utf-8")
    classpath = compile_scala().read_text("utf-8").strip()
    command = [
        toolchain.java(), "-XX:TieredStopAtLevel=1", "-cp", classpath, "openvta.Elaborate",
        "--config", str(config), "--out", str(folder / "out"), *extra,
    ]  # fmt: skip
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def resolved() -> dict[str, Any]:
    """The smallest named configuration as values that may be changed."""
    values: dict[str, Any] = json.loads(canonical_json(resolve(load_config("tiny"))))
    return values


def test_output_is_deterministic_and_described(tmp_path: Path) -> None:
    """The same bytes twice; the manifest names configuration, tools and content."""
    found = []
    for name in ("first", "second"):
        folder = tmp_path / name
        folder.mkdir()
        done = elaborate(folder, json.dumps(resolved()), "--top", "Decoder")
        assert done.returncode == 0, done.stderr
        found.append({path.name: path.read_bytes() for path in (folder / "out").iterdir()})
    assert found[0] == found[1]
    assert set(found[0]) == {"Decoder.sv", "filelist.f", "manifest.json"}
    assert found[0]["filelist.f"] == b"Decoder.sv\n"
    manifest = json.loads(found[0]["manifest.json"])
    assert manifest["config"] == "tiny" and manifest["config_hash"] == hash_text(load_config("tiny"))
    assert manifest["files"] == [{"name": "Decoder.sv", "sha256": hashlib.sha256(found[0]["Decoder.sv"]).hexdigest()}]


REFUSED: dict[str, tuple[Change, tuple[str, ...]]] = {
    "a knob it does not know": (lambda r: r["knobs"].update(cache_ways=4), ("knobs", "cache_ways")),
    "a field it does not know": (
        lambda r: r["layouts"]["GEMM"]["fields"].append({"name": "sparse", "lo": 127, "width": 1, "signed": False}),
        ("layout GEMM", "sparse"),
    ),
    "a field that is missing": (lambda r: r["layouts"]["LOAD"]["fields"].pop(), ("layout LOAD", "lacks")),
    "a register it does not know": (
        lambda r: r["registers"].append({"name": "SCRATCH", "offset": 0xF00, "access": "rw", "reset": 0}),
        ("registers", "SCRATCH"),
    ),
    "a counter it does not know": (lambda r: r["counters"].append("naps"), ("naps",)),
    "an opcode it does not know": (lambda r: r["enums"]["Opcode"].update(SORT=7), ("enum Opcode", "SORT")),
    "an extension it does not build": (lambda r: r["features"].update(bgemm=5), ("extensions", "bgemm")),
    "another schema": (lambda r: r.update(schema=99), ("schema 99",)),
    "another instruction set": (lambda r: r.update(isa_version=0x200), ("0x0200", "0x0100")),
    "a section it does not know": (lambda r: r.update(extra={}), ("extra",)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_specification_the_hardware_is_not_written_for_is_refused(tmp_path: Path, name: str) -> None:
    """One line that names what differs; no output."""
    change, words = REFUSED[name]
    values = resolved()
    change(values)
    top = "Core" if name.startswith("a counter") else "Registers"
    done = elaborate(tmp_path, json.dumps(values), "--top", top)
    assert done.returncode == 1 and not (tmp_path / "out").exists(), f"status {done.returncode}: {done.stdout}"
    line = done.stderr.strip().splitlines()[-1]
    assert line.startswith("elaborate: ") and all(word in line for word in words), done.stderr


@pytest.mark.parametrize(
    ("text", "extra", "words"),
    [
        ("not JSON", (), ("not JSON",)),
        (None, ("--top", "NoSuchModule"), ("NoSuchModule",)),
        (None, ("--speed", "11"), ("--speed", "--top")),
        (None, ("--top",), ("--top", "value")),
    ],
)
def test_wrong_arguments_are_told(
    tmp_path: Path, text: str | None, extra: tuple[str, ...], words: tuple[str, ...]
) -> None:
    """One line each."""
    done = elaborate(tmp_path, json.dumps(resolved()) if text is None else text, *extra)
    assert done.returncode == 1
    assert len(done.stderr.strip().splitlines()) == 1 and all(word in done.stderr for word in words), done.stderr


def test_every_part_of_a_scratchpad_is_written(tmp_path: Path) -> None:
    """A constant mask of several parts is folded to its lowest bit by firtool: elaboration refuses to go on with one."""
    with pytest.raises(BuildFailed, match=r"configuration 'tiny': a memory is written with the constant mask 2'h1"):
        check_masks("memory m (.W0_mask (2'h1), .W1_mask (4'hF));", load_config("tiny"))
    check_masks("memory m (.W0_mask (2'h3), .W1_mask (mask));", load_config("tiny"))
    narrow = configuration("random-6")
    assert narrow.out_bytes * 8 > narrow.axi_data_bits, "an out element of several beats, where it was found"
    elaborate_core(narrow)
