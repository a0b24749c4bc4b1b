# SPDX-License-Identifier: Apache-2.0
"""Devices are found by name, and bad names and options are refused."""

from __future__ import annotations

import pytest

from openvta.driver import UnknownDevice, device_names, open_device
from openvta.spec import ConfigError


def test_names() -> None:
    assert {"fsim", "cosim"} <= set(device_names())


def test_unknown_name() -> None:
    with pytest.raises(UnknownDevice, match=r"device = 'fsym': must be one of .*fsim"):
        open_device("fsym")


def test_unknown_configuration() -> None:
    with pytest.raises(ConfigError, match="neither a file nor one of"):
        open_device("fsim", config="nothing")


def test_unknown_option() -> None:
    with pytest.raises(UnknownDevice, match=r"device 'fsim': .*waves"):
        open_device("fsim", config="tiny", waves="x.fst")


def test_progress_is_for_everybody() -> None:
    with open_device("fsim", config="tiny", progress=print) as device:
        assert "counters" in device.capabilities
