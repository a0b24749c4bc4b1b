# SPDX-License-Identifier: Apache-2.0
"""Random hardware configurations: whatever the specification accepts, small enough to simulate quickly."""

from __future__ import annotations

import numpy as np

from openvta.sim.errors import SimError
from openvta.spec import HardwareConfig, load_config
from openvta.spec.config import EXTENSIONS, config_from_mapping
from openvta.spec.errors import ConfigError

MAX_MACS = 512
MAX_BUFFER_BITS = 13
ATTEMPTS = 1000
PREFIX = "random-"


def random_config(seed: int) -> HardwareConfig:
    """The configuration of a seed, named ``random-SEED``: at most 512 multiply-accumulates a cycle, buffers of 8 KiB.

    Raises:
        SimError: none was legal in a thousand draws.
    """
    rng = np.random.default_rng([seed, 0xC0F1])

    def power(low: int, high: int) -> int:
        return 1 << int(rng.integers(low, high + 1))

    for _ in range(ATTEMPTS):
        values: dict[str, object] = {
            "batch": power(0, 2),
            "block": power(1, 5),
            "inp_bits": power(0, 3),
            "wgt_bits": power(0, 3),
            "axi_data_bits": power(5, 9),
            "axi_id_bits": int(rng.integers(3, 9)),
            "axi_burst_beats": power(1, 6),
            "axi_outstanding": power(0, 4),
            "token_depth": int(rng.integers(3, 20)),
            "queue_depth": power(1, 5),
            "requant_cycles": power(0, 4),
            "extensions": [name for name in EXTENSIONS if rng.random() < 0.8],
            **{f"{memory}_buffer_bytes": power(7, MAX_BUFFER_BITS) for memory in ("uop", "inp", "wgt", "acc")},
        }
        try:
            config = config_from_mapping(values, name=f"{PREFIX}{seed}")
        except ConfigError:
            continue
        if config.macs_per_cycle <= MAX_MACS and config.acc_depth >= 8:
            return config
    raise SimError(f"no legal configuration in {ATTEMPTS} draws of seed {seed}; give another seed")


def configuration(name: str) -> HardwareConfig:
    """A configuration by name, file, or ``random-SEED``.

    Raises:
        ConfigError: no such configuration.
    """
    if name.startswith(PREFIX) and name[len(PREFIX) :].isdigit():
        return random_config(int(name[len(PREFIX) :]))
    return load_config(name)
