# SPDX-License-Identifier: Apache-2.0
"""Rewrites of the integer graph, one a file, and the pipelines made of them."""

from __future__ import annotations

from collections.abc import Mapping

from openvta.compiler.passes.base import Pass, Pipeline, parse_pipeline
from openvta.compiler.passes.canonical import CanonicalNames
from openvta.compiler.passes.dead import DropDead
from openvta.compiler.passes.flatten_dense import FlattenDense
from openvta.compiler.passes.fold_clip import FoldClip
from openvta.compiler.passes.merge_host import MergeHost
from openvta.compiler.passes.signed import LowerToSigned

PASSES: Mapping[str, type[Pass]] = {
    kind.label: kind for kind in (CanonicalNames, DropDead, FlattenDense, FoldClip, LowerToSigned, MergeHost)
}
"""Every pass by its name in a pipeline's text."""


def import_pipeline() -> Pipeline:
    """Passes at the end of an import: dead nodes go, clamps fold, neighbouring host parts merge. Types stay."""
    return Pipeline((DropDead(), FoldClip(), MergeHost()))


def lowering_pipeline() -> Pipeline:
    """Passes before the back end: every accelerator tensor int8, dense layers over images as convolutions."""
    return Pipeline((LowerToSigned(), FlattenDense()))


__all__ = [
    "PASSES",
    "CanonicalNames",
    "DropDead",
    "FlattenDense",
    "FoldClip",
    "LowerToSigned",
    "MergeHost",
    "Pass",
    "Pipeline",
    "import_pipeline",
    "lowering_pipeline",
    "parse_pipeline",
]
