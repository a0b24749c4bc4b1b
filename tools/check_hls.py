# SPDX-License-Identifier: Apache-2.0
"""Whether the HLS kernel keeps to what can be synthesized, read from the syntax tree that libclang makes of it.

Rules: no heap, recursion, exceptions, virtual functions, floating point, bit-fields, casts between pointer types; loops are `for` with a
condition and a step; every innermost loop is pipelined or unrolled; every port of the top function has an interface;
every stream is declared with a depth; only the kernel's own headers and the three of the vendors are included.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from clang.cindex import Config, Cursor, CursorKind, Index, TypeKind

from openvta.sim.hls.build import hls_folder
from openvta.spec import load_config
from openvta.spec.emit import cpp_header

TOP = "vta"
VENDOR_HEADERS = {"ap_int.h", "ap_axi_sdata.h", "hls_stream.h", "cstdint"}
HEAP_CALLS = {"malloc", "calloc", "realloc", "free", "alloca", "operator new", "operator delete"}
LOOPS = {CursorKind.FOR_STMT, CursorKind.WHILE_STMT, CursorKind.DO_STMT, CursorKind.CXX_FOR_RANGE_STMT}
FUNCTIONS = {CursorKind.FUNCTION_DECL, CursorKind.CXX_METHOD, CursorKind.FUNCTION_TEMPLATE}
FLOATS = {TypeKind.FLOAT, TypeKind.DOUBLE, TypeKind.LONGDOUBLE, TypeKind.HALF, TypeKind.FLOAT128}


@dataclass(frozen=True, order=True)
class Finding:
    """A rule that a line breaks."""

    file: str
    line: int
    rule: str
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.rule}: {self.text}"


def _compiler_includes() -> list[str]:
    """Where the C++ library's headers are: the wheel of libclang has none."""
    done = subprocess.run(
        ["g++", "-E", "-x", "c++", "-v", "-"], input="", capture_output=True, text=True, timeout=60, check=True
    )
    part = done.stderr.split("#include <...> search starts here:")[1].split("End of search list.")[0]
    return [f"-isystem{line.strip()}" for line in part.strip().splitlines()]


