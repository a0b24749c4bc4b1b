# SPDX-License-Identifier: Apache-2.0
"""Every operator, random cases, on the checking simulator in every named configuration: equal to the reference."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pytest

from compiler.backend_cases import MAKERS, make_graph
from compiler.cases import BUILDERS, make_case
from openvta.compiler import compile_graph, compile_model
from openvta.compiler.importers import import_onnx
from openvta.compiler.reference import evaluate
from openvta.driver import open_device
from openvta.spec import HardwareConfig, load_config, named_configs
from openvta.spec.bundle import Bundle

MODELS_EACH = 4
GRAPHS_EACH = 2
Record = Callable[[str, str], None]


def run_checked(bundle: Bundle, config: HardwareConfig, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Outputs on the functional simulator with races, deadlocks and never-written reads looked for."""
    with open_device("fsim", config=config, check=True) as device:
        return dict(device.run(bundle, inputs).outputs)


def assert_equal(found: Mapping[str, np.ndarray], wanted: Mapping[str, np.ndarray], label: str) -> None:
    assert found.keys() == wanted.keys()
    for name, values in wanted.items():
        assert found[name].dtype == values.dtype
        assert found[name].shape == values.shape
        differing = int((found[name] != values).sum())
        assert differing == 0, f"{label}: {differing} of {values.size} elements of {name} differ"


@pytest.mark.parametrize("name", named_configs())
@pytest.mark.parametrize("operator", list(BUILDERS))
def test_models_of_one_operator(operator: str, name: str, seed: int, record_coverage: Record) -> None:
    config = load_config(name)
    for number in range(MODELS_EACH):
        case = make_case(operator, 100 * seed + number)
        bundle = compile_model(case.model, config, strict=True).bundle
        wanted = evaluate(import_onnx(case.model).graph, case.inputs)
        assert_equal(run_checked(bundle, config, case.inputs), wanted, f"{case.name} on {name}")
        record_coverage("fsim", name)


@pytest.mark.parametrize("name", named_configs())
@pytest.mark.parametrize("operator", sorted(MAKERS))
def test_graphs_of_one_node(operator: str, name: str, seed: int, record_coverage: Record) -> None:
    config = load_config(name)
    for number in range(GRAPHS_EACH):
        graph = make_graph(operator, 100 * seed + number)
        rng = np.random.default_rng([seed, number])
        images = 2 * config.batch - 1
        inputs = {
            n: rng.integers(-128, 128, (images, *graph.tensor(n).shape[1:])).astype(np.int8) for n in graph.inputs
        }
        bundle = compile_graph(graph, config, strict=True).bundle
        assert_equal(run_checked(bundle, config, inputs), evaluate(graph, inputs), f"{operator} {number} on {name}")
        record_coverage("fsim", name)
