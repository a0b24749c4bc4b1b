# SPDX-License-Identifier: Apache-2.0
"""Hardware configuration: a few independent knobs, everything else derived, every limit checked by name."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from openvta.spec.dtypes import DType
from openvta.spec.errors import ConfigError

if sys.version_info >= (3, 11):
    import tomllib
else:  # pragma: no cover - the backport has the same interface
    import tomli as tomllib

EXTENSIONS = ("acc8", "alu_plus", "padv", "requant", "sat")
"""Extensions this version builds, in FEATURES bit order (bgemm, bit 5, has its place reserved)."""

ELEMENT_BYTES_MAX = 4096
SRAM_INDEX_BITS = 13


def _is_power_of_two(value: int) -> bool:
    return value > 0 and value & (value - 1) == 0


def _log2(value: int) -> int:
    return value.bit_length() - 1


@dataclass(frozen=True)
class HardwareConfig:
    """The knobs of one core. Sizes are powers of two; buffers in bytes, widths in bits.

    Attributes:
        name: what people call it; not part of the hash.
        batch: rows of an inp, acc and out element.
        block: lanes of a row: input channels and output channels of one GEMM step.
        inp_bits: width of an inp lane (out lanes have the same width).
        wgt_bits: width of a wgt lane.
        acc_bits: width of an acc lane.
        uop_buffer_bytes: micro-op scratchpad.
        inp_buffer_bytes: inp scratchpad.
        wgt_buffer_bytes: wgt scratchpad.
        acc_buffer_bytes: acc scratchpad (out has the same depth).
        axi_data_bits: width of the AXI4 master's data.
        axi_id_bits: width of its ids; the read clients use ids 0 to 4.
        axi_burst_beats: longest burst, and the aligned window no burst leaves.
        axi_outstanding: read bursts in flight per client, and write bursts in flight.
        token_depth: tokens a dependence queue holds; one more is an error.
        queue_depth: instructions a unit's queue holds.
        requant_cycles: cycles a requantized vector takes (lanes = batch * block / requant_cycles).
        extensions: names out of :data:`EXTENSIONS`, sorted.
    """

    name: str = "default"
    batch: int = 1
    block: int = 16
    inp_bits: int = 8
    wgt_bits: int = 8
    acc_bits: int = 32
    uop_buffer_bytes: int = 1 << 15
    inp_buffer_bytes: int = 1 << 15
    wgt_buffer_bytes: int = 1 << 18
    acc_buffer_bytes: int = 1 << 17
    axi_data_bits: int = 64
    axi_id_bits: int = 4
    axi_burst_beats: int = 64
    axi_outstanding: int = 16
    token_depth: int = 255
    queue_depth: int = 64
    requant_cycles: int = 2
    extensions: tuple[str, ...] = EXTENSIONS

    def __post_init__(self) -> None:
        _check(self)

    # element sizes -------------------------------------------------------------------------------

    @property
    def out_bits(self) -> int:
        """Width of an out lane: outputs are the next layer's inputs."""
        return self.inp_bits

    @property
    def lanes(self) -> int:
        """Lanes of an acc or out element."""
        return self.batch * self.block

    @property
    def uop_bytes(self) -> int:
        """Bytes of one micro-op."""
        return 4

    @property
    def inp_bytes(self) -> int:
        """Bytes of one inp element (batch x block)."""
        return self.batch * self.block * self.inp_bits // 8

    @property
    def wgt_bytes(self) -> int:
        """Bytes of one wgt element (block out x block in)."""
        return self.block * self.block * self.wgt_bits // 8

    @property
    def acc_bytes(self) -> int:
        """Bytes of one acc element (batch x block)."""
        return self.batch * self.block * self.acc_bits // 8

    @property
    def acc8_bytes(self) -> int:
        """Bytes in device memory of one acc element loaded from 8-bit values."""
        return self.batch * self.block

    @property
    def out_bytes(self) -> int:
        """Bytes of one out element (batch x block)."""
        return self.batch * self.block * self.out_bits // 8

    # depths --------------------------------------------------------------------------------------

    @property
    def uop_depth(self) -> int:
        """Micro-ops the uop scratchpad holds."""
        return self.uop_buffer_bytes // self.uop_bytes

    @property
    def inp_depth(self) -> int:
        """Elements the inp scratchpad holds."""
        return self.inp_buffer_bytes // self.inp_bytes

    @property
    def wgt_depth(self) -> int:
        """Elements the wgt scratchpad holds."""
        return self.wgt_buffer_bytes // self.wgt_bytes

    @property
    def acc_depth(self) -> int:
        """Elements the acc and the out scratchpad hold."""
        return self.acc_buffer_bytes // self.acc_bytes

    @property
    def uop_index_bits(self) -> int:
        """U: index width of the uop scratchpad."""
        return _log2(self.uop_depth)

    @property
    def inp_index_bits(self) -> int:
        """I: index width of the inp scratchpad."""
        return _log2(self.inp_depth)

    @property
    def wgt_index_bits(self) -> int:
        """W: index width of the wgt scratchpad."""
        return _log2(self.wgt_depth)

    @property
    def acc_index_bits(self) -> int:
        """A: index width of the acc and out scratchpads."""
        return _log2(self.acc_depth)

    # the rest ------------------------------------------------------------------------------------

    @property
    def axi_data_bytes(self) -> int:
        """Bytes of one AXI beat."""
        return self.axi_data_bits // 8

    @property
    def macs_per_cycle(self) -> int:
        """Multiply-accumulates of one GEMM micro-op."""
        return self.batch * self.block * self.block

    @property
    def inp_type(self) -> DType:
        """Type of an inp lane."""
        return DType(self.inp_bits)

    @property
    def wgt_type(self) -> DType:
        """Type of a wgt lane."""
        return DType(self.wgt_bits)

    @property
    def acc_type(self) -> DType:
        """Type of an acc lane."""
        return DType(self.acc_bits)

    @property
    def out_type(self) -> DType:
        """Type of an out lane."""
        return DType(self.out_bits)

    def has(self, extension: str) -> bool:
        """Whether the extension is built."""
        return extension in self.extensions

    @property
    def label(self) -> str:
        """The original's configuration string, such as 1x16_i8w8a32_15_15_18_17."""
        logs = (self.uop_buffer_bytes, self.inp_buffer_bytes, self.wgt_buffer_bytes, self.acc_buffer_bytes)
        sizes = "_".join(str(_log2(value)) for value in logs)
        return f"{self.batch}x{self.block}_i{self.inp_bits}w{self.wgt_bits}a{self.acc_bits}_{sizes}"

    def knobs(self) -> dict[str, object]:
        """The knobs without the name, in declaration order (extensions as a list)."""
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        del values["name"]
        values["extensions"] = list(self.extensions)
        return values

    def replace(self, **changes: object) -> HardwareConfig:
        """A copy with some knobs changed, checked again.

        Raises:
            ConfigError: the result cannot be built.
        """
        merged: dict[str, object] = {"name": self.name, **self.knobs(), **changes}
        return config_from_mapping(merged)


