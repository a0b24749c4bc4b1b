# SPDX-License-Identifier: Apache-2.0
"""Checks of the arrays a user passes in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from openvta.driver.errors import InputError
from openvta.spec.bundle import Bundle

Arrays = dict[str, npt.NDArray[Any]]


def check_inputs(bundle: Bundle, inputs: Mapping[str, npt.ArrayLike]) -> tuple[Arrays, int]:
    """The inputs as C-contiguous arrays, and how many rows (images) they have.

    Raises:
        InputError: a name that is missing or unknown, a wrong type or shape, or different numbers of rows.
    """
    wanted = ", ".join(f"{name}: {dtype}{_shape_text(shape)}" for name, (dtype, shape) in bundle.inputs.items())
    for name in inputs:
        if name not in bundle.inputs:
            raise InputError(name, "name", name, f"bundle '{bundle.name}' has no such input; it takes {wanted}")
    arrays: Arrays = {}
    rows: int | None = None
    for name, (dtype, shape) in bundle.inputs.items():
        if name not in inputs:
            raise InputError(name, "value", "(missing)", f"bundle '{bundle.name}' takes {wanted}")
        array = np.asarray(inputs[name])
        if array.dtype != np.dtype(dtype):
            raise InputError(
                name, "dtype", array.dtype, f"must be {dtype}; convert it with .astype('{dtype}') if that is meant"
            )
        _check_shape(name, array.shape, shape)
        if rows is None:
            rows = array.shape[0]
        elif array.shape[0] != rows:
            raise InputError(name, "rows", array.shape[0], f"must be {rows}, as the other inputs have")
        arrays[name] = np.ascontiguousarray(array)
    return arrays, rows or 0


def _check_shape(name: str, given: tuple[int, ...], wanted: tuple[int, ...]) -> None:
    hint = ""
    if (
        len(given) == 4
        and len(wanted) == 4
        and (given[3], given[1], given[2]) == wanted[1:]
        and given[1:] != wanted[1:]
    ):
        hint = "; this looks like N, H, W, C: use .transpose(0, 3, 1, 2)"
    elif given == wanted[1:]:
        hint = "; the first dimension counts images: use array[None]"
    if len(given) != len(wanted) or given[1:] != wanted[1:]:
        raise InputError(name, "shape", given, f"must be {_shape_text(wanted)}{hint}")
    step = max(wanted[0], 1)
    if given[0] < 1 or given[0] % step:
        limit = "at least one image" if step == 1 else f"a multiple of {step} images, the model's own batch"
        raise InputError(name, "shape", given, f"must have {limit}")


def _shape_text(shape: tuple[int, ...]) -> str:
    return "[" + ", ".join("N" if at == 0 and size <= 1 else str(size) for at, size in enumerate(shape)) + "]"
