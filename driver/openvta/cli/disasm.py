# SPDX-License-Identifier: Apache-2.0
"""`openvta disasm`: a bundle or a raw program into assembly text that assembles to the same bytes."""

from __future__ import annotations

import argparse
from pathlib import Path

from openvta.cli import console
from openvta.spec import Program, load_config
from openvta.spec.asm import format_programs
from openvta.spec.bundle import Bundle

EXAMPLE = "openvta disasm resnet8.bundle -o resnet8.s"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    parser.add_argument("file", type=Path, help="a bundle, or a raw program (with --config)")
    parser.add_argument("--config", help="configuration of a raw program")
    parser.add_argument("-o", "--out", type=Path, help="file for the text (default: standard output)")


def run(options: argparse.Namespace) -> int:
    """Disassemble."""
    if options.config is not None:
        config = load_config(options.config)
        programs = [Program.from_bytes(config, options.file.read_bytes())]
        title = options.file.name
    else:
        bundle = Bundle.load(options.file)
        config, title = bundle.config, bundle.name
        programs = [segment.program for segment in bundle.segments]
    text = format_programs(config, programs, title=title)
    if options.out is None:
        console.out(text.rstrip("\n"))
    else:
        console.write_file(options.out, text)
    return 0
