# SPDX-License-Identifier: Apache-2.0
"""Host steps: the parts of a model that run on onnxruntime, exactly as written (no graph optimisation)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from openvta.driver.errors import DeviceError
from openvta.spec.bundle import HostStep

Arrays = dict[str, npt.NDArray[Any]]


class HostPart:
    """One host step ready to run.

    Raises:
        DeviceError: onnxruntime does not take the model.
    """

    def __init__(self, step: HostStep) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.log_severity_level = 3
        self.step = step
        try:
            self._session: Any = onnxruntime.InferenceSession(step.model, options, providers=["CPUExecutionProvider"])
        except Exception as error:  # onnxruntime's exceptions have no common base
            raise DeviceError(f"host step '{step.name}': onnxruntime refuses the model: {error}") from error
        first = self._session.get_inputs()[0].shape if self._session.get_inputs() else []
        self._rows = first[0] if first and isinstance(first[0], int) else None

    def run(self, values: Arrays, rows: int) -> Arrays:
        """Values of the step's outputs, from a table that has its inputs; first dimension = ``rows``.

        Raises:
            DeviceError: the model fails on these values.
        """
        size = rows if self._rows is None else self._rows
        parts: list[list[npt.NDArray[Any]]] = []
        for start in range(0, rows, size):
            count = min(size, rows - start)
            feed = {name: _padded(values[name][start : start + count], size) for name in self.step.inputs}
            try:
                results = self._session.run(list(self.step.outputs), feed)
            except Exception as error:  # onnxruntime's exceptions have no common base
                raise DeviceError(f"host step '{self.step.name}': {error}") from error
            parts.append([np.asarray(result)[:count] for result in results])
        return {
            name: np.concatenate([part[number] for part in parts]) if len(parts) > 1 else parts[0][number]
            for number, name in enumerate(self.step.outputs)
        }


def _padded(array: npt.NDArray[Any], rows: int) -> npt.NDArray[Any]:
    if len(array) == rows:
        return array
    return np.concatenate([array, np.repeat(array[-1:], rows - len(array), axis=0)])
