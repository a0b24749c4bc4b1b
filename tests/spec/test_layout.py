# SPDX-License-Identifier: Apache-2.0
"""Bit layouts: every bit has one owner, encode and decode are inverse, what does not fit is refused."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openvta.spec import EncodingError, SpecError, load_config, named_configs
from openvta.spec.insn import isa_of
from openvta.spec.layout import Field, Layout
from openvta.spec.registers import CONTROL, ERROR, STATUS


def all_layouts() -> list[Layout]:
    found: list[Layout] = [CONTROL, STATUS, ERROR]
    for name in named_configs():
        tables = isa_of(load_config(name))
        found += [*tables.layouts(), tables.uop]
    return found


@pytest.mark.parametrize("layout", all_layouts(), ids=lambda layout: layout.name)
def test_every_bit_has_one_owner(layout: Layout) -> None:
    owners = [0] * layout.bits
    for field in layout.fields:
        for bit in range(field.lo, field.hi + 1):
            owners[bit] += 1
    for bit in range(layout.bits):
        owners[bit] += layout.reserved_mask >> bit & 1
        owners[bit] += layout.ignored_mask >> bit & 1
    assert owners == [1] * layout.bits


@pytest.mark.parametrize("layout", all_layouts(), ids=lambda layout: layout.name)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_encode_and_decode_are_inverse(layout: Layout, data: st.DataObject) -> None:
    values = {field.name: data.draw(st.integers(field.minimum, field.maximum)) for field in layout.fields}
    word = layout.encode(values)
    assert layout.decode(word) == values
    assert word & (layout.reserved_mask | layout.ignored_mask) == 0


@pytest.mark.parametrize("layout", all_layouts(), ids=lambda layout: layout.name)
def test_one_beyond_either_end_is_refused(layout: Layout) -> None:
    for field in layout.fields:
        for value in (field.minimum - 1, field.maximum + 1):
            with pytest.raises(EncodingError) as caught:
                layout.encode({field.name: value})
            error = caught.value
            assert (error.layout, error.field, error.value) == (layout.name, field.name, value)
            assert f"{field.minimum}..{field.maximum}" in str(error)


def test_unknown_field() -> None:
    with pytest.raises(EncodingError, match=r"STATUS\.speed = 1: no such field"):
        STATUS.encode({"speed": 1})
    with pytest.raises(SpecError, match="layout STATUS has no field speed"):
        STATUS.field("speed")


@pytest.mark.parametrize(
    ("fields", "ignored", "message"),
    [
        ((Field("a", 0, 4), Field("b", 3, 2)), (), r"field b \(4:3\) overlaps"),
        ((Field("a", 30, 3),), (), r"field a \(32:30\) outside 32 bits"),
        ((Field("a", 0, 0),), (), r"outside 32 bits"),
        ((Field("a", 0, 4),), ((3, 1),), "lies in an ignored range"),
    ],
)
def test_layouts_that_contradict_themselves(
    fields: tuple[Field, ...], ignored: tuple[tuple[int, int], ...], message: str
) -> None:
    with pytest.raises(SpecError, match=message):
        Layout("BAD", 32, fields, ignored)
