# SPDX-License-Identifier: Apache-2.0
"""The build cache: complete entries only, one builder at a time, keys that follow content."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from openvta.sim.cosim import cache
from openvta.sim.cosim.errors import CosimError


def test_an_entry_is_made_once(tmp_path: Path) -> None:
    folder = tmp_path / "kind" / "key"
    with cache.entry(folder) as work:
        assert work is not None
        (work / "file").write_text("made")
        assert not folder.exists()
    assert (folder / "file").read_text() == "made"
    with cache.entry(folder) as work:
        assert work is None


def test_a_failed_build_leaves_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "key"
    with pytest.raises(RuntimeError), cache.entry(folder) as work:
        assert work is not None
        (work / "half").write_text("written")
        raise RuntimeError
    assert [path.name for path in tmp_path.iterdir()] == ["key.lock"]


def test_leftovers_of_killed_builds_go(tmp_path: Path) -> None:
    old, young = tmp_path / ".building-old", tmp_path / ".building-young"
    for path in (old, young):
        path.mkdir()
    os.utime(old, (time.time() - 2 * 86400,) * 2)
    with cache.entry(tmp_path / "key"):
        pass
    assert not old.exists() and young.exists()


def test_two_processes_build_once(tmp_path: Path) -> None:
    script = (
        "import sys, time, pathlib\n"
        "from openvta.sim.cosim import cache\n"
        "with cache.entry(pathlib.Path(sys.argv[1])) as work:\n"
        "    if work is not None:\n"
        "        time.sleep(0.5)\n"
        "        (work / 'file').write_text('x')\n"
        "        print('built')\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "key")]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    said = [process.communicate(timeout=120)[0] for process in running]
    assert sorted(said) == ["", "", "built\n"]
    assert all(process.returncode == 0 for process in running)


def test_waiting_for_a_lock_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "LOCK_SECONDS", 0.2)
    path = tmp_path / "lock"
    with cache.locked(path), pytest.raises(CosimError, match="another build"), cache.locked(path):
        pass


def test_keys_follow_content_and_order(tmp_path: Path) -> None:
    assert cache.hash_text("ab", "c") != cache.hash_text("a", "bc")
    assert cache.hash_text("a", "b") != cache.hash_text("b", "a")
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_text("x")
    two.write_text("y")
    before = cache.hash_files([one, two])
    assert before == cache.hash_files([one, two])
    os.utime(one, (0, 0))
    assert before == cache.hash_files([one, two])
    two.write_text("z")
    assert before != cache.hash_files([one, two])


def test_the_cache_can_be_moved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENVTA_CACHE", str(tmp_path / "elsewhere"))
    assert cache.cache_folder() == tmp_path / "elsewhere"
    monkeypatch.delenv("OPENVTA_CACHE")
    assert cache.cache_folder().parts[-2:] == ("build", "cache")
