# SPDX-License-Identifier: Apache-2.0
"""`openvta asm`: assembly text into the bytes of a program."""

from __future__ import annotations

import argparse
from pathlib import Path

from openvta.cli import console
from openvta.spec import FormatError, load_config
from openvta.spec.asm import parse_config_line, parse_programs

EXAMPLE = "openvta asm resnet8.s -o resnet8.bin"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    parser.add_argument("file", type=Path, help="assembly text")
    parser.add_argument(
        "-o", "--out", type=Path, required=True, help="file for the program (with N programs: NAME-0.EXT and so on)"
    )
    parser.add_argument("--config", help="configuration (default: the one the text names)")


def run(options: argparse.Namespace) -> int:
    """Assemble."""
    text = options.file.read_text("utf-8")
    name = options.config
    if name is None:
        line = parse_config_line(text)
        if line is None:
            raise FormatError(f"{options.file}: names no configuration: give --config")
        name = line[0]
    config = load_config(name)
    programs = parse_programs(config, text)
    if not programs:
        raise FormatError(f"{options.file}: no instructions")
    for number, program in enumerate(programs):
        out: Path = options.out
        if len(programs) > 1:
            out = out.with_name(f"{out.stem}-{number}{out.suffix}")
        console.write_file(out, program.to_bytes())
        console.out(f"{out}: {len(program)} instructions for {config.name}")
    return 0
