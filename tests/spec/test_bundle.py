# SPDX-License-Identifier: Apache-2.0
"""Bundles: the same bytes for the same bundle, and a clear refusal for whatever is damaged."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openvta.spec import FormatError, Opcode, Program, SpecError, load_config, make
from openvta.spec import bundle as bundle_module
from openvta.spec.asm import format_programs, parse_programs
from openvta.spec.bundle import AccelStep, Bundle, HostStep, LayerInfo, Segment, TensorSpec, device_bytes, from_bytes
from openvta.spec.tensor_layout import pack_tensor, unpack_tensor

TINY = load_config("tiny")
BATCH = load_config("batch")


def example() -> Bundle:
    program = Program.assemble(TINY, [make(Opcode.GEMM, uop_end=2, iter_in=3, push_next=1), make(Opcode.FINISH)])
    return Bundle(
        name="example",
        config=TINY,
        memory_bytes=0x3000,
        image=((0x1000, b"weights"), (0x1800, b"micro-ops")),
        bases={"uop": 0x1000, "inp": 0, "wgt": 0x1000, "acc": 0, "out": 0},
        tensors=(
            TensorSpec("x", "input", 0, "int8", (1, 3, 2, 2), 0.5, -3),
            TensorSpec("y", "output", 0x200, "int8", (1, 10)),
        ),
        segments=(Segment(program, 0x2000),),
        steps=(HostStep("front", b"onnx", ("image",), ("x",)), AccelStep(0, ("x",), ("y",))),
        layers=(LayerInfo("conv", "Conv2d", "accelerator", macs=108, segment=0, first_insn=0, last_insn=0),),
        inputs={"image": ("float32", (0, 3, 2, 2))},
        outputs={"y": ("int8", (0, 10))},
        metadata={"compiler": "0.1"},
    )


def moved(offset: int, shape: tuple[int, ...] = (1, 3, 2, 2), dtype: str = "int8") -> tuple[TensorSpec, ...]:
    """The example's tensors with another first one."""
    return (TensorSpec("x", "input", offset, dtype, shape), example().tensors[1])


def changed(**fields: Any) -> Bundle:
    return Bundle(**{**vars(example()), **fields})


def test_round_trip_is_exact(tmp_path: Path) -> None:
    bundle = example()
    assert from_bytes(bundle.to_bytes()) == bundle
    assert bundle.to_bytes() == example().to_bytes()
    path = tmp_path / "new" / "m.bundle"
    bundle.save(path)
    assert Bundle.load(path) == bundle
    assert Bundle.load(path).to_bytes() == path.read_bytes() == bundle.to_bytes()
    assert [item.name for item in path.parent.iterdir()] == ["m.bundle"], "no temporary file stays"


def test_zip_is_readable_without_this_code() -> None:
    archive = zipfile.ZipFile(io.BytesIO(example().to_bytes()))
    manifest = json.loads(archive.read("manifest.json"))
    assert manifest["schema"] == 1
    assert manifest["config_hash"] == example().config_hash
    assert archive.read("program-0.bin") == example().segments[0].program.to_bytes()
    for name, digest in manifest["members"].items():
        assert hashlib.sha256(archive.read(name)).hexdigest() == digest


def test_a_failed_save_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "m.bundle"
    path.write_bytes(b"old")

    def no_space(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(bundle_module.os, "fsync", no_space)
    with pytest.raises(OSError, match="No space"):
        example().save(path)
    assert path.read_bytes() == b"old"
    assert [item.name for item in tmp_path.iterdir()] == ["m.bundle"]


def test_disassembly_of_a_bundle_assembles_to_the_same_bytes() -> None:
    programs = [segment.program for segment in example().segments]
    assert list(parse_programs(TINY, format_programs(TINY, programs, title="example"))) == programs


def test_placement_prints_every_layer() -> None:
    layers = (*example().layers, LayerInfo("softmax", "Host", "host", "operator Softmax is not built"))
    text = str(changed(layers=layers).placement)
    assert "conv" in text and "operator Softmax is not built" in text
    assert [layer.name for layer in changed(layers=layers).placement.on_host()] == ["softmax"]


# what a bundle refuses to be ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"memory_bytes": 0x3001}, r"memory_bytes = 12289: must be a positive multiple of 4096"),
        ({"memory_bytes": 0}, r"memory_bytes = 0"),
        ({"memory_bytes": 1 << 40}, r"memory_bytes = 1099511627776: .* at most"),
        ({"bases": {"uop": 0}}, r"bases = \['uop'\]: must name uop, inp, wgt, acc, out"),
        ({"bases": {**example().bases, "wgt": 0x10}}, r"bases\.wgt = 16: must be a multiple of 4096"),
        ({"bases": {**example().bases, "wgt": 0x3000}}, r"bases\.wgt = 12288"),
        ({"image": ((0x1000, b"aa"), (0x1001, b"b"))}, r"image piece = 4097 \+ 1: pieces ascend without overlap"),
        ({"image": ((0x2FFF, b"aa"),)}, r"image piece = 12287 \+ 2"),
        ({"tensors": (*example().tensors, example().tensors[0])}, r"tensor = x: is there twice"),
        ({"tensors": moved(0x2FF8)}, r"tensor x\.offset = 12280"),
        ({"tensors": moved(-1)}, r"tensor x\.offset = -1"),
        ({"tensors": moved(0, (2, 3, 2, 2))}, r"tensor x\.shape .* N = 1"),
        ({"tensors": moved(0, (1, 3), "float32")}, r"dtype int8"),
        ({"segments": (Segment(example().segments[0].program, 0x2FF0),)}, r"segment 0\.insn_offset = 12272"),
        ({"segments": (Segment(example().segments[0].program, 0x2008),)}, r"must be 16-aligned"),
        ({"segments": ()}, r"step 1\.segment = 0: there are 0 segments"),
        ({"segments": (Segment(Program(BATCH, ()), 0),)}, r"segment 0 = batch: is of another configuration"),
        ({"steps": (AccelStep(0, ("z",), ("y",)),)}, r"step 0 = z: is not in the tensor table"),
    ],
)  # fmt: skip
def test_contradictions_are_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(FormatError, match=message):
        changed(**fields)