class Checker:
    """Checks a kernel's folder (with src/ and include/); ``header`` is where the generated header is."""

    def __init__(self, root: Path, header: Path) -> None:
        self.root = root
        self.findings: set[Finding] = set()
        self.calls: dict[str, set[str]] = {}
        self.places: dict[str, tuple[str, int]] = {}
        includes = [f"-I{root / 'include'}", f"-I{root / 'sim'}", f"-I{header}"]
        self.flags = ["-xc++", "-std=c++14", *includes, *_compiler_includes()]
        self.pragmas = {path: self._pragmas_of(path) for path in self.files()}

    def files(self) -> list[Path]:
        """Sources and headers of the kernel."""
        return sorted([*(self.root / "src").glob("*.cpp"), *(self.root / "include").glob("*.h")])

    @staticmethod
    def _pragmas_of(path: Path) -> dict[int, str]:
        """HLS pragmas by line."""
        found = {}
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
            match = re.match(r"\s*#pragma HLS (.*)", line)
            if match:
                found[number] = match.group(1).strip()
        return found

    def add(self, cursor: Cursor, rule: str, text: str) -> None:
        """Note a finding."""
        where = cursor.location
        self.findings.add(Finding(Path(where.file.name).name, where.line, rule, text))

    def run(self, only: str | None = None) -> list[Finding]:
        """All findings, by place; ``only`` looks at one source."""
        index = Index.create()
        seen: set[tuple[str, int]] = set()
        for path in sorted((self.root / "src").glob(only or "*.cpp")):
            unit = index.parse(str(path), args=self.flags)
            for problem in unit.diagnostics:
                if problem.severity >= 3:
                    where = problem.location
                    name = Path(where.file.name).name if where.file else path.name
                    self.findings.add(Finding(name, where.line, "parse", problem.spelling))
            for cursor in _declarations(unit.cursor):
                place = cursor.location.file
                here = (place.name, cursor.location.line) if place is not None else None
                if here is not None and here not in seen and Path(here[0]) in self.pragmas:
                    seen.add(here)
                    self._visit(cursor, [])
        self._check_recursion()
        return sorted(self.findings)

    def _visit(self, cursor: Cursor, functions: list[str]) -> None:
        kind = cursor.kind
        self._check_node(cursor, functions)
        if kind in FUNCTIONS:
            name = cursor.get_usr()
            if cursor.is_definition():
                self.places[name] = (Path(cursor.location.file.name).name, cursor.location.line)
                if cursor.spelling == TOP:
                    self._check_ports(cursor)
            functions = [*functions, name]
        if kind in LOOPS:
            self._check_loop(cursor)
        for child in cursor.get_children():
            self._visit(child, functions)

    def _check_node(self, cursor: Cursor, functions: list[str]) -> None:
        kind = cursor.kind
        if kind in (CursorKind.CXX_NEW_EXPR, CursorKind.CXX_DELETE_EXPR):
            self.add(cursor, "heap", "memory is static in hardware")
        elif kind in (CursorKind.CXX_THROW_EXPR, CursorKind.CXX_TRY_STMT):
            self.add(cursor, "exception", "a fault is a report, not an exception")
        elif kind is CursorKind.CXX_METHOD and cursor.is_virtual_method():
            self.add(cursor, "virtual", f"{cursor.spelling} has no hardware")
        elif kind is CursorKind.FLOATING_LITERAL or (
            kind in (CursorKind.VAR_DECL, CursorKind.PARM_DECL, CursorKind.FIELD_DECL, CursorKind.BINARY_OPERATOR)
            and cursor.type.get_canonical().kind in FLOATS
        ):
            self.add(cursor, "float", "arithmetic is in integers")
        elif kind is CursorKind.FIELD_DECL and cursor.is_bitfield():
            self.add(cursor, "bit-field", f"{cursor.spelling}: the compiler would choose its place")
        elif kind is CursorKind.CXX_REINTERPRET_CAST_EXPR:
            self.add(cursor, "cast", "pointers keep their type")
        elif kind is CursorKind.GOTO_STMT:
            self.add(cursor, "goto", "no structure")
        elif kind is CursorKind.VAR_DECL:
            self._check_stream(cursor)
        elif kind is CursorKind.CALL_EXPR:
            if cursor.spelling in HEAP_CALLS:
                self.add(cursor, "heap", f"{cursor.spelling}: memory is static in hardware")
            target = cursor.referenced
            if target is not None and functions:
                self.calls.setdefault(functions[-1], set()).add(target.get_usr())

    def _check_stream(self, cursor: Cursor) -> None:
        canonical = cursor.type.get_canonical().spelling
        if canonical.startswith("hls::stream<") and not re.search(r", [1-9][0-9]*>$", canonical):
            self.add(cursor, "depth", f"stream {cursor.spelling} is declared without a depth")

    def _check_ports(self, top: Cursor) -> None:
        pragmas = self.pragmas[Path(top.location.file.name)]
        inside = [text for line, text in pragmas.items() if top.extent.start.line <= line <= top.extent.end.line]
        ported = {
            m.group(1)
            for text in inside
            if text.startswith("interface")
            for m in [re.search(r"port\s*=\s*(\w+)", text)]
            if m
        }
        for port in top.get_arguments():
            if port.spelling not in ported:
                self.add(port, "interface", f"port {port.spelling} of {TOP} has no interface pragma")
        if "return" not in ported:
            self.add(top, "interface", f"{TOP} has no block-level interface")
        for name in ported - {port.spelling for port in top.get_arguments()} - {"return"}:
            self.add(top, "interface", f"pragma for port {name}, which {TOP} does not have")

    def _check_loop(self, loop: Cursor) -> None:
        if loop.kind is not CursorKind.FOR_STMT:
            self.add(loop, "unbounded", "loops are `for` with a condition and a step")
            return
        tokens = [token.spelling for token in loop.get_tokens()]
        depth, semicolons, head = 0, [], tokens[1:]
        for at, token in enumerate(head):
            depth += (token == "(") - (token == ")")
            if token == ";" and depth == 1:
                semicolons.append(at)
            if depth == 0:
                head = head[: at + 1]
                break
        if len(semicolons) != 2 or semicolons[1] == semicolons[0] + 1 or semicolons[1] == len(head) - 2:
            self.add(loop, "unbounded", "a loop needs a condition and a step")
            return
        own = self._own_pragmas(loop)
        inner = [child for child in _below(loop) if child.kind in LOOPS]
        if "pipeline" in own or "unroll" in own or any("unroll" not in self._own_pragmas(child) for child in inner):
            return
        self.add(
            loop,
            "pipeline",
            "a loop whose inner loops are unrolled, or that has none, is neither pipelined nor unrolled",
        )

    def _own_pragmas(self, loop: Cursor) -> set[str]:
        """Kinds of the pragmas in a loop's body, those of inner loops apart."""
        inner = [child.extent for child in _below(loop) if child.kind in LOOPS]
        found = set()
        for line, text in self.pragmas[Path(loop.location.file.name)].items():
            here = loop.extent.start.line < line <= loop.extent.end.line
            if here and not any(extent.start.line < line <= extent.end.line for extent in inner):
                found.add(text.split(" ")[0])
        return found

    def _check_recursion(self) -> None:
        for start in self.calls:
            seen: set[str] = set()
            left = list(self.calls[start])
            while left:
                name = left.pop()
                if name not in seen:
                    seen.add(name)
                    left.extend(self.calls.get(name, ()))
            if start in seen:
                file, line = self.places.get(start, ("?", 0))
                self.findings.add(Finding(file, line, "recursion", "a function reaches itself"))


