# SPDX-License-Identifier: Apache-2.0
"""Is this device what the program was made for? Asked before anything is launched."""

from __future__ import annotations

from openvta.driver.errors import ConfigMismatch
from openvta.driver.transport import Transport, read_registers
from openvta.spec.config import HardwareConfig
from openvta.spec.isa import ISA_VERSION
from openvta.spec.registers import FEATURE_BITS, ID_MAGIC, OFFSETS
from openvta.spec.resolve import config_hash, feature_word, hash_text

_REGISTERS = ("ID", "ISA_VERSION", "CONFIG_HASH_LO", "CONFIG_HASH_HI", "FEATURES")


def check_identity(transport: Transport, config: HardwareConfig, what: str) -> None:
    """Compare the device's identity registers with a configuration.

    Args:
        transport: the device.
        config: what is needed.
        what: who needs it, for the message (such as "bundle 'resnet8'").

    Raises:
        ConfigMismatch: with both sides, and the knobs that differ where they are known.
    """
    magic, version, low, high, features = read_registers(transport, [OFFSETS[name] for name in _REGISTERS])
    if magic != ID_MAGIC:
        raise ConfigMismatch(
            f"the device answers ID = {magic:#010x}: must be {ID_MAGIC:#010x} ('OVTA'); is the right bitstream loaded?"
        )
    if version != ISA_VERSION:
        raise ConfigMismatch(
            f"the device has instruction set {_version(version)}, {what} was made for {_version(ISA_VERSION)}: "
            "use hardware and software of one version"
        )
    if low | high << 32 == config_hash(config):
        return
    theirs = f"{high << 32 | low:016x} (features {_features(features)})"
    ours = f"{hash_text(config)} ('{config.name}', {config.label}, features {_features(feature_word(config))})"
    message = f"the device has configuration {theirs}, {what} was made for {ours}"
    known = getattr(transport, "config", None)
    if isinstance(known, HardwareConfig):
        there, here = known.knobs(), config.knobs()
        differing = [f"{name} = {there[name]} there, {here[name]} here" for name in here if there[name] != here[name]]
        if differing:
            message += f"; they differ in {'; '.join(differing)}"
    raise ConfigMismatch(f"{message}; compile for the device's configuration, or open a device of this one")


def _version(word: int) -> str:
    return f"{word >> 8 & 0xFF}.{word & 0xFF}"


def _features(word: int) -> str:
    names = [name for name, bit in FEATURE_BITS.items() if word >> bit & 1]
    return ", ".join(names) or "none"
