# SPDX-License-Identifier: Apache-2.0
"""Errors of the specification: every message names the field, the value and the limit."""

from __future__ import annotations


class SpecError(ValueError):
    """Base of every error the specification raises on bad input."""


class ConfigError(SpecError):
    """A hardware configuration that cannot be built."""

    def __init__(self, config: str, field: str, value: object, limit: str) -> None:
        super().__init__(f"configuration '{config}': {field} = {value}: {limit}")
        self.config = config
        self.field = field
        self.value = value
        self.limit = limit


class EncodingError(SpecError):
    """A field value that does not fit its place in an instruction, micro-op or register."""

    def __init__(self, layout: str, field: str, value: object, limit: str) -> None:
        super().__init__(f"{layout}.{field} = {value}: {limit}")
        self.layout = layout
        self.field = field
        self.value = value
        self.limit = limit


class FormatError(SpecError):
    """A file (program, bundle, assembly text) that is damaged or of another format."""