def _declarations(cursor: Cursor) -> Iterator[Cursor]:
    """Declarations of a unit, those inside namespaces apart."""
    for child in cursor.get_children():
        if child.kind is not CursorKind.NAMESPACE:
            yield child
        elif child.spelling != "std":
            yield from _declarations(child)


def _below(cursor: Cursor) -> Iterator[Cursor]:
    for child in cursor.get_children():
        yield child
        yield from _below(child)


def includes_of(root: Path) -> list[Finding]:
    """Includes that the kernel's files may not have (seen in the text: only the main file's show in the tree)."""
    own = {path.name for path in (root / "include").glob("*.h")} | {"openvta_spec.hpp"}
    found = []
    for path in sorted([*(root / "src").glob("*.cpp"), *(root / "include").glob("*.h")]):
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
            match = re.match(r'\s*#\s*include\s*[<"]([^>"]+)[>"]', line)
            if match and match.group(1) not in own | VENDOR_HEADERS:
                found.append(Finding(path.name, number, "include", f"{match.group(1)} is not for synthesis"))
    return found


def check(root: Path, work: Path, only: str | None = None) -> list[Finding]:
    """Findings in a kernel's folder (in one of its sources); ``work`` takes the generated header."""
    (work / "openvta_spec.hpp").write_text(cpp_header(load_config("default")), "utf-8")
    return sorted({*Checker(root, work).run(only), *includes_of(root)})


def main() -> int:
    """Print every finding; 1 if there is one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, default=None, help="folder with src/ and include/ (default: hardware/hls)")
    parser.add_argument("--work", type=Path, required=True, help="folder for the generated header")
    parser.add_argument("--only", help="look at one source, such as gemm.cpp")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    findings = check(options.root or hls_folder(), options.work, options.only)
    for finding in findings:
        sys.stdout.write(f"{finding}\n")
    return 1 if findings else 0


if __name__ == "__main__":
    Config.set_compatibility_check(False)
    raise SystemExit(main())