def _require(config: HardwareConfig, condition: bool, field: str, value: object, limit: str) -> None:
    if not condition:
        raise ConfigError(config.name, field, value, limit)


def _check(c: HardwareConfig) -> None:
    def within(field: str, low: int, high: int) -> None:
        value = getattr(c, field)
        ok = isinstance(value, int) and not isinstance(value, bool) and low <= value <= high
        _require(c, ok, field, value, f"must be an integer from {low} to {high}")

    def power(field: str, low: int, high: int) -> None:
        within(field, low, high)
        _require(c, _is_power_of_two(getattr(c, field)), field, getattr(c, field), "must be a power of two")

    power("batch", 1, 16)
    power("block", 2, 128)
    power("inp_bits", 1, 8)
    power("wgt_bits", 1, 8)
    power("acc_bits", 32, 32)
    for memory in ("uop", "inp", "wgt", "acc"):
        power(f"{memory}_buffer_bytes", 64, 1 << 24)
    power("axi_data_bits", 32, 512)
    within("axi_id_bits", 3, 16)
    power("axi_burst_beats", 2, 256)
    power("axi_outstanding", 1, 64)
    within("token_depth", 1, 65535)
    power("queue_depth", 2, 1024)
    power("requant_cycles", 1, 16)
    _require(
        c, c.requant_cycles <= c.lanes, "requant_cycles", c.requant_cycles, f"must be at most batch * block = {c.lanes}"
    )
    for extension in c.extensions:
        _require(c, extension in EXTENSIONS, "extensions", extension, f"must be one of {', '.join(EXTENSIONS)}")
    _require(
        c,
        tuple(sorted(set(c.extensions))) == c.extensions,
        "extensions",
        list(c.extensions),
        "must be sorted, each name once",
    )
    window = c.axi_burst_beats * c.axi_data_bytes
    _require(
        c,
        window <= 4096,
        "axi_burst_beats",
        c.axi_burst_beats,
        f"the burst window of {window} bytes must be at most 4096",
    )
    for memory, bits in (
        ("inp", c.inp_bits * c.lanes),
        ("wgt", c.wgt_bits * c.block * c.block),
        ("acc", c.acc_bits * c.lanes),
    ):
        _require(c, bits % 8 == 0, f"{memory}_bits", f"{bits} bits an element", "an element must be whole bytes")
        _require(
            c,
            bits // 8 <= ELEMENT_BYTES_MAX,
            f"{memory} element",
            f"{bits // 8} bytes",
            f"must be at most {ELEMENT_BYTES_MAX} bytes",
        )
    for memory in ("uop", "inp", "wgt", "acc"):
        depth = getattr(c, f"{memory}_buffer_bytes") // getattr(c, f"{memory}_bytes")
        _require(
            c,
            depth >= 4,
            f"{memory}_buffer_bytes",
            getattr(c, f"{memory}_buffer_bytes"),
            f"holds {depth} elements, must hold 4",
        )
        _require(
            c,
            depth <= 1 << SRAM_INDEX_BITS,
            f"{memory}_buffer_bytes",
            getattr(c, f"{memory}_buffer_bytes"),
            f"holds {depth} elements; sram_base addresses at most {1 << SRAM_INDEX_BITS}",
        )
    u, i, w, a = c.uop_index_bits, c.inp_index_bits, c.wgt_index_bits, c.acc_index_bits
    logs = f"U={u} I={i} W={w} A={a}"
    _require(c, 2 * u + 37 <= 63, "uop_buffer_bytes", c.uop_buffer_bytes, f"2U + 37 must be at most 63 ({logs})")
    _require(
        c,
        a + max(a, i) + w <= 32,
        "acc_buffer_bytes, inp_buffer_bytes, wgt_buffer_bytes",
        (c.acc_buffer_bytes, c.inp_buffer_bytes, c.wgt_buffer_bytes),
        f"a micro-op needs A + max(A, I) + W = {a + max(a, i) + w} bits, must be at most 32 ({logs})",
    )
    _require(
        c,
        a + i + w <= 32,
        "acc_buffer_bytes, inp_buffer_bytes, wgt_buffer_bytes",
        (c.acc_buffer_bytes, c.inp_buffer_bytes, c.wgt_buffer_bytes),
        f"GEMM factors need 2(A + I + W) = {2 * (a + i + w)} bits, must be at most 64 ({logs})",
    )
    _require(
        c,
        4 * a + 20 <= 64,
        "acc_buffer_bytes",
        c.acc_buffer_bytes,
        f"ALU factors need 4A + 20 = {4 * a + 20} bits, must be at most 64 ({logs})",
    )


