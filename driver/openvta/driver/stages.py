# SPDX-License-Identifier: Apache-2.0
"""A bundle's steps in three stages: on the host before the accelerator, from its first to its last, on the host after."""

from __future__ import annotations

from dataclasses import dataclass

from openvta.spec.bundle import AccelStep, Bundle, HostStep


@dataclass(frozen=True)
class Stages:
    """The stages of a bundle.

    Attributes:
        first, last: host steps before and after.
        middle: the steps from the first of the accelerator to its last.
        kept: tensors that must be read back from the device: model outputs and inputs of host steps.
    """

    first: tuple[HostStep, ...]
    middle: tuple[AccelStep | HostStep, ...]
    last: tuple[HostStep, ...]
    kept: frozenset[str]

    @classmethod
    def of(cls, bundle: Bundle) -> Stages:
        """The stages of a bundle; one without an accelerator step has only a first."""
        steps = tuple(bundle.steps)
        accel = [number for number, step in enumerate(steps) if isinstance(step, AccelStep)]
        begin, end = (accel[0], accel[-1] + 1) if accel else (len(steps), len(steps))
        kept = set(bundle.outputs)
        for step in steps:
            if isinstance(step, HostStep):
                kept |= set(step.inputs)
        return cls(
            first=tuple(step for step in steps[:begin] if isinstance(step, HostStep)),
            middle=steps[begin:end],
            last=tuple(step for step in steps[end:] if isinstance(step, HostStep)),
            kept=frozenset(kept),
        )

    @property
    def mixed(self) -> bool:
        """Whether the host computes between accelerator steps."""
        return any(isinstance(step, HostStep) for step in self.middle)
