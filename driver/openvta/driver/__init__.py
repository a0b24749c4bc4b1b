# SPDX-License-Identifier: Apache-2.0
"""Run bundles on devices: ``open_device("fsim").run(bundle, {"input": x})``."""

from __future__ import annotations

from openvta.driver.device import Device
from openvta.driver.errors import BusError, ConfigMismatch, DeviceError, Fault, InputError, Timeout, UnknownDevice
from openvta.driver.registry import device_names, open_device
from openvta.driver.result import LaunchResult, RunResult
from openvta.driver.transport import LockstepTransport, Transport

__all__ = [
    "BusError",
    "ConfigMismatch",
    "Device",
    "DeviceError",
    "Fault",
    "InputError",
    "LaunchResult",
    "LockstepTransport",
    "RunResult",
    "Timeout",
    "Transport",
    "UnknownDevice",
    "device_names",
    "open_device",
]
