# SPDX-License-Identifier: Apache-2.0
"""Argument parsing, error reporting and exit codes, the same for every verb.

Exit codes: 0 done; 1 done, and the answer is no (something missing, a check failed); 2 bad input or usage;
3 the device stopped on an error or did not end in time; 70 a fault of this program.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Protocol, cast

EXIT_NO, EXIT_USAGE, EXIT_DEVICE, EXIT_INTERNAL, EXIT_INTERRUPTED = 1, 2, 3, 70, 130
DEVICE_ERRORS = ("Fault", "BusError", "Timeout", "SimulationFailed")

VERBS: dict[str, tuple[str, str]] = {
    "doctor": ("openvta.cli.doctor", "what this machine has and lacks, and how to get it"),
    "elaborate": ("openvta.cli.elaborate", "SystemVerilog of a configuration (and its simulator)"),
    "compile": ("openvta.cli.compile", "a quantized ONNX model into a bundle"),
    "run": ("openvta.cli.run", "a bundle on a device"),
    "asm": ("openvta.cli.asm", "assembly text into a program"),
    "disasm": ("openvta.cli.disasm", "a bundle or program into assembly text"),
    "bench": ("openvta.cli.bench", "measure: cosim, fsim, hls, layer, resnet18, scaling"),
    "report": ("openvta.cli.report", "where the cycles of a run went: waterfall, layers, roofline, timeline"),
    "demo": ("openvta.cli.demo_command", "digit networks from ONNX to three equal answers"),
    "verify": ("openvta.cli.verify", "random programs and faults on the RTL, against fsim"),
    "spec": ("openvta.cli.spec", "write or check the files derived from the specification"),
}


class Verb(Protocol):
    """What a verb's module defines."""

    EXAMPLE: str

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the verb's arguments."""

    def run(self, options: argparse.Namespace) -> int:
        """Do it; returns the exit code."""


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point of the console script."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    name = next((word for word in arguments if not word.startswith("-")), None)
    parser = argparse.ArgumentParser(
        prog="openvta",
        description="Hardware/software co-design around the VTA deep-learning accelerator.",
        epilog="exit codes: 0 done, 1 the answer is no, 2 bad input or usage, 3 device error or timeout, 70 internal",
    )
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    loaded: Verb | None = None
    for verb, (module, text) in VERBS.items():
        if verb != name:
            verbs.add_parser(verb, help=text, add_help=False)
            continue
        loaded = cast(Verb, import_module(module))
        sub = verbs.add_parser(
            verb, help=text, description=text[0].upper() + text[1:] + ".", epilog=f"example:\n  {loaded.EXAMPLE}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )  # fmt: skip
        sub.add_argument(
            "--debug", action="store_true", default=argparse.SUPPRESS, help="show the traceback of an error"
        )
        loaded.add_arguments(sub)
    options = parser.parse_args(arguments)
    if loaded is None:
        parser.error(f"no such verb: {name}")
    try:
        return loaded.run(options)
    except KeyboardInterrupt:
        sys.stderr.write("openvta: interrupted\n")
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        return 0
    except Exception as error:
        if options.debug:
            raise
        return _report(error)


def _report(error: Exception) -> int:
    kind = type(error)
    if kind.__module__.startswith("openvta."):
        sys.stderr.write(f"openvta: {error}\n")
        return EXIT_DEVICE if kind.__name__ in DEVICE_ERRORS else EXIT_USAGE
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        sys.stderr.write(f"openvta: {where}{error.strerror or error}\n")
        return EXIT_USAGE
    sys.stderr.write(f"openvta: internal error: {kind.__name__}: {error} (--debug shows where; please report it)\n")
    return EXIT_INTERNAL
