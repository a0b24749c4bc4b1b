# SPDX-License-Identifier: Apache-2.0
"""`openvta spec`: the files derived from the specification, written or compared."""

from __future__ import annotations

import argparse
from pathlib import Path

from openvta.cli import console
from openvta.cli.main import EXIT_NO
from openvta.spec import FormatError, load_config, named_configs
from openvta.spec.emit import views

EXAMPLE = "openvta spec emit --config tiny --out build/tiny/spec"

COMMITTED = {
    "isa.md": ("docs/isa.md",),
    "registers.md": ("docs/registers.md",),
    "resolved.json": ("tests/golden/spec/resolved.json",),
    "openvta_spec.hpp": ("tests/golden/spec/openvta_spec.hpp",),
}
"""Views of the default configuration that are kept in the checkout, so that a change of the specification shows."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    parser.add_argument("action", choices=("emit", "check"), help="write the files, or compare those that are there")
    parser.add_argument("--config", default="default", help=f"a TOML file, or one of {', '.join(named_configs())}")
    parser.add_argument(
        "--out",
        type=Path,
        help="folder for all views of --config (default: the pages and golden files of the checkout)",
    )


def run(options: argparse.Namespace) -> int:
    """Write or compare."""
    made = views(load_config(options.config))
    if options.out is not None:
        files = {options.out / name: text for name, text in made.items()}
    else:
        if options.config != "default":
            raise FormatError(f"config = {options.config}: the checkout keeps the views of 'default': give --out")
        root = checkout()
        files = {root / place: text for name, text in made.items() for place in COMMITTED[name]}
    if options.action == "emit":
        for path, text in files.items():
            console.write_file(path, text)
            console.out(str(path))
        return 0
    stale = [path for path, text in files.items() if not path.is_file() or path.read_text("utf-8") != text]
    for path in stale:
        console.out(f"{path}: {'differs from' if path.is_file() else 'missing, made from'} the specification")
    if stale:
        console.out("run 'openvta spec emit' and look at what changed")
        return EXIT_NO
    console.out(f"{len(files)} files are those of the specification")
    return 0


def checkout() -> Path:
    """The checkout the package runs from.

    Raises:
        FormatError: it was installed from a wheel.
    """
    for parent in Path(__file__).resolve().parents:
        if (parent / "hardware" / "spec").is_dir() and (parent / "pyproject.toml").is_file():
            return parent
    raise FormatError("out = (nothing): not in a checkout of the project: give --out FOLDER")
