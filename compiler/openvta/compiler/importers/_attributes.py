# SPDX-License-Identifier: Apache-2.0
"""Attributes of a model's node, read with their type, count and range checked."""

from __future__ import annotations

from collections.abc import Iterable

import onnx

from openvta.compiler.errors import ModelError
from openvta.compiler.importers._values import Unsupported

LARGEST = 1 << 31
"""Bound of any integer attribute."""


class Attributes:
    """The attributes of one node; ``known`` lists those its importer understands.

    Raises:
        Unsupported: the node has an attribute that is not known (its meaning could change the result).
    """

    def __init__(self, name: str, node: onnx.NodeProto, known: Iterable[str]) -> None:
        self.name = name
        self._found = {attribute.name: attribute for attribute in node.attribute}
        for extra in set(self._found) - set(known):
            raise Unsupported(f"attribute {extra} is not supported")

    def _get(self, key: str, kind: int, label: str) -> onnx.AttributeProto | None:
        attribute: onnx.AttributeProto | None = self._found.get(key)
        if attribute is None:
            return None
        if attribute.type != kind:
            raise ModelError(self.name, key, f"attribute type {attribute.type}", f"must be {label}")
        return attribute

    def integer(self, key: str, default: int) -> int:
        """An integer attribute."""
        attribute = self._get(key, onnx.AttributeProto.INT, "an integer")
        return default if attribute is None else self._bounded(key, int(attribute.i))

    def number(self, key: str, default: float) -> float:
        """A float attribute."""
        attribute = self._get(key, onnx.AttributeProto.FLOAT, "a number")
        return default if attribute is None else float(attribute.f)

    def optional_number(self, key: str) -> float | None:
        """A float attribute, None where absent."""
        attribute = self._get(key, onnx.AttributeProto.FLOAT, "a number")
        return None if attribute is None else float(attribute.f)

    def text(self, key: str, default: str) -> str:
        """A string attribute."""
        attribute = self._get(key, onnx.AttributeProto.STRING, "a string")
        return default if attribute is None else attribute.s.decode("utf-8", "backslashreplace")

    def integers(self, key: str, count: int | None = None) -> tuple[int, ...] | None:
        """A list of integers, None where absent; ``count`` of them if given."""
        attribute = self._get(key, onnx.AttributeProto.INTS, "a list of integers")
        if attribute is None:
            return None
        values = tuple(self._bounded(key, int(v)) for v in attribute.ints)
        if count is not None and len(values) != count:
            raise ModelError(self.name, key, list(values), f"must have {count} entries")
        return values

    def _bounded(self, key: str, value: int) -> int:
        if not -LARGEST < value < LARGEST:
            raise ModelError(self.name, key, value, "must be between -2^31 and 2^31")
        return value
