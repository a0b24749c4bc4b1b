# SPDX-License-Identifier: Apache-2.0
"""Configurations: derived numbers, the hash, and refusals that name field, value and limit."""

from __future__ import annotations

from pathlib import Path

import pytest

from openvta.spec import ConfigError, config_hash, hash_text, load_config, named_configs, resolve
from openvta.spec.config import HardwareConfig, config_from_mapping
from openvta.spec.insn import isa_of


def test_named_configurations() -> None:
    assert {"default", "tiny", "batch", "b1x32"} <= set(named_configs())
    assert load_config("default").label == "1x16_i8w8a32_15_15_18_17"
    assert load_config("batch").label == "2x8_i8w8a32_15_15_16_17"
    assert load_config("b1x32").block == 32
    assert load_config("tiny").block == 4


def test_derived_numbers_of_the_default() -> None:
    c = load_config("default")
    assert (c.uop_index_bits, c.inp_index_bits, c.wgt_index_bits, c.acc_index_bits) == (13, 11, 10, 11)
    assert (c.uop_depth, c.inp_depth, c.wgt_depth, c.acc_depth) == (8192, 2048, 1024, 2048)
    assert (c.inp_bytes, c.wgt_bytes, c.acc_bytes, c.out_bytes, c.acc8_bytes) == (16, 256, 64, 16, 16)
    assert (c.macs_per_cycle, c.axi_data_bytes) == (256, 8)


def test_originals_two_by_eight_is_refused() -> None:
    """The original's 2x8 with buffers 15/15/16/18 needs more bits than its instructions and micro-ops have."""
    with pytest.raises(ConfigError) as caught:
        load_config("batch").replace(acc_buffer_bytes=1 << 18)
    assert "acc_buffer_bytes" in caught.value.field
    assert "262144" in str(caught.value)
    assert "bits, must be at most" in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "field", "limit"),
    [
        ({"block": 12}, "block", "power of two"),
        ({"block": 256}, "block", "from 2 to 128"),
        ({"batch": 0}, "batch", "from 1 to 16"),
        ({"batch": "1"}, "batch", "must be an integer"),
        ({"batch": True}, "batch", "must be an integer"),
        ({"acc_bits": 16}, "acc_bits", "from 32 to 32"),
        ({"inp_bits": 3}, "inp_bits", "power of two"),
        ({"axi_data_bits": 1024}, "axi_data_bits", "from 32 to 512"),
        ({"axi_data_bits": 512, "axi_burst_beats": 128}, "axi_burst_beats", "8192 bytes must be at most 4096"),
        ({"uop_buffer_bytes": 65536}, "uop_buffer_bytes", "addresses at most 8192"),
        ({"wgt_buffer_bytes": 512}, "wgt_buffer_bytes", "holds 2 elements, must hold 4"),
        ({"inp_buffer_bytes": 65536}, "acc_buffer_bytes, inp_buffer_bytes, wgt_buffer_bytes", "must be at most 32"),
        ({"token_depth": 0}, "token_depth", "from 1 to 65535"),
        ({"queue_depth": 48}, "queue_depth", "power of two"),
        ({"requant_cycles": 32}, "requant_cycles", "from 1 to 16"),
        ({"extensions": ["sat", "turbo"]}, "extensions", "must be one of acc8, alu_plus"),
        ({"extensions": ["sat", "sat"]}, "extensions", "each name once"),
        ({"extensions": "sat"}, "extensions", "must be a list of names"),
        ({"speed": 3}, "speed", "no such knob; knobs are"),
        ({"block": 128, "wgt_buffer_bytes": 1 << 20}, "wgt element", "16384 bytes"),
    ],
)
def test_refusals_name_field_and_limit(changes: dict[str, object], field: str, limit: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_config("default").replace(**changes)
    assert caught.value.field == field
    assert limit in str(caught.value)
    assert "configuration 'default'" in str(caught.value)


def test_every_layout_fits_every_accepted_configuration() -> None:
    """Whatever validation lets through has layouts without overlap (the layouts check themselves)."""
    accepted = 0
    for block in (2, 4, 8, 16, 32, 64):
        for batch in (1, 2, 4):
            for log_acc in range(12, 20):
                for log_wgt in (12, 15, 18, 20):
                    try:
                        config = HardwareConfig(
                            name="grid", batch=batch, block=block, acc_buffer_bytes=1 << log_acc,
                            wgt_buffer_bytes=1 << log_wgt, requant_cycles=1,
                        )  # fmt: skip
                    except ConfigError:
                        continue
                    accepted += 1
                    for layout in (*isa_of(config).layouts(), isa_of(config).uop):
                        assert max(field.hi for field in layout.fields) < layout.bits
    assert accepted > 50


def test_hash_follows_what_hardware_sees() -> None:
    default = load_config("default")
    assert hash_text(default) == f"{config_hash(default):016x}"
    assert config_hash(default.replace(name="other")) == config_hash(default), "the name is not part of it"
    changes: list[dict[str, object]] = [
        {"queue_depth": 32}, {"token_depth": 15}, {"axi_burst_beats": 16}, {"extensions": []}, {"requant_cycles": 4},
        {"uop_buffer_bytes": 16384},
    ]  # fmt: skip
    hashes = {config_hash(default.replace(**change)) for change in changes}
    assert len(hashes | {config_hash(default)}) == len(changes) + 1
    assert len({config_hash(load_config(name)) for name in named_configs()}) == len(named_configs())


def test_knobs_round_trip() -> None:
    for name in named_configs():
        config = load_config(name)
        assert config_from_mapping({"name": name, **config.knobs()}) == config
        assert resolve(config)["knobs"] == config.knobs()


def test_files(tmp_path: Path) -> None:
    good = tmp_path / "wide.toml"
    good.write_text('base = "default"\naxi_data_bits = 128\n')
    config = load_config(good)
    assert (config.name, config.axi_data_bits, config.block) == ("wide", 128, 16)
    circle = tmp_path / "circle.toml"
    circle.write_text(f'base = "{circle}"\n')
    bad = tmp_path / "bad.toml"
    bad.write_text("block = = 3\n")
    for path, message in (
        (circle, "do they form a circle"),
        (bad, "not valid TOML"),
        (tmp_path / "none.toml", "neither a file nor one of"),
    ):
        with pytest.raises(ConfigError, match=message):
            load_config(path)
