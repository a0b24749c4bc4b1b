# SPDX-License-Identifier: Apache-2.0
"""Activations in device memory: layout CHWbc, elements [C / block][H][W] of batch x block int8 lanes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from openvta.spec.config import HardwareConfig
from openvta.spec.errors import SpecError


def pack_tensor(config: HardwareConfig, values: npt.NDArray[np.int8]) -> npt.NDArray[np.uint8]:
    """Device bytes of ``values`` ``[N, C]`` or ``[N, C, H, W]``, N <= batch; missing rows and channels are zero.

    Raises:
        SpecError: more rows than the batch, or a wrong number of dimensions.
    """
    if values.ndim not in (2, 4) or values.shape[0] > config.batch:
        raise SpecError(f"tensor of shape {values.shape}: must be (N, C) or (N, C, H, W) with N at most {config.batch}")
    full = values.reshape(*values.shape[:2], *(values.shape[2:] or (1, 1)))
    n, c, h, w = full.shape
    blocks = -(-c // config.block)
    padded = np.zeros((config.batch, blocks * config.block, h, w), np.int8)
    padded[:n, :c] = full
    lanes = padded.reshape(config.batch, blocks, config.block, h, w).transpose(1, 3, 4, 0, 2)
    return np.ascontiguousarray(lanes).reshape(-1).view(np.uint8)


def unpack_tensor(config: HardwareConfig, data: npt.NDArray[np.uint8], shape: tuple[int, ...]) -> npt.NDArray[np.int8]:
    """Inverse of :func:`pack_tensor`: values of the logical ``shape`` with N = batch rows.

    Raises:
        SpecError: the data has another size than the shape needs.
    """
    c = shape[1]
    h, w = shape[2:] if len(shape) == 4 else (1, 1)
    blocks = -(-c // config.block)
    if data.size != blocks * h * w * config.lanes:
        raise SpecError(f"{data.size} bytes for shape {shape}: must be {blocks * h * w * config.lanes}")
    lanes = np.ascontiguousarray(data).view(np.int8).reshape(blocks, h, w, config.batch, config.block)
    full = lanes.transpose(3, 0, 4, 1, 2).reshape(config.batch, blocks * config.block, h, w)[:, :c]
    return np.ascontiguousarray(full).reshape(config.batch, c, *shape[2:])
