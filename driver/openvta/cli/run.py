# SPDX-License-Identifier: Apache-2.0
"""`openvta run`: a bundle on a device."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from openvta.cli import console
from openvta.cli.main import EXIT_USAGE
from openvta.driver.errors import InputError

EXAMPLE = "openvta run resnet8.bundle --input digits.npz --device cosim --out logits.npz"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    parser.add_argument("bundle", type=Path)
    parser.add_argument("--device", default="fsim", help="fsim (default), cosim or hls")
    parser.add_argument("--input", type=Path, help=".npz with an array for each input, or .npy for a single one")
    parser.add_argument("--random", type=int, metavar="SEED", help="random inputs instead")
    parser.add_argument(
        "--images", type=int, default=0, help="run only the first N images (with --random: N, default 1)"
    )
    parser.add_argument("--out", type=Path, help=".npz for the outputs")
    parser.add_argument(
        "--max-cycles", type=int, help="bound of a launch (default: far above what the program can take)"
    )
    parser.add_argument("--memory", choices=("ideal", "dram"), default="ideal", help="memory timing (cosim)")
    parser.add_argument("--waves", type=Path, help="write a VCD waveform (cosim)")
    parser.add_argument("--check", action="store_true", help="look for races, deadlocks and never-written reads (fsim)")
    parser.add_argument("--jobs", type=int, help="processes that share many images (fsim; default: one a processor)")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(options: argparse.Namespace) -> int:
    """Run and show what it cost."""
    from openvta.driver import open_device
    from openvta.spec.bundle import Bundle

    bundle = Bundle.load(options.bundle)
    inputs = _inputs(bundle, options)
    extra: dict[str, Any] = {}
    if options.device == "cosim":
        extra = {"memory": options.memory, "progress": console.say}
        if options.waves is not None:
            extra["waves"] = options.waves
    elif options.waves is not None or options.memory != "ideal":
        console.say("--waves and --memory mean something on cosim only")
        return EXIT_USAGE
    if options.check:
        if options.device != "fsim":
            console.say("--check means something on fsim only")
            return EXIT_USAGE
        extra["check"] = True
    with open_device(options.device, config=bundle.config, jobs=options.jobs, **extra) as device:
        result = device.run(bundle, inputs, max_cycles=options.max_cycles)
        timed = "cycles" in device.capabilities
    if options.out is not None:
        _save(options.out, result.outputs)
    facts = {
        "bundle": str(options.bundle),
        "device": options.device,
        "config_hash": bundle.config_hash,
        "images": result.images,
        "seconds": round(result.elapsed, 3),
        "counters": dict(result.counters),
        "layer_cycles": dict(result.layer_cycles),
        "outputs": {
            name: {"shape": list(array.shape), "dtype": str(array.dtype)} for name, array in result.outputs.items()
        },
    }
    if options.json:
        console.show_json(facts)
        return 0
    if timed:
        peak = bundle.config.macs_per_cycle
        rows = []
        for layer in bundle.layers:
            cycles = result.layer_cycles.get(layer.name)
            used = f"{100 * layer.macs * bundle.config.batch / (cycles * peak):.1f} %" if cycles and layer.macs else ""
            rows.append(
                (layer.name, layer.op, layer.where, f"{layer.macs:,}", "" if cycles is None else f"{cycles:,}", used)
            )
        console.table(
            str(options.bundle), ("layer", "operator", "where", "MAC", "cycles", "MAC utilization"), rows, left=3
        )
        console.out(f"{result.counters['cycles']:,} cycles an image")
    for name, array in result.outputs.items():
        console.out(
            f"{name}: {array.dtype} {list(array.shape)}, first {np.array2string(array.reshape(-1)[:10], precision=5)}"
        )
    console.out(f"{result.images} images in {result.elapsed:.2f} s on {options.device}")
    return 0


def _inputs(bundle: Any, options: argparse.Namespace) -> dict[str, Any]:
    names = list(bundle.inputs)
    if (options.input is None) == (options.random is None):
        raise InputError(
            names[0],
            "source",
            "none" if options.input is None else "two",
            f"give --input FILE or --random SEED; inputs are {_wanted(bundle)}",
        )
    if options.random is not None:
        generator = np.random.default_rng(options.random)
        count = options.images or 1
        made = {}
        for name, (dtype, shape) in bundle.inputs.items():
            full = (count, *shape[1:])
            kind = np.dtype(dtype)
            if kind.kind == "f":
                made[name] = generator.uniform(-1, 1, full).astype(kind)
            else:
                info = np.iinfo(kind)
                made[name] = generator.integers(info.min, info.max + 1, full).astype(kind)
        return made
    try:
        found = np.load(options.input, allow_pickle=False)
        arrays = {names[0]: found} if isinstance(found, np.ndarray) else {key: found[key] for key in found.files}
    except (ValueError, EOFError, OSError) as error:
        raise InputError(names[0], "file", options.input, f"cannot be read as .npy or .npz: {error}") from error
    missing = [name for name in names if name not in arrays]
    if missing:
        limit_text = f"has no such array, only {', '.join(arrays)}; inputs are {_wanted(bundle)}"
        raise InputError(missing[0], "file", options.input, limit_text)
    limit = options.images or None
    return {name: arrays[name][:limit] for name in names}


def _wanted(bundle: Any) -> str:
    parts = []
    for name, (dtype, shape) in bundle.inputs.items():
        parts.append(f"{name} {dtype} [{', '.join(['N', *map(str, shape[1:])])}]")
    return "; ".join(parts)


def _save(path: Path, outputs: Any) -> None:
    import io

    buffer = io.BytesIO()
    np.savez(buffer, **outputs)
    console.write_file(path, buffer.getvalue())
