# SPDX-License-Identifier: Apache-2.0
"""The generated views say what the specification says; the C++ header packs the same bits."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest

from openvta.cli.spec import COMMITTED, checkout
from openvta.spec import hash_text, load_config, named_configs, resolve
from openvta.spec.emit import cpp_header, isa_page, registers_page, views
from openvta.spec.emit.cpp_header import struct_name
from openvta.spec.insn import isa_of
from openvta.spec.layout import Layout
from openvta.spec.registers import CONTROL, ERROR, REGISTERS, STATUS


def test_committed_views_are_current(update_golden: bool) -> None:
    for name, text in views(load_config("default")).items():
        for place in COMMITTED[name]:
            path = checkout() / place
            if update_golden:
                path.write_text(text, "utf-8")
            assert path.read_text("utf-8") == text, f"{place}: run 'openvta spec emit' and look at what changed"


@pytest.mark.parametrize("name", named_configs())
def test_resolved_json_is_the_resolved_configuration(name: str) -> None:
    config = load_config(name)
    read = json.loads(views(config)["resolved.json"])
    assert read == json.loads(json.dumps(resolve(config)))
    assert read["hash"] == hash_text(config)


def test_pages_have_a_row_for_everything() -> None:
    config = load_config("default")
    page = isa_page(config)
    for layout in (*isa_of(config).layouts(), isa_of(config).uop):
        for field in layout.fields:
            bits = str(field.lo) if field.width == 1 else f"{field.hi}:{field.lo}"
            assert f"| {bits} | `{field.name}` |" in page
    for register in REGISTERS:
        assert f"| 0x{register.offset:03X} | {register.name} |" in registers_page()


def layouts_of(name: str) -> list[Layout]:
    tables = isa_of(load_config(name))
    return [*tables.layouts(), tables.uop, CONTROL, STATUS, ERROR]


def harness(layouts: list[Layout]) -> str:
    """A program that reads a layout's number and field values and writes the packed word and the unpacked fields."""
    cases = []
    for number, layout in enumerate(layouts):
        reads = "".join(f"v.{field.name} = next();" for field in layout.fields)
        words = "w.hi, w.lo" if layout.bits == 128 else "uint64_t{0}, uint64_t{w}"
        fields = "".join(f'std::printf(" %lld", static_cast<long long>(u.{field.name}));' for field in layout.fields)
        cases.append(
            f"case {number}: {{ {struct_name(layout)} v; {reads} auto w = pack(v);"
            f" show({words}); auto u = unpack_{layout.name.lower()}(w); {fields} break; }}\n"
        )
    return (
        '#include "openvta_spec.hpp"\n#include <cstdio>\nusing namespace openvta;\n'
        "static uint32_t next() { long long x = 0; if (std::scanf(\"%lld\", &x) != 1) { return 0u; }"
        " return static_cast<uint32_t>(x); }\n"
        "static void show(uint64_t hi, uint64_t lo) {"
        ' std::printf("%016llx%016llx", static_cast<unsigned long long>(hi), static_cast<unsigned long long>(lo)); }\n'
        "int main() { int n = 0; while (std::scanf(\"%d\", &n) == 1) { switch (n) {\n" + "".join(cases) +
        'default: return 1; } std::printf("\\n"); } return 0; }\n'
    )  # fmt: skip


@pytest.mark.parametrize("name", named_configs())
def test_header_packs_as_python_does(name: str, tmp_path: Path, rng: np.random.Generator) -> None:
    layouts = layouts_of(name)
    (tmp_path / "openvta_spec.hpp").write_text(cpp_header(load_config(name)))
    (tmp_path / "main.cpp").write_text(harness(layouts))
    flags = ["-std=c++17", "-O0", "-Wall", "-Wextra", "-Werror", "-Wno-unused-function"]
    build = ["g++", *flags, "-o", "check", "main.cpp"]
    done = subprocess.run(build, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    cases, lines = [], []
    for number, layout in enumerate(layouts):
        for kind in ("minimum", "maximum", *["random"] * 40):
            values = {
                field.name: int(rng.integers(field.minimum, field.maximum + 1))
                if kind == "random"
                else int(getattr(field, kind))
                for field in layout.fields
            }
            cases.append((layout, values))
            lines.append(" ".join(map(str, [number, *values.values()])))
    done = subprocess.run(
        ["./check"], cwd=tmp_path, input="\n".join(lines), capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0
    answers = done.stdout.splitlines()
    assert len(answers) == len(cases)
    for (layout, values), answer in zip(cases, answers, strict=True):
        word, *fields = answer.split()
        assert int(word, 16) == layout.encode(values), (layout.name, values)
        assert [int(field) for field in fields] == list(values.values()), (layout.name, values)