# hostile files ------------------------------------------------------------------------------------


def repacked(change: Callable[[dict[str, bytes], dict[str, Any]], None], *, resign: bool = True) -> bytes:
    """The example's file with members and manifest changed; hashes are made right again unless told otherwise."""
    archive = zipfile.ZipFile(io.BytesIO(example().to_bytes()))
    members = {name: archive.read(name) for name in archive.namelist() if name != "manifest.json"}
    manifest = json.loads(archive.read("manifest.json"))
    change(members, manifest)
    if resign:
        manifest["members"] = {name: hashlib.sha256(data).hexdigest() for name, data in members.items()}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as out:
        out.writestr("manifest.json", json.dumps(manifest))
        for name, data in members.items():
            out.writestr(name, data)
    return buffer.getvalue()


Change = Callable[[dict[str, bytes], dict[str, Any]], None]


def put(*path: Any, value: Any) -> Change:
    def change(members: dict[str, bytes], manifest: dict[str, Any]) -> None:
        place = manifest
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = value

    return change


def drop(name: str) -> Change:
    return lambda members, manifest: manifest.pop(name)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (put("schema", value=2), r"schema = 2: this version reads 1; compile the model again"),
        (put("config_hash", value="00"), r"config_hash = 00: configuration 'tiny' has [0-9a-f]{16} here"),
        (put("config", "block", value=12), r"block = 12: must be a power of two"),
        (put("config", "warp", value=1), r"warp = 1: no such knob"),
        (put("memory_bytes", value="many"), r"'many': must be a whole number"),
        (put("memory_bytes", value=1e9), r"must be a whole number"),
        (put("image", 0, "offset", value=1 << 70), r"image piece"),
        (put("image", 0, "data", value="nowhere.bin"), r"damaged manifest: KeyError"),
        (put("tensors", 0, "offset", value=1 << 40), r"tensor x\.offset"),
        (put("tensors", 0, "shape", value=[1, 1 << 62, 1, 1]), r"tensor x\.offset|tensor x\.shape"),
        (put("tensors", 0, "shape", value=[]), r"tensor x\.shape"),
        (put("tensors", 0, "shape", value=None), r"damaged manifest: TypeError"),
        (put("steps", 0, "kind", value="cloud"), r"step kind = 'cloud'"),
        (put("steps", 1, "segment", value=9), r"step 1\.segment = 9"),
        (put("layers", 0, "colour", value="red"), r"layer conv: colour: no such field"),
        (put("layers", 0, "macs", value="many"), r"'many': must be a whole number"),
        (put("layers", 0, "last_insn", value=9), r"layer conv: instructions = 0\.\.9: segment 0 has 2"),
        (put("inputs", "image", value=["complex64", [0, 3]]), r"image = complex64 \[0, 3\]: must be one of float32"),
        (drop("tensors"), r"damaged manifest: KeyError: 'tensors'"),
        (
            lambda members, manifest: members.update({"program-0.bin": b"123"}),
            r"program of 3 bytes: must be a multiple of 16",
        ),
    ],
)
def test_damaged_manifests(change: Change, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        from_bytes(repacked(change), "m.bundle")


def test_changed_missing_and_extra_members() -> None:
    def flip(members: dict[str, bytes], manifest: dict[str, Any]) -> None:
        members["image-0.bin"] = b"Weights"

    with pytest.raises(FormatError, match=r"m\.bundle: member image-0\.bin: its SHA-256 is not the one"):
        from_bytes(repacked(flip, resign=False), "m.bundle")
    with pytest.raises(FormatError, match=r"member image-1\.bin: is in the manifest or in the file, but not in both"):
        from_bytes(repacked(lambda members, _: members.pop("image-1.bin") and None, resign=False))
    with pytest.raises(FormatError, match=r"member evil\.bin: is in the manifest or in the file"):
        from_bytes(repacked(lambda members, _: members.update({"evil.bin": b""}), resign=False))


@pytest.mark.parametrize("name", ["../evil", "/etc/evil", "a\\b", ".."])
def test_names_with_folders(name: str) -> None:
    with pytest.raises(FormatError, match="names have no folders"):
        from_bytes(repacked(lambda members, _: members.update({name: b"x"})))


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_duplicate_members() -> None:
    buffer = io.BytesIO(example().to_bytes())
    with zipfile.ZipFile(buffer, "a") as archive:
        archive.writestr("IMAGE-0.bin", b"other")
    with pytest.raises(FormatError, match="a member is there twice"):
        from_bytes(buffer.getvalue())


def test_sizes_are_checked_before_memory_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundle_module, "MAX_MEMBER_BYTES", 1 << 20)
    bomb = repacked(lambda members, _: members.update({"image-0.bin": bytes(8 << 20)}))
    assert len(bomb) < 1 << 16
    with pytest.raises(FormatError, match=r"member image-0\.bin: 8388608 bytes: at most 1048576"):
        from_bytes(bomb)
    monkeypatch.setattr(bundle_module, "MAX_MEMBERS", 2)
    with pytest.raises(FormatError, match="members: at most 2"):
        from_bytes(example().to_bytes())


