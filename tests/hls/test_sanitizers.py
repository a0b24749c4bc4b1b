# SPDX-License-Identifier: Apache-2.0
"""The kernel under sanitizers and under other compilers: no report, and the memory that fsim leaves, in both modes."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from conformance.programs import names
from hls.sessions import record_all
from openvta.sim.hls.build import Flavour, build_program
from openvta.spec import load_config, named_configs

ADDRESS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-DOPENVTA_POISON")
THREAD = ("-fsanitize=thread",)
MODES = ("sequential", "threaded")
Record = Callable[[str, str], None]


def play(program: Path, mode: str, depth: int, files: list[str]) -> None:
    """Play sessions; any difference, and any word of a sanitizer, fails."""
    command = [str(program), mode, str(depth), *files]
    environment = {"PATH": "/usr/bin:/bin", "TSAN_OPTIONS": "halt_on_error=1", "ASAN_OPTIONS": "detect_leaks=1"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False, env=environment)
    text = f"{done.stdout[-3000:]}\n{done.stderr[-6000:]}"
    assert done.returncode == 0, text
    assert f"{len(files)} sessions, 0 differences" in done.stdout and "Sanitizer" not in done.stderr, text


def files_of(config_name: str, rng: np.random.Generator, folder: Path, *, few: bool) -> list[str]:
    config = load_config(config_name)
    every = names(config)
    chosen = every[::3] + [name for name in every if name.startswith("tokens_")] if few else every
    return record_all(config, sorted(set(chosen)), 3 if few else 20, rng, folder)


@pytest.mark.parametrize("integers", ["wide", pytest.param("native", marks=pytest.mark.long)])
def test_address_and_undefined(
    integers: str, rng: np.random.Generator, tmp_path: Path, record_coverage: Record
) -> None:
    """Every value that nobody set is poisoned as well."""
    program = build_program(load_config("tiny"), Flavour(integers == "native", flags=ADDRESS))
    files = files_of("tiny", rng, tmp_path, few=True)
    for mode in MODES:
        play(program, mode, 0, files)
    record_coverage(f"hls-{integers}-asan-ubsan", "tiny")


def test_thread_sanitizer(rng: np.random.Generator, tmp_path: Path, record_coverage: Record) -> None:
    """No data race between the stages, with streams of one element and of their declared depth."""
    program = build_program(load_config("tiny"), Flavour(flags=THREAD))
    files = files_of("tiny", rng, tmp_path, few=True)
    for depth in (0, 1):
        play(program, "threaded", depth, files)
    record_coverage("hls-tsan", "tiny")


@pytest.mark.long
@pytest.mark.parametrize("config_name", named_configs())
def test_every_configuration_under_sanitizers(
    config_name: str, rng: np.random.Generator, tmp_path: Path, record_coverage: Record
) -> None:
    config = load_config(config_name)
    files = files_of(config_name, rng, tmp_path, few=False)
    for mode in MODES:
        play(build_program(config, Flavour(flags=ADDRESS)), mode, 0, files)
    for depth in (0, 1, 2, 3):
        play(build_program(config, Flavour(flags=THREAD)), "threaded", depth, files)
    record_coverage("hls-sanitizers", config_name)


@pytest.mark.parametrize(
    "config_name",
    [name if name == "tiny" else pytest.param(name, marks=pytest.mark.long) for name in named_configs()],
)
def test_clang(config_name: str, rng: np.random.Generator, tmp_path: Path, record_coverage: Record) -> None:
    if shutil.which("clang++") is None:
        pytest.skip("clang++ is not on PATH")
    program = build_program(load_config(config_name), Flavour(compiler="clang++"))
    files = files_of(config_name, rng, tmp_path, few=True)
    for mode in MODES:
        play(program, mode, 0, files)
    record_coverage("hls-clang", config_name)
