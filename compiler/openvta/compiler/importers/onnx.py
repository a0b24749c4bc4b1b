# SPDX-License-Identifier: Apache-2.0
"""ONNX models with QuantizeLinear / DequantizeLinear pairs (QDQ) or integer operators (QOperator)."""

from __future__ import annotations

import os
from dataclasses import dataclass

import onnx

from openvta.compiler.errors import ModelError
from openvta.compiler.graph import Graph
from openvta.compiler.importers import _fold, _layers, _simple
from openvta.compiler.importers._convert import Converter, HostPart
from openvta.compiler.importers._load import Source, load_model
from openvta.compiler.importers.limits import Limits
from openvta.compiler.passes import Pipeline, import_pipeline

DYNAMIC = ("DynamicQuantizeLinear", "ConvInteger", "MatMulInteger", "DynamicQuantizeMatMul", "DynamicQuantizeLSTM")
"""Operators of models whose activations are quantized at run time."""
QONNX = ("Quant", "IntQuant", "BipolarQuant", "FloatQuant", "Trunc")
"""Operators of the QONNX dialect."""
QUANTIZED = ("QuantizeLinear", "DequantizeLinear", "QGemm")
"""Operators that show a model is quantized; so does any name that begins with QLinear."""


@dataclass(frozen=True)
class ImportResult:
    """An imported model.

    ``graph`` the integer graph in the model's own types; ``hosts`` the nodes that stay on the host, each with its
    reason; ``notes`` what a user should know (such as biases that had to be rounded).
    """

    graph: Graph
    hosts: tuple[HostPart, ...]
    notes: tuple[str, ...]


def import_onnx(
    source: str | os.PathLike[str] | bytes | onnx.ModelProto,
    *,
    batch: int | None = None,
    strict: bool = False,
    limits: Limits | None = None,
    pipeline: Pipeline | None = None,
) -> ImportResult:
    """Import a quantized ONNX model.

    Args:
        source: a file, its bytes, or a model in memory (which is not changed).
        batch: the size of an open (symbolic) batch dimension, 1 if not given; must agree with a fixed one.
        strict: raise if any node would have to run on the host.
        limits: limits of the file.
        pipeline: passes to run on the result instead of ``passes.import_pipeline()``.

    Raises:
        ModelError: the file is damaged, over a limit, not quantized, or inconsistent; with ``strict`` also if there
            are host parts (the message lists them).
    """
    bounds = limits or Limits()
    if batch is not None and not 1 <= batch <= 1 << 16:
        raise ModelError("import", "batch", batch, "must be 1..65536")
    checked = load_model(source, bounds)
    _check_dialect(checked)
    converter = Converter(checked, batch, {**_simple.HANDLERS, **_layers.HANDLERS, **_fold.HANDLERS}, bounds)
    graph = converter.run()
    hosts = tuple(converter.hosts)
    if strict and hosts:
        listed = "; ".join(str(part) for part in hosts[:8]) + ("; ..." if len(hosts) > 8 else "")
        raise ModelError(checked.label, "host parts", len(hosts), f"strict allows none: {listed}")
    return ImportResult((pipeline or import_pipeline()).run(graph).verify(), hosts, tuple(converter.notes))


def _check_dialect(source: Source) -> None:
    found = [node.op_type for node in source.nodes]
    dynamic = next((op for op in found if op in DYNAMIC), None)
    qonnx = next((op for op in found if op in QONNX), None)
    static = any(op in QUANTIZED or op.startswith("QLinear") for op in found)
    if qonnx is not None:
        limit = "the QONNX dialect is not supported here: export QDQ or QOperator"
        raise ModelError(source.label, "operator", qonnx, limit)
    if static:
        return
    if dynamic is not None:
        limit = "dynamic quantization: quantize statically, with calibration data"
        raise ModelError(source.label, "operator", dynamic, limit)
    limit = "a float model is not quantized: quantize it first (for example onnxruntime's quantize_static, QDQ format)"
    raise ModelError(source.label, "operators", "no QuantizeLinear or QLinear node", limit)
