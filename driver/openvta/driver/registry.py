# SPDX-License-Identifier: Apache-2.0
"""Devices by name, found through the entry points ``openvta.devices``."""

from __future__ import annotations

from importlib import metadata
from typing import Any

from openvta.driver.device import Device
from openvta.driver.errors import UnknownDevice
from openvta.driver.transport import Transport
from openvta.spec.config import HardwareConfig, load_config

GROUP = "openvta.devices"


def device_names() -> tuple[str, ...]:
    """Names of the devices that installed packages provide."""
    return tuple(sorted({entry.name for entry in metadata.entry_points(group=GROUP)}))


def open_device(
    name: str, *, config: HardwareConfig | str | None = None, jobs: int | None = None, **options: Any
) -> Device:
    """A device by name.

    Args:
        name: "fsim", "cosim", or whatever installed packages add.
        config: its configuration (an object, a name or a TOML file); None takes that of the first bundle it runs.
        jobs: processes that share the images of a long run, where the device can (fsim); None: OPENVTA_JOBS, else one a
            processor.
        options: passed to the transport, such as ``check=True`` (fsim) or ``waves="run.vcd"`` (cosim). ``progress``,
            a function that is told about long steps, may be given to every device.

    Raises:
        UnknownDevice: no such device, or an option it does not take.
        ConfigError: no such configuration.
        ConfigMismatch: the device has another configuration.
    """
    entries = {entry.name: entry for entry in metadata.entry_points(group=GROUP)}
    if name not in entries:
        known = ", ".join(sorted(entries)) or "none: is the package installed?"
        raise UnknownDevice(f"device = '{name}': must be one of {known}")
    try:
        factory = entries[name].load()
    except (ImportError, AttributeError) as error:
        raise UnknownDevice(f"device '{name}' cannot be loaded: {error}; run 'openvta doctor'") from error
    given = load_config(config) if isinstance(config, str) else config

    def opener(wanted: HardwareConfig) -> Transport:
        chosen = dict(options)
        while True:
            try:
                transport: Transport = factory(wanted, **chosen)
                return transport
            except TypeError as error:
                if "unexpected keyword argument" not in str(error):
                    raise
                if "progress" in chosen and "'progress'" in str(error):
                    del chosen["progress"]
                    continue
                raise UnknownDevice(f"device '{name}': {str(error).partition(') ')[2] or error}") from error

    return Device(name, opener, given, jobs)
