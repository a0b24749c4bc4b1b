# SPDX-License-Identifier: Apache-2.0
"""The compiler: quantized models in, instruction streams out."""

from __future__ import annotations
