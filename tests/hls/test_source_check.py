# SPDX-License-Identifier: Apache-2.0
"""The source check finds every kind of construct that cannot be synthesized, and nothing in the sources as they are."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from openvta.sim.hls.build import hls_folder

TOOL = Path(__file__).parents[2] / "tools" / "check_hls.py"


@dataclass(frozen=True)
class Planted:
    """A change of one source that breaks a rule."""

    source: str
    old: str
    new: str
    rule: str


AT_STEP = "    report.counter = counter::GEMM_UOPS;\n"
AT_TOP = "namespace openvta {\n"
RECURSION = "int f(int n);\nint g(int n) { return f(n - 1); }\nint f(int n) { return n ? g(n) : 0; }\n"
ENDLESS = "    for (int k = 0;; ++k) {\n#pragma HLS unroll\n if (k > 3) break; }\n"
FLOAT = "    const float share = static_cast<float>(writes);\n    report.amount = share > 2.0f ? 1 : 0;\n"
DOUBLE = "    typedef double real;\n    real r = 1;\n    report.amount = r > 1;\n"
PLANTED = {
    "heap": Planted("gemm.cpp", AT_STEP, AT_STEP + "    delete new int(1);\n", "heap"),
    "heap by call": Planted("gemm.cpp", AT_STEP, AT_STEP + "    __builtin_free(malloc(4));\n", "heap"),
    "recursion": Planted("gemm.cpp", AT_TOP, AT_TOP + RECURSION, "recursion"),
    "exception": Planted("gemm.cpp", AT_STEP, AT_STEP + "    if (total == 7) throw 1;\n", "exception"),
    "virtual": Planted("gemm.cpp", AT_TOP, AT_TOP + "struct V { virtual int f() { return 1; } };\n", "virtual"),
    "while": Planted("gemm.cpp", AT_STEP, AT_STEP + "    while (writes > 0) { writes -= 1; }\n", "unbounded"),
    "no condition": Planted("gemm.cpp", AT_STEP, AT_STEP + ENDLESS, "unbounded"),
    "float": Planted("gemm.cpp", AT_STEP, AT_STEP + FLOAT, "float"),
    "hidden double": Planted("gemm.cpp", AT_STEP, AT_STEP + DOUBLE, "float"),
    "bit-field": Planted("gemm.cpp", AT_TOP, AT_TOP + "struct B { unsigned low : 3; };\n", "bit-field"),
    "cast": Planted("gemm.cpp", AT_STEP, AT_STEP + "    report.amount = *reinterpret_cast<const uint64_t*>(uop_mem);\n", "cast"),
    "port": Planted("vta.cpp", "#pragma HLS interface axis port = s_axil_b\n", "", "interface"),
    "block level": Planted("vta.cpp", "#pragma HLS interface ap_ctrl_none port = return\n", "", "interface"),
    "hot loop": Planted("gemm.cpp", "#pragma HLS pipeline II = 1\n", "", "pipeline"),
    "stream depth": Planted("vta.cpp", "hls::stream<Launch, ORDER_DEPTH> launches", "hls::stream<Launch> launches", "depth"),
    "include": Planted("gemm.cpp", '#include "vta_compute.h"\n', '#include "vta_compute.h"\n#include <vector>\n', "include"),
}  # fmt: skip


def run_check(root: Path, work: Path, *only: str) -> tuple[int, str]:
    command = [sys.executable, str(TOOL), "--root", str(root), "--work", str(work), *only]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode in (0, 1), done.stderr
    return done.returncode, done.stdout


def test_the_kernel_is_clean(tmp_path: Path) -> None:
    assert run_check(hls_folder(), tmp_path) == (0, "")


ROUNDS = (
    ("gemm.cpp", [name for name, planted in PLANTED.items() if planted.source == "gemm.cpp" and name != "hot loop"]),
    ("gemm.cpp", ["hot loop"]),
    ("vta.cpp", [name for name, planted in PLANTED.items() if planted.source == "vta.cpp"]),
)
"""A source, and the violations planted in it together."""


@pytest.mark.parametrize(("source", "together"), ROUNDS)
def test_planted_violations_are_found(source: str, together: list[str], tmp_path: Path) -> None:
    for part in ("src", "include", "sim"):
        shutil.copytree(hls_folder() / part, tmp_path / part)
    path = tmp_path / "src" / source
    text = path.read_text("utf-8")
    for name in together:
        assert text.count(PLANTED[name].old) >= 1, name
        text = text.replace(PLANTED[name].old, PLANTED[name].new, 1)
    path.write_text(text, "utf-8")
    status, found = run_check(tmp_path, tmp_path / "work", "--only", source)
    assert status == 1
    rules = [line.split(": ")[1] for line in found.splitlines() if line.startswith(f"{source}:")]
    wanted = [PLANTED[name].rule for name in together]
    missed = {rule for rule in wanted if rules.count(rule) < wanted.count(rule)}
    assert not missed and set(rules) == set(wanted), found