def test_truncated_anywhere() -> None:
    data = example().to_bytes()
    for cut in range(0, len(data), max(1, len(data) // 60)):
        with pytest.raises(FormatError):
            from_bytes(data[:cut])


@settings(max_examples=150, deadline=None)
@given(at=st.integers(0, 10_000), bit=st.integers(0, 7))
def test_a_flipped_bit_never_crashes(at: int, bit: int) -> None:
    """A damaged file is refused, or (a bit the zip format does not look at) reads as the same bundle."""
    data = bytearray(example().to_bytes())
    data[at % len(data)] ^= 1 << bit
    try:
        read = from_bytes(bytes(data))
    except FormatError:
        return
    assert read == example()


def test_what_is_no_file(tmp_path: Path) -> None:
    for path, message in ((tmp_path / "none", "No such file"), (tmp_path, "not a file")):
        with pytest.raises(FormatError, match=message):
            Bundle.load(path)
    for content in (b"", b"PK", b"GIF89a", json.dumps({"schema": 1}).encode()):
        with pytest.raises(FormatError, match="not a bundle"):
            from_bytes(content)


# tensors in device memory -------------------------------------------------------------------------


def test_layout_by_hand() -> None:
    """batch 2, block 8: element = 2 rows of 8 channels; elements in order block, height, width."""
    values = np.arange(2 * 10 * 2 * 3).reshape(2, 10, 2, 3).astype(np.int8)
    data = pack_tensor(BATCH, values).view(np.int8)
    assert data.size == device_bytes(BATCH, (2, 10, 2, 3)) == 2 * 6 * 16

    def lane(n: int, c: int, h: int, w: int) -> int:
        element = (c // 8 * 2 + h) * 3 + w
        return int(data[element * 16 + n * 8 + c % 8])

    for n, c, h, w in np.ndindex(2, 10, 2, 3):
        assert lane(n, c, h, w) == values[n, c, h, w]
    assert lane(0, 10, 0, 0) == lane(1, 15, 1, 2) == 0, "channels that are not there are zero"


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_pack_and_unpack_are_inverse(data: st.DataObject) -> None:
    config = data.draw(st.sampled_from([TINY, BATCH]))
    rows = data.draw(st.integers(1, config.batch))
    shape = data.draw(st.tuples(*[st.integers(1, 20)] * data.draw(st.sampled_from([1, 3]))))
    values = np.random.default_rng(data.draw(st.integers(0, 99))).integers(-128, 128, (rows, *shape)).astype(np.int8)
    full = unpack_tensor(config, pack_tensor(config, values), (config.batch, *shape))
    assert np.array_equal(full[:rows], values)
    assert not full[rows:].any()


def test_shapes_that_do_not_fit() -> None:
    with pytest.raises(SpecError, match="N at most 1"):
        pack_tensor(TINY, np.zeros((2, 3), np.int8))
    with pytest.raises(SpecError, match=r"must be \(N, C\)"):
        pack_tensor(TINY, np.zeros((1, 3, 3), np.int8))
    with pytest.raises(SpecError, match="7 bytes for shape"):
        unpack_tensor(TINY, np.zeros(7, np.uint8), (1, 3))
