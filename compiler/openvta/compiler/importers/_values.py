# SPDX-License-Identifier: Apache-2.0
"""What the importer knows about a tensor of the model while it walks the nodes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TypeAlias

import onnx

from openvta.compiler.graph import NDArray

MOST_STEPS = 64
"""Most steps of an expression."""


class Unsupported(Exception):
    """The accelerator cannot do this: the node becomes a host part with this reason."""


@dataclass(frozen=True)
class Quantization:
    """Type, scale (a float32 value) and zero point of a quantized activation."""

    dtype: str
    scale: float
    zero_point: int


@dataclass(frozen=True)
class Const:
    """A constant of the model."""

    array: NDArray


@dataclass(frozen=True)
class QConst:
    """A dequantized constant: (array - zero_point) * scale.

    ``array`` integer; ``scale`` float64 (float32 values) and ``zero_point`` int64, both 1-D: one entry, or one for
    every index along ``axis``.
    """

    array: NDArray
    scale: NDArray
    zero_point: NDArray
    axis: int

    @property
    def per_channel(self) -> bool:
        """Whether there is a scale for every index along ``axis``."""
        return self.scale.size > 1

    def corrected(self) -> NDArray:
        """The integers with the zero point subtracted, int64."""
        form = [1] * self.array.ndim
        if self.zero_point.size > 1:
            form[self.axis] = -1
        wide: NDArray = self.array.astype("int64") - self.zero_point.reshape(form)
        return wide


@dataclass(frozen=True)
class Ints:
    """A quantized activation: an integer tensor of the graph being built."""

    tensor: str


@dataclass(frozen=True)
class Real:
    """A float activation on the host: a float tensor of the graph being built."""

    tensor: str


@dataclass(frozen=True)
class ClipStep:
    """A clamp of real values; None is no bound."""

    low: float | None
    high: float | None


@dataclass(frozen=True)
class MaxPoolStep:
    """A max-pooling of real values; fields as in ``ops.MaxPool``."""

    kernel: tuple[int, int]
    strides: tuple[int, int]
    pads: tuple[int, int, int, int]


@dataclass(frozen=True)
class ReshapeStep:
    """A change of shape, N kept; the new shape is the ``shape`` of the step."""


@dataclass(frozen=True)
class PadStep:
    """Real zeros around H and W: top, left, bottom, right."""

    pads: tuple[int, int, int, int]


Step: TypeAlias = ClipStep | MaxPoolStep | ReshapeStep | PadStep


@dataclass(frozen=True)
class Same:
    """The dequantized value of an integer tensor."""

    tensor: str


@dataclass(frozen=True)
class ConvCore:
    """A convolution of a dequantized tensor; weights ``[O, C / groups, KH, KW]``, bias a constant or None."""

    tensor: str
    weight: QConst
    bias: Const | QConst | None
    strides: tuple[int, int]
    pads: tuple[int, int, int, int]
    groups: int


@dataclass(frozen=True)
class DenseCore:
    """A product with constant weights ``[O, C]``."""

    tensor: str
    weight: QConst
    bias: Const | QConst | None


@dataclass(frozen=True)
class AddCore:
    """A sum of two dequantized tensors."""

    a: str
    b: str


@dataclass(frozen=True)
class AverageCore:
    """An average over windows; ``divisors`` int32 ``[OH, OW]``."""

    tensor: str
    kernel: tuple[int, int]
    strides: tuple[int, int]
    pads: tuple[int, int, int, int]
    divisors: NDArray


@dataclass(frozen=True)
class GlobalAverageCore:
    """An average over H and W."""

    tensor: str


Core: TypeAlias = Same | ConvCore | DenseCore | AddCore | AverageCore | GlobalAverageCore


@dataclass(frozen=True)
class Pending:
    """A float activation not yet quantized: a core followed by steps that commute with quantization.

    ``shapes`` are the shapes after the core and after every step; ``node`` and ``name`` the model's node that made the
    value, for the case that it has to run on the host after all; ``origin`` the names of all nodes passed through.
    """

    core: Core
    steps: tuple[Step, ...]
    shapes: tuple[tuple[int, ...], ...]
    node: onnx.NodeProto
    name: str
    origin: tuple[str, ...] = field(default=())

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the value."""
        return self.shapes[-1]

    def then(self, step: Step, shape: tuple[int, ...], node: onnx.NodeProto, name: str) -> Pending:
        """Return this value followed by a step; Unsupported if there are too many between two quantizers."""
        if len(self.steps) >= MOST_STEPS:
            raise Unsupported(f"more than {MOST_STEPS} operators without a quantizer between them")
        return replace(
            self,
            steps=(*self.steps, step),
            shapes=(*self.shapes, shape),
            node=node,
            name=name,
            origin=(*self.origin, name),
        )


Value: TypeAlias = Const | QConst | Ints | Real | Pending
