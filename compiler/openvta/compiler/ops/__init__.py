# SPDX-License-Identifier: Apache-2.0
"""The operators of the integer graph, one file each: shape and type rule, and numpy reference."""

from __future__ import annotations

from collections.abc import Mapping

from openvta.compiler.graph import Node
from openvta.compiler.ops.add import Add
from openvta.compiler.ops.averagepool import AveragePool, GlobalAverage
from openvta.compiler.ops.border import Dequantize, Quantize, Recode
from openvta.compiler.ops.conv2d import Conv2d
from openvta.compiler.ops.dense import Dense
from openvta.compiler.ops.elementwise import Clip, Requantize
from openvta.compiler.ops.host import Host
from openvta.compiler.ops.maxpool import MaxPool
from openvta.compiler.ops.reshape import Reshape

OPERATORS: Mapping[str, type[Node]] = {
    kind.__name__: kind
    for kind in (
        Add,
        AveragePool,
        Clip,
        Conv2d,
        Dense,
        Dequantize,
        GlobalAverage,
        Host,
        MaxPool,
        Quantize,
        Recode,
        Requantize,
        Reshape,
    )
}
"""Every operator by name."""

__all__ = [
    "OPERATORS",
    "Add",
    "AveragePool",
    "Clip",
    "Conv2d",
    "Dense",
    "Dequantize",
    "GlobalAverage",
    "Host",
    "MaxPool",
    "Quantize",
    "Recode",
    "Requantize",
    "Reshape",
]
