# SPDX-License-Identifier: Apache-2.0
"""A program: 128-bit instruction words of one configuration."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from openvta.spec.config import HardwareConfig
from openvta.spec.errors import FormatError
from openvta.spec.insn import Insn, decode, encode
from openvta.spec.isa import INSN_BYTES


@dataclass(frozen=True)
class Program:
    """Instruction words, each 0 .. 2^128 - 1, in stream order."""

    config: HardwareConfig
    words: tuple[int, ...]

    @classmethod
    def assemble(cls, config: HardwareConfig, insns: Iterable[Insn]) -> Program:
        """Encode instructions.

        Raises:
            EncodingError: a field value out of range.
        """
        return cls(config, tuple(encode(config, insn) for insn in insns))

    @classmethod
    def from_bytes(cls, config: HardwareConfig, data: bytes) -> Program:
        """Read a stream.

        Raises:
            FormatError: the length is not a multiple of 16 bytes.
        """
        if len(data) % INSN_BYTES:
            raise FormatError(f"program of {len(data)} bytes: must be a multiple of {INSN_BYTES}")
        words = (int.from_bytes(data[at : at + INSN_BYTES], "little") for at in range(0, len(data), INSN_BYTES))
        return cls(config, tuple(words))

    def to_bytes(self) -> bytes:
        """The stream as it lies in memory."""
        return b"".join(word.to_bytes(INSN_BYTES, "little") for word in self.words)

    def __len__(self) -> int:
        return len(self.words)

    def __iter__(self) -> Iterator[int]:
        return iter(self.words)

    def insns(self) -> list[Insn]:
        """Every word decoded.

        Raises:
            SpecError: a word is not an instruction of the configuration.
        """
        return [decode(self.config, word) for word in self.words]
