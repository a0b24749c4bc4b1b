# SPDX-License-Identifier: Apache-2.0
"""The benchmark network: the convolutions of a residual network after its stem, chained in one program.

Residual additions are left out; each 1 x 1 convolution follows the first 3 x 3 of its stage and reads what that one
reads. Weights and inputs are full-range int8, and every layer's scale keeps its outputs spread: about 2.8 standard
deviations fit the int8 range.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from openvta.cli.benchmarks import BenchmarkError
from openvta.compiler.graph import Array, Graph, Requant, Tensor
from openvta.compiler.ops import Conv2d
from openvta.compiler.reference import Reference
from openvta.spec.arith import choose_float32

SPREAD = 45.0
"""Standard deviation of a layer's outputs, in steps."""
UNIFORM = 73.9
"""Standard deviation of a uniform int8 value."""
LEVELS = 100
SATURATED = 0.2
Int8 = npt.NDArray[np.int8]


@dataclass(frozen=True)
class Convolution:
    """A square convolution without its weights: ``source`` is the tensor it reads, ``size`` that tensor's height."""

    name: str
    source: str
    size: int
    channels: tuple[int, int]
    kernel: int
    stride: int

    @property
    def out_size(self) -> int:
        """Height and width of the output."""
        return (self.size + 2 * (self.kernel // 2) - self.kernel) // self.stride + 1

    @property
    def macs(self) -> int:
        """Multiply-accumulates for one image."""
        return self.out_size**2 * self.kernel**2 * self.channels[0] * self.channels[1]

    @property
    def label(self) -> str:
        """Short name, such as 3x3/1 28x28x128->128."""
        return (
            f"{self.kernel}x{self.kernel}/{self.stride} {self.size}x{self.size}x{self.channels[0]}->{self.channels[1]}"
        )


def residual_stages(size: int, widths: tuple[int, ...], repeats: int = 4) -> tuple[Convolution, ...]:
    """The convolutions of a residual network: ``repeats`` 3 x 3 in each stage, one 1 x 1 beside the first of a new one.

    Args:
        size: height and width the first stage reads.
        widths: channels of each stage; the size halves from one to the next.
        repeats: 3 x 3 convolutions a stage.
    """
    layers: list[Convolution] = []
    source, channels = "x", widths[0]
    for stage, width in enumerate(widths, 1):
        entry, entry_size = source, size
        for number in range(1, repeats + 1):
            stride = 2 if stage > 1 and number == 1 else 1
            layer = Convolution(f"s{stage}c{number}", source, size, (channels, width), 3, stride)
            layers.append(layer)
            source, size = layer.name, layer.out_size
            if stride == 2:
                layers.append(Convolution(f"s{stage}d", entry, entry_size, (channels, width), 1, 2))
            channels = width
    return tuple(layers)


RESNET18 = residual_stages(56, (64, 128, 256, 512))
"""The 19 convolutions after ResNet-18's stem at 224 x 224."""


def network_graph(layers: tuple[Convolution, ...], seed: int) -> Graph:
    """The layers as an integer graph with input ``x`` and every layer's output among the outputs."""
    rng = np.random.default_rng(seed)
    first = layers[0]
    tensors = [Tensor("x", (1, first.channels[0], first.size, first.size), "int8")]
    spread = {"x": UNIFORM}
    nodes = []
    for layer in layers:
        cin, cout = layer.channels
        weight = rng.integers(-128, 128, (cout, cin, layer.kernel, layer.kernel)).astype(np.int8)
        noise = UNIFORM * spread[layer.source] * float(np.sqrt(cin * layer.kernel**2))
        ratios = [float(np.float32(r)) for r in SPREAD / noise * rng.uniform(0.9, 1.1, cout)]
        found = choose_float32(ratios)
        rule = Requant(
            found[0].mode, Array(ratios, np.float64), Array([f.multiplier for f in found], np.uint32),
            Array([f.shift for f in found], np.uint8), 0, -128, 127,
        )  # fmt: skip
        bias = Array(rng.integers(-(2**12), 2**12, cout), np.int32)
        pads = (layer.kernel // 2,) * 4
        tensors.append(Tensor(layer.name, (1, cout, layer.out_size, layer.out_size), "int8"))
        nodes.append(
            Conv2d(
                layer.name, (layer.source,), (layer.name,), Array(weight), Array(np.ones(cout)), bias,
                (layer.stride, layer.stride), pads, 1, rule,
            )
        )  # fmt: skip
        spread[layer.name] = SPREAD
    return Graph("convolutions", tuple(tensors), tuple(nodes), ("x",), tuple(layer.name for layer in layers)).verify()


def network_input(layers: tuple[Convolution, ...], batch: int, seed: int) -> Int8:
    """Full-range int8 values for the network's input, ``[batch, C, H, W]``."""
    first = layers[0]
    shape = (batch, first.channels[0], first.size, first.size)
    return np.random.default_rng(seed).integers(-128, 128, shape).astype(np.int8)


def reference_outputs(graph: Graph, x: Int8) -> dict[str, Int8]:
    """Every layer's outputs by name, on the numpy reference."""
    return Reference(graph).run({"x": x})


def check_spread(name: str, values: npt.NDArray[Any]) -> tuple[int, float]:
    """Return the number of distinct values and the share of saturated ones.

    Raises:
        BenchmarkError: fewer than 100 distinct values, or 20 % or more at the ends of int8: data that would flatter.
    """
    levels = int(np.unique(values).size)
    saturated = float(((values == -128) | (values == 127)).mean())
    if levels < LEVELS or saturated >= SATURATED:
        raise BenchmarkError(
            f"layer {name}: {levels} distinct outputs ({LEVELS} needed), {saturated:.0%} saturated "
            f"(below {SATURATED:.0%} needed): no figure"
        )
    return levels, saturated


def check_equal(name: str, got: npt.NDArray[Any], expected: npt.NDArray[Any]) -> None:
    """Compare a layer's outputs.

    Raises:
        BenchmarkError: values that differ.
    """
    differing = int((got != expected).sum())
    if differing:
        raise BenchmarkError(
            f"layer {name}: {differing} of {expected.size} outputs differ from the reference: no figure"
        )