def config_from_mapping(values: Mapping[str, object], *, name: str | None = None) -> HardwareConfig:
    """Build a configuration from knob names and values (as read from TOML or JSON).

    Raises:
        ConfigError: an unknown knob, a value of the wrong type, or a configuration that cannot be built.
    """
    label = str(name or values.get("name", "unnamed"))
    known = {field.name for field in dataclasses.fields(HardwareConfig)}
    kwargs: dict[str, object] = {}
    for key, value in values.items():
        if key not in known:
            raise ConfigError(label, key, value, f"no such knob; knobs are {', '.join(sorted(known))}")
        kwargs[key] = value
    kwargs["name"] = label
    extensions = kwargs.get("extensions", EXTENSIONS)
    if not isinstance(extensions, (list, tuple)) or not all(isinstance(item, str) for item in extensions):
        raise ConfigError(label, "extensions", extensions, "must be a list of names")
    kwargs["extensions"] = tuple(sorted(extensions))
    return HardwareConfig(**kwargs)  # type: ignore[arg-type]


def named_configs() -> tuple[str, ...]:
    """Names of the configurations that come with the package."""
    folder = resources.files("openvta.spec") / "configs"
    return tuple(sorted(entry.name[: -len(".toml")] for entry in folder.iterdir() if entry.name.endswith(".toml")))


def load_config(name_or_path: str | Path) -> HardwareConfig:
    """Read a named configuration, or a TOML file. A file may say ``base = "NAME"`` and change some knobs.

    Raises:
        ConfigError: no such configuration or file, damaged TOML, or a configuration that cannot be built.
    """
    return _load(str(name_or_path), depth=0)


def _load(name_or_path: str, depth: int) -> HardwareConfig:
    if depth > 8:
        raise ConfigError(name_or_path, "base", name_or_path, "bases nest deeper than 8: do they form a circle?")
    if name_or_path in named_configs():
        text = (resources.files("openvta.spec") / "configs" / f"{name_or_path}.toml").read_text("utf-8")
        name = name_or_path
    else:
        path = Path(name_or_path)
        if not path.is_file():
            raise ConfigError(
                name_or_path, "config", name_or_path, f"neither a file nor one of {', '.join(named_configs())}"
            )
        if path.stat().st_size > 1 << 20:
            raise ConfigError(
                name_or_path, "config", f"{path.stat().st_size} bytes", "a configuration file is at most 1 MiB"
            )
        text = path.read_text("utf-8")
        name = path.stem
    try:
        values = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(name, "config", name_or_path, f"not valid TOML: {error}") from error
    base = values.pop("base", None)
    merged: dict[str, object] = {}
    if base is not None:
        merged.update(_load(str(base), depth + 1).knobs())
    merged.update(values)
    return config_from_mapping(merged, name=name)
