# SPDX-License-Identifier: Apache-2.0
"""Windows of convolutions and poolings: kernel, strides, pads and output size from a node's attributes."""

from __future__ import annotations

from dataclasses import dataclass

from openvta.compiler.errors import ModelError
from openvta.compiler.importers._attributes import Attributes
from openvta.compiler.importers._values import Unsupported
from openvta.spec.arith import pooled_size

MOST_POSITIONS = 1 << 28
"""Most positions of a window."""
NO_PADS = (0, 0, 0, 0)
"""No padding."""


@dataclass(frozen=True)
class Window:
    """A window over H and W; ``pads`` (top, left, bottom, right) as declared, ``output`` (OH, OW)."""

    kernel: tuple[int, int]
    strides: tuple[int, int]
    pads: tuple[int, int, int, int]
    output: tuple[int, int]

    def covering(self, size: tuple[int, int]) -> tuple[int, int, int, int]:
        """Return pads that reach as far as the last windows do (ceil mode hangs over the declared ones)."""
        ends = [
            max(self.pads[a + 2], (self.output[a] - 1) * self.strides[a] + self.kernel[a] - size[a] - self.pads[a])
            for a in (0, 1)
        ]
        return self.pads[0], self.pads[1], ends[0], ends[1]


def read_window(
    name: str,
    attributes: Attributes,
    shape: tuple[int, ...],
    kernel: tuple[int, ...] | None,
    *,
    ceil_mode: bool = False,
) -> Window:
    """Return the window of a node over a tensor ``[N, C, H, W]``.

    ``kernel`` is the size the weights have, None where only the attribute says it.

    Raises:
        ModelError: attributes of the wrong count, out of range, or against the weights; no output left.
        Unsupported: other than two dimensions, dilation, or negative pads.
    """
    if len(shape) != 4:
        raise Unsupported(f"an input of {len(shape)} dimensions, not N C H W")
    if kernel is not None and len(kernel) != 2:
        raise Unsupported(f"a kernel of {len(kernel)} dimensions")
    stated = attributes.integers("kernel_shape", 2)
    size = stated if kernel is None else kernel
    if size is None:
        raise ModelError(name, "kernel_shape", "missing", "must state the kernel's height and width")
    if stated is not None and tuple(stated) != tuple(size):
        raise ModelError(name, "kernel_shape", list(stated), f"the weights are {size[0]} x {size[1]}")
    strides = attributes.integers("strides", 2) or (1, 1)
    dilations = attributes.integers("dilations", 2) or (1, 1)
    if min(size) < 1:
        raise ModelError(name, "kernel_shape", list(size), "must be >= 1")
    if min(strides) < 1:
        raise ModelError(name, "strides", list(strides), "must be >= 1")
    if min(dilations) < 1:
        raise ModelError(name, "dilations", list(dilations), "must be >= 1")
    if any(d > 1 and k > 1 for d, k in zip(dilations, size, strict=True)):
        raise Unsupported(f"dilations {list(dilations)}")
    image = (shape[2], shape[3])
    pads = _pads(name, attributes, image, size, strides)
    ceil = ceil_mode and attributes.integer("ceil_mode", 0) != 0
    out = [pooled_size(image[a], size[a], strides[a], pads[a], pads[a + 2], ceil_mode=ceil) for a in (0, 1)]
    if min(out) < 1:
        raise ModelError(
            name, "kernel_shape", list(size), f"does not fit {image[0]} x {image[1]} with pads {list(pads)}"
        )
    if out[0] * out[1] > MOST_POSITIONS:
        raise ModelError(name, "output", f"{out[0]} x {out[1]}", f"at most {MOST_POSITIONS} positions")
    return Window((size[0], size[1]), (strides[0], strides[1]), pads, (out[0], out[1]))


def _pads(
    name: str, attributes: Attributes, image: tuple[int, int], kernel: tuple[int, ...], strides: tuple[int, ...]
) -> tuple[int, int, int, int]:
    mode = attributes.text("auto_pad", "NOTSET")
    stated = attributes.integers("pads", 4)
    if mode == "NOTSET":
        pads = stated or NO_PADS
        if min(pads) < 0:
            raise Unsupported(f"negative pads {list(pads)}")
        return pads[0], pads[1], pads[2], pads[3]
    if stated is not None and any(stated):
        raise ModelError(name, "pads", list(stated), f"must not be given with auto_pad {mode}")
    if mode == "VALID":
        return NO_PADS
    if mode not in ("SAME_UPPER", "SAME_LOWER"):
        raise ModelError(name, "auto_pad", mode, "must be NOTSET, VALID, SAME_UPPER or SAME_LOWER")
    before, after = [], []
    for axis in (0, 1):
        count = -(-image[axis] // strides[axis])
        total = max((count - 1) * strides[axis] + kernel[axis] - image[axis], 0)
        small, large = total // 2, total - total // 2
        before.append(small if mode == "SAME_UPPER" else large)
        after.append(large if mode == "SAME_UPPER" else small)
    return before[0], before[1], after[0], after[1]
