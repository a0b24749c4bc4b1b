# SPDX-License-Identifier: Apache-2.0
"""Bit layouts as values: every bit of a word belongs to a field, is reserved, or is ignored.

Positions are explicit, never left to a C compiler: the original's C bit-fields moved between words
when a buffer size changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from openvta.spec.errors import EncodingError, SpecError


@dataclass(frozen=True)
class Field:
    """One field: bits ``lo`` to ``lo + width - 1`` (bit 0 is the least significant bit of byte 0)."""

    name: str
    lo: int
    width: int
    signed: bool = False
    doc: str = ""

    @property
    def hi(self) -> int:
        """Highest bit of the field."""
        return self.lo + self.width - 1

    @property
    def minimum(self) -> int:
        """Smallest value the field holds."""
        return -(1 << (self.width - 1)) if self.signed else 0

    @property
    def maximum(self) -> int:
        """Largest value the field holds."""
        return (1 << (self.width - 1)) - 1 if self.signed else (1 << self.width) - 1

    @property
    def mask(self) -> int:
        """The field's bits, in place."""
        return ((1 << self.width) - 1) << self.lo


@dataclass(frozen=True)
class Layout:
    """Fields of one word of ``bits`` bits; ``ignored`` lists (lo, width) that hardware does not look at.

    Every bit outside fields and ignored ranges is reserved and must be zero.
    """

    name: str
    bits: int
    fields: tuple[Field, ...]
    ignored: tuple[tuple[int, int], ...] = ()

    def __post_init__(self) -> None:
        seen = 0
        for field in self.fields:
            if field.width < 1 or field.hi >= self.bits:
                raise SpecError(
                    f"layout {self.name}: field {field.name} ({field.hi}:{field.lo}) outside {self.bits} bits"
                )
            if seen & field.mask:
                raise SpecError(f"layout {self.name}: field {field.name} ({field.hi}:{field.lo}) overlaps another")
            seen |= field.mask
        if seen & self.ignored_mask:
            raise SpecError(f"layout {self.name}: a field lies in an ignored range")

    @property
    def ignored_mask(self) -> int:
        """Bits hardware does not look at."""
        mask = 0
        for lo, width in self.ignored:
            mask |= ((1 << width) - 1) << lo
        return mask

    @property
    def reserved_mask(self) -> int:
        """Bits that must be zero."""
        used = self.ignored_mask
        for field in self.fields:
            used |= field.mask
        return ((1 << self.bits) - 1) & ~used

    def field(self, name: str) -> Field:
        """The field of that name.

        Raises:
            SpecError: there is none.
        """
        for field in self.fields:
            if field.name == name:
                return field
        raise SpecError(f"layout {self.name} has no field {name}")

    def encode(self, values: Mapping[str, int]) -> int:
        """The word with these field values; fields not named are zero.

        Raises:
            EncodingError: an unknown field, or a value outside the field's range.
        """
        word = 0
        known = {field.name: field for field in self.fields}
        for name, value in values.items():
            field = known.get(name)
            if field is None:
                raise EncodingError(self.name, name, value, "no such field")
            number = int(value)
            if not field.minimum <= number <= field.maximum:
                raise EncodingError(
                    self.name, name, number, f"must be {field.minimum}..{field.maximum} ({field.width} bits)"
                )
            word |= (number & ((1 << field.width) - 1)) << field.lo
        return word

    def decode(self, word: int) -> dict[str, int]:
        """Every field's value in ``word`` (reserved and ignored bits are not looked at)."""
        values = {}
        for field in self.fields:
            raw = (word >> field.lo) & ((1 << field.width) - 1)
            if field.signed and raw >> (field.width - 1):
                raw -= 1 << field.width
            values[field.name] = raw
        return values
