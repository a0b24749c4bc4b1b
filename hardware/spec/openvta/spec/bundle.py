# SPDX-License-Identifier: Apache-2.0
"""The bundle: what the compiler hands to every backend, in memory and as one deterministic zip file.

A bundle holds one device image (constants at fixed offsets, the rest of ``memory_bytes`` for tensors), programs
("segments", each ending in FINISH), the tensor table, the order of accelerator and host steps, and what was placed
where. The zip is readable without this code: ``manifest.json`` names every member with its SHA-256.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import tempfile
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from openvta.spec.config import HardwareConfig, config_from_mapping
from openvta.spec.errors import FormatError, SpecError
from openvta.spec.isa import INSN_BYTES
from openvta.spec.program import Program
from openvta.spec.resolve import canonical_json, hash_text

SCHEMA = 1
ALIGNMENT = 4096
BASES = ("uop", "inp", "wgt", "acc", "out")
LAYOUT = "CHWbc"
DTYPES = ("float32", "int8", "uint8", "int32", "int64")
MANIFEST = "manifest.json"
MAX_MEMBERS = 4096
MAX_MEMBER_BYTES = 1 << 30
MAX_TOTAL_BYTES = 1 << 31
MAX_MANIFEST_BYTES = 1 << 26
MAX_MEMORY_BYTES = 1 << 36
_TIME = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True)
class TensorSpec:
    """A tensor in device memory.

    Attributes:
        name: as in the model.
        role: "input", "output" or "intermediate" (seen from the bundle).
        offset: bytes from the start of the image.
        dtype: "int8" (what device lanes hold).
        shape: logical shape for one run: (N, C, H, W) or (N, C) with N = the configuration's batch.
        scale: real value of one step, for reading only.
        zero_point: the integer that stands for zero, for reading only.
        layout: "CHWbc": elements [C / block][H][W] of batch x block lanes, channels padded with zero.
    """

    name: str
    role: str
    offset: int
    dtype: str
    shape: tuple[int, ...]
    scale: float = 1.0
    zero_point: int = 0
    layout: str = LAYOUT


@dataclass(frozen=True)
class Segment:
    """One launch: instructions at ``insn_offset`` of the image; the last is FINISH."""

    program: Program
    insn_offset: int


@dataclass(frozen=True)
class AccelStep:
    """Run a segment: reads and writes tensors of the tensor table."""

    segment: int
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True)
class HostStep:
    """Run an ONNX model on the host. Names are those of its graph inputs and outputs and of the values they carry."""

    name: str
    model: bytes
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


Step = AccelStep | HostStep


@dataclass(frozen=True)
class LayerInfo:
    """What one layer became.

    Attributes:
        name: layer (the model's node).
        op: operator.
        where: "accelerator" or "host".
        reason: why there (empty on the accelerator).
        macs: multiply-accumulates of the layer for one image, without padding.
        segment, first_insn, last_insn: its instructions, or -1 on the host.
        uops: micro-ops executed.
        dram_bytes: bytes loaded and stored.
        predicted_cycles: of the schedule's cost model, 0 if there is none.
    """

    name: str
    op: str
    where: str
    reason: str = ""
    macs: int = 0
    segment: int = -1
    first_insn: int = -1
    last_insn: int = -1
    uops: int = 0
    dram_bytes: int = 0
    predicted_cycles: int = 0


@dataclass(frozen=True)
class Bundle:
    """See the module.

    Attributes:
        name: of the model.
        config: the configuration it was compiled for; its hash travels with it.
        memory_bytes: size of the device image, a multiple of 4096.
        image: (offset, bytes) of constants, ascending, not overlapping; everything else starts as zero.
        bases: byte offset (4096-aligned) of each memory type's base register from the start of the image.
        tensors, segments, steps, layers: as their types say.
        inputs, outputs: names a user passes in and gets back, each with (dtype, shape); N is 0 where any is accepted.
        metadata: short texts (compiler version, options).
    """

    name: str
    config: HardwareConfig
    memory_bytes: int
    image: tuple[tuple[int, bytes], ...]
    bases: Mapping[str, int]
    tensors: tuple[TensorSpec, ...]
    segments: tuple[Segment, ...]
    steps: tuple[Step, ...]
    layers: tuple[LayerInfo, ...]
    inputs: Mapping[str, tuple[str, tuple[int, ...]]]
    outputs: Mapping[str, tuple[str, tuple[int, ...]]]
    metadata: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check(self)

    @property
    def config_hash(self) -> str:
        """The configuration's hash, 16 hex digits."""
        return hash_text(self.config)

    @property
    def placement(self) -> Placement:
        """Every layer with where it runs and why; prints as a table."""
        return Placement(self.layers)

    def tensor(self, name: str) -> TensorSpec:
        """The tensor of that name.

        Raises:
            SpecError: there is none.
        """
        for spec in self.tensors:
            if spec.name == name:
                return spec
        raise SpecError(f"bundle '{self.name}' has no tensor '{name}'")

    def to_bytes(self) -> bytes:
        """The zip file; equal bundles give equal bytes."""
        return _write(self)

    def save(self, path: str | Path) -> None:
        """Write the zip file; an existing file is replaced only when the new one is complete."""
        target = Path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        data = self.to_bytes()
        handle, name = tempfile.mkstemp(prefix=f".{target.name}-", dir=target.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            Path(name).chmod(0o644)
            Path(name).replace(target)
        finally:
            with suppress(FileNotFoundError):
                Path(name).unlink()

    @staticmethod
    def load(path: str | Path) -> Bundle:
        """Read a zip file.

        Raises:
            FormatError: not a bundle, damaged, of another schema, or made for a configuration whose hash differs now.
        """
        source = Path(path)
        try:
            size = source.stat().st_size
            if not source.is_file():
                raise FormatError(f"{source}: not a file")
            if size > MAX_TOTAL_BYTES:
                raise FormatError(f"{source}: {size} bytes: a bundle is at most {MAX_TOTAL_BYTES} bytes")
            return from_bytes(source.read_bytes(), str(source))
        except OSError as error:
            raise FormatError(f"{source}: {error.strerror or error}") from error


@dataclass(frozen=True)
class Placement:
    """The placement table."""

    layers: tuple[LayerInfo, ...]

    def on_host(self) -> tuple[LayerInfo, ...]:
        """Layers that do not run on the accelerator."""
        return tuple(layer for layer in self.layers if layer.where != "accelerator")

    def __str__(self) -> str:
        head = ("layer", "operator", "where", "MAC", "bytes", "reason")
        rows = [
            (layer.name, layer.op, layer.where, f"{layer.macs:,}", f"{layer.dram_bytes:,}", layer.reason)
            for layer in self.layers
        ]
        widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
        right = {3, 4}
        lines = []
        for row in (head, *rows):
            cells = [
                cell.rjust(width) if column in right else cell.ljust(width)
                for column, (cell, width) in enumerate(zip(row, widths, strict=True))
            ]
            lines.append("  ".join(cells).rstrip())
        return "\n".join(lines)


def check(bundle: Bundle) -> None:
    """Everything a bundle promises about itself.

    Raises:
        FormatError: naming the field, its value and the limit.
    """
    size = bundle.memory_bytes

    def refuse(what: str, value: object, limit: str) -> None:
        raise FormatError(f"bundle '{bundle.name}': {what} = {value}: {limit}")

    if not 0 < size <= MAX_MEMORY_BYTES or size % ALIGNMENT:
        refuse("memory_bytes", size, f"must be a positive multiple of {ALIGNMENT}, at most {MAX_MEMORY_BYTES}")
    if set(bundle.bases) != set(BASES):
        refuse("bases", sorted(bundle.bases), f"must name {', '.join(BASES)}")
    for memory, offset in bundle.bases.items():
        if not 0 <= offset < size or offset % ALIGNMENT:
            refuse(f"bases.{memory}", offset, f"must be a multiple of {ALIGNMENT} below memory_bytes {size}")
    end = 0
    for offset, data in bundle.image:
        if offset < end or offset + len(data) > size:
            refuse("image piece", f"{offset} + {len(data)}", f"pieces ascend without overlap inside {size} bytes")
        end = offset + len(data)
    names: set[str] = set()
    for spec in bundle.tensors:
        if spec.name in names:
            refuse("tensor", spec.name, "is there twice")
        names.add(spec.name)
        if spec.layout != LAYOUT or spec.dtype != "int8" or spec.role not in ("input", "output", "intermediate"):
            refuse(
                f"tensor {spec.name}", (spec.layout, spec.dtype, spec.role), "layout CHWbc, dtype int8, a known role"
            )
        if len(spec.shape) not in (2, 4) or min(spec.shape, default=0) < 1 or spec.shape[0] != bundle.config.batch:
            refuse(
                f"tensor {spec.name}.shape",
                spec.shape,
                f"must be (N, C) or (N, C, H, W) with N = {bundle.config.batch}",
            )
        if not 0 <= spec.offset <= spec.offset + device_bytes(bundle.config, spec.shape) <= size:
            refuse(f"tensor {spec.name}.offset", spec.offset, f"the tensor must lie inside {size} bytes")
    for number, segment in enumerate(bundle.segments):
        if segment.program.config != bundle.config:
            refuse(f"segment {number}", segment.program.config.name, "is of another configuration")
        length = len(segment.program) * INSN_BYTES
        if segment.insn_offset % INSN_BYTES or not 0 <= segment.insn_offset <= segment.insn_offset + length <= size:
            refuse(
                f"segment {number}.insn_offset", segment.insn_offset, f"must be 16-aligned and lie inside {size} bytes"
            )
    for number, step in enumerate(bundle.steps):
        if isinstance(step, AccelStep):
            if not 0 <= step.segment < len(bundle.segments):
                refuse(f"step {number}.segment", step.segment, f"there are {len(bundle.segments)} segments")
            for name in (*step.inputs, *step.outputs):
                if name not in names:
                    refuse(f"step {number}", name, "is not in the tensor table")
    for layer in bundle.layers:
        if layer.segment == -1:
            continue
        if not 0 <= layer.segment < len(bundle.segments):
            refuse(f"layer {layer.name}.segment", layer.segment, f"there are {len(bundle.segments)} segments")
        length = len(bundle.segments[layer.segment].program)
        if not 0 <= layer.first_insn <= layer.last_insn < length:
            span = f"{layer.first_insn}..{layer.last_insn}"
            refuse(f"layer {layer.name}: instructions", span, f"segment {layer.segment} has {length}")
    for name, (dtype, shape) in (*bundle.inputs.items(), *bundle.outputs.items()):
        if dtype not in DTYPES or not shape or min(shape) < 0 or 0 in shape[1:]:
            refuse(f"{name}", f"{dtype} {list(shape)}", f"must be one of {', '.join(DTYPES)} with a batch dimension")


def device_bytes(config: HardwareConfig, shape: tuple[int, ...]) -> int:
    """Bytes a tensor of a logical shape takes in layout CHWbc (int8 lanes)."""
    blocks = -(-shape[1] // config.block)
    pixels = shape[2] * shape[3] if len(shape) == 4 else 1
    return blocks * pixels * config.batch * config.block


# Writing and reading -----------------------------------------------------------------------------


def _write(bundle: Bundle) -> bytes:
    members: dict[str, bytes] = {}
    for number, segment in enumerate(bundle.segments):
        members[f"program-{number}.bin"] = segment.program.to_bytes()
    for number, (_, data) in enumerate(bundle.image):
        members[f"image-{number}.bin"] = data
    steps: list[dict[str, object]] = []
    for number, step in enumerate(bundle.steps):
        if isinstance(step, HostStep):
            member = f"host-{number}.onnx"
            members[member] = step.model
            steps.append(
                {"kind": "host", "name": step.name, "model": member, "inputs": step.inputs, "outputs": step.outputs}
            )
        else:
            steps.append(
                {"kind": "accelerator", "segment": step.segment, "inputs": step.inputs, "outputs": step.outputs}
            )
    manifest = {
        "schema": SCHEMA,
        "name": bundle.name,
        "config": {"name": bundle.config.name, **bundle.config.knobs()},
        "config_hash": bundle.config_hash,
        "memory_bytes": bundle.memory_bytes,
        "bases": dict(bundle.bases),
        "image": [{"offset": offset, "data": f"image-{number}.bin"} for number, (offset, _) in enumerate(bundle.image)],
        "tensors": [asdict(spec) for spec in bundle.tensors],
        "segments": [
            {"program": f"program-{number}.bin", "insn_offset": segment.insn_offset}
            for number, segment in enumerate(bundle.segments)
        ],
        "steps": steps,
        "layers": [asdict(layer) for layer in bundle.layers],
        "inputs": {name: [dtype, list(shape)] for name, (dtype, shape) in bundle.inputs.items()},
        "outputs": {name: [dtype, list(shape)] for name, (dtype, shape) in bundle.outputs.items()},
        "metadata": dict(bundle.metadata),
        "members": {name: hashlib.sha256(data).hexdigest() for name, data in members.items()},
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        for name, data in [(MANIFEST, canonical_json(manifest).encode()), *sorted(members.items())]:
            info = zipfile.ZipInfo(name, _TIME)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = 0o644 << 16
            archive.writestr(info, data)
    return buffer.getvalue()


def from_bytes(data: bytes, label: str = "bundle") -> Bundle:
    """Read a bundle from the bytes of its zip file; treats them as hostile.

    Raises:
        FormatError: see :meth:`Bundle.load`.
    """
    try:
        members = _members(data, label)
        manifest = json.loads(members.pop(MANIFEST))
        return _build(manifest, members, label)
    except FormatError:
        raise
    except (KeyError, TypeError, ValueError, RecursionError, AttributeError, OverflowError) as error:
        raise FormatError(f"{label}: damaged manifest: {type(error).__name__}: {error}") from error


def _members(data: bytes, label: str) -> dict[str, bytes]:
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
    except (zipfile.BadZipFile, ValueError, NotImplementedError, OSError, EOFError) as error:
        raise FormatError(f"{label}: not a bundle (a zip file), or cut short: {error}") from error
    with archive:
        infos = archive.infolist()
        if len(infos) > MAX_MEMBERS:
            raise FormatError(f"{label}: {len(infos)} members: at most {MAX_MEMBERS}")
        names = [info.filename for info in infos]
        for name in names:
            if "/" in name or "\\" in name or name in ("", ".", "..") or "\0" in name:
                raise FormatError(f"{label}: member {name!r}: names have no folders")
        if len({name.casefold() for name in names}) != len(names):
            raise FormatError(f"{label}: a member is there twice")
        if MANIFEST not in names:
            raise FormatError(f"{label}: no {MANIFEST}: not a bundle")
        total = 0
        result = {}
        for info in infos:
            limit = MAX_MANIFEST_BYTES if info.filename == MANIFEST else MAX_MEMBER_BYTES
            total += info.file_size
            if info.file_size > limit or total > MAX_TOTAL_BYTES:
                limits = f"at most {limit}, {MAX_TOTAL_BYTES} in all"
                raise FormatError(f"{label}: member {info.filename}: {info.file_size} bytes: {limits}")
            try:
                with archive.open(info) as stream:
                    content = stream.read(info.file_size + 1)
            except (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, RuntimeError) as error:
                raise FormatError(f"{label}: member {info.filename} is damaged: {error}") from error
            if len(content) != info.file_size:
                raise FormatError(f"{label}: member {info.filename}: not the {info.file_size} bytes it declares")
            result[info.filename] = content
    return result


def _build(manifest: dict[str, Any], members: dict[str, bytes], label: str) -> Bundle:
    if manifest.get("schema") != SCHEMA:
        raise FormatError(
            f"{label}: schema = {manifest.get('schema')}: this version reads {SCHEMA}; compile the model again"
        )
    declared = manifest["members"]
    if set(declared) != set(members):
        wrong = sorted(set(declared) ^ set(members))
        raise FormatError(f"{label}: member {wrong[0]}: is in the manifest or in the file, but not in both")
    for name, digest in declared.items():
        if hashlib.sha256(members[name]).hexdigest() != digest:
            raise FormatError(f"{label}: member {name}: its SHA-256 is not the one in the manifest")
    try:
        config = config_from_mapping(manifest["config"])
    except SpecError as error:
        raise FormatError(f"{label}: {error}") from error
    if hash_text(config) != manifest["config_hash"]:
        raise FormatError(
            f"{label}: config_hash = {manifest['config_hash']}: configuration '{config.name}' has {hash_text(config)} "
            "here (another instruction set version?); compile the model again"
        )
    return Bundle(
        name=_text(manifest["name"]),
        config=config,
        memory_bytes=_number(manifest["memory_bytes"]),
        image=tuple((_number(piece["offset"]), members[piece["data"]]) for piece in manifest["image"]),
        bases={_text(key): _number(value) for key, value in manifest["bases"].items()},
        tensors=tuple(_tensor(item) for item in manifest["tensors"]),
        segments=tuple(
            Segment(Program.from_bytes(config, members[item["program"]]), _number(item["insn_offset"]))
            for item in manifest["segments"]
        ),
        steps=tuple(_step(item, members) for item in manifest["steps"]),
        layers=tuple(_layer(item) for item in manifest["layers"]),
        inputs={_text(name): (_text(item[0]), _shape(item[1])) for name, item in manifest["inputs"].items()},
        outputs={_text(name): (_text(item[0]), _shape(item[1])) for name, item in manifest["outputs"].items()},
        metadata={_text(key): _text(value) for key, value in manifest["metadata"].items()},
    )


def _number(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise FormatError(f"{value!r}: must be a whole number")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise FormatError(f"{value!r}: must be a text")
    return value


def _shape(value: Iterable[object]) -> tuple[int, ...]:
    return tuple(_number(item) for item in value)


def _tensor(item: dict[str, Any]) -> TensorSpec:
    return TensorSpec(
        name=_text(item["name"]),
        role=_text(item["role"]),
        offset=_number(item["offset"]),
        dtype=_text(item["dtype"]),
        shape=_shape(item["shape"]),
        scale=float(item["scale"]),
        zero_point=_number(item["zero_point"]),
        layout=_text(item["layout"]),
    )


def _layer(item: dict[str, Any]) -> LayerInfo:
    texts: dict[str, Any] = {key: _text(item[key]) for key in ("name", "op", "where", "reason")}
    unknown = sorted(set(item) - {field.name for field in fields(LayerInfo)})
    if unknown:
        raise FormatError(f"layer {texts['name']}: {unknown[0]}: no such field")
    values: dict[str, Any] = {key: _number(value) for key, value in item.items() if key not in texts}
    return LayerInfo(**texts, **values)


def _step(item: dict[str, Any], members: dict[str, bytes]) -> Step:
    names = tuple(_text(name) for name in item["inputs"]), tuple(_text(name) for name in item["outputs"])
    if item["kind"] == "accelerator":
        return AccelStep(_number(item["segment"]), *names)
    if item["kind"] == "host":
        return HostStep(_text(item["name"]), members[item["model"]], *names)
    raise FormatError(f"step kind = {item['kind']!r}: must be accelerator or host")
