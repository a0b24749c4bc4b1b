# SPDX-License-Identifier: Apache-2.0
"""Parts of a model that stay on the host."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from openvta.compiler.errors import GraphError
from openvta.compiler.graph import NDArray, Node, Tensor
from openvta.compiler.ops._common import floating


@dataclass(frozen=True)
class Host(Node):
    """An ONNX sub-model on float32 tensors, run by onnxruntime.

    ``model`` holds the serialized model, whose inputs and outputs bear the tensors' names in order; ``reasons`` has one
    text for each of its nodes, ``node (operator): why``.
    """

    model: bytes
    reasons: tuple[str, ...]

    host: ClassVar[bool] = True
    arity: ClassVar[int] = -1

    def check(self, inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...]) -> None:
        """See ``Node.check``."""
        for tensor in inputs:
            floating(self.name, "input", tensor)
        for tensor in outputs:
            floating(self.name, "output", tensor)
        if not outputs or not self.model:
            raise GraphError(self.name, "model", len(self.model), "a host part has a model and an output")

    def evaluate(self, values: tuple[NDArray, ...], inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...]) -> NDArray:
        """Not used: a host part may have several outputs; ``openvta.compiler.reference`` runs it."""
        raise GraphError(self.name, "evaluate", "Host", "host parts are run by openvta.compiler.reference")
