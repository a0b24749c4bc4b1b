# SPDX-License-Identifier: Apache-2.0
"""A bundle's image on a device: where it lies, tensors in and out of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from openvta.driver.errors import DeviceError
from openvta.driver.transport import Bytes, LockstepTransport, Transport
from openvta.spec.bundle import ALIGNMENT, Bundle, TensorSpec, device_bytes
from openvta.spec.tensor_layout import pack_tensor, unpack_tensor


class PlacedImage:
    """One bundle in the memory of one device.

    Args:
        transport: the device; everything allocated there before is forgotten.
        bundle: constants, programs and tensor offsets.
        images: how many images the device runs side by side (1 unless it can do more).
    """

    def __init__(self, transport: Transport, bundle: Bundle, images: int = 1) -> None:
        self.bundle = bundle
        self.images = images
        self._transport = transport
        self._lockstep: LockstepTransport | None = None
        if images > 1:
            if not isinstance(transport, LockstepTransport):
                raise DeviceError(f"{images} images at a time: this device runs one at a time")
            self._lockstep = transport
        transport.free_all()
        self.base = transport.allocate(bundle.memory_bytes, ALIGNMENT)
        pieces = [*bundle.image, *((s.insn_offset, s.program.to_bytes()) for s in bundle.segments)]
        pieces.sort(key=lambda piece: piece[0])
        if "zeroed" not in transport.capabilities:
            self._clear(pieces)
        for offset, data in pieces:
            if data:
                transport.write(self.base + offset, data)

    def _clear(self, pieces: list[tuple[int, bytes]]) -> None:
        """Write zeros wherever no piece is."""
        block = np.zeros(1 << 22, np.uint8)
        at = 0
        for offset, data in [*pieces, (self.bundle.memory_bytes, b"")]:
            while at < offset:
                size = min(block.size, offset - at)
                self._transport.write(self.base + at, block[:size])
                at += size
            at = max(at, offset + len(data))

    def write_tensor(self, spec: TensorSpec, values: npt.NDArray[Any]) -> None:
        """Write the rows of a tensor: int8 ``[rows, ...]``, rows <= images x batch; missing rows become zero.

        Raises:
            DeviceError: a type or shape other than the tensor's.
        """
        if values.dtype != np.int8 or values.shape[1:] != spec.shape[1:]:
            raise DeviceError(
                f"tensor '{spec.name}': {values.dtype}{list(values.shape)}: "
                f"must be int8 and {list(spec.shape[1:])} a row"
            )
        batch = self.bundle.config.batch
        parts = [pack_tensor(self.bundle.config, values[n * batch : (n + 1) * batch]) for n in range(self.images)]
        if self._lockstep is not None:
            self._lockstep.write_images(self.base + spec.offset, np.stack(parts))
        else:
            self._transport.write(self.base + spec.offset, parts[0])

    def read_tensor(self, spec: TensorSpec, rows: int) -> npt.NDArray[np.int8]:
        """The first ``rows`` rows of a tensor: int8 ``[rows, ...]``."""
        config = self.bundle.config
        size = device_bytes(config, spec.shape)
        address = self.base + spec.offset
        if self._lockstep is not None:
            parts: Bytes = self._lockstep.read_images(address, size)
        else:
            parts = self._transport.read(address, size)[None]
        shape = (config.batch, *spec.shape[1:])
        return np.concatenate([unpack_tensor(config, part, shape) for part in parts])[:rows]

    def read(self, offset: int = 0, nbytes: int | None = None) -> Bytes:
        """Bytes of the image (of the first image where several run side by side)."""
        size = self.bundle.memory_bytes - offset if nbytes is None else nbytes
        return self._transport.read(self.base + offset, size)
