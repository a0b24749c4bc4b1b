# SPDX-License-Identifier: Apache-2.0
"""What can go wrong between a bundle and a device; every message says what, where and what to do."""

from __future__ import annotations

from openvta.spec.isa import Cause, Queue, Unit


class DeviceError(RuntimeError):
    """Base of every error the driver raises."""


class InputError(DeviceError):
    """An input array of the wrong name, type or shape."""

    def __init__(self, name: str, field: str, value: object, limit: str) -> None:
        super().__init__(f"input '{name}': {field} = {value}: {limit}")
        self.name = name
        self.field = field
        self.value = value
        self.limit = limit


class UnknownDevice(DeviceError):
    """A device name that no installed package provides, or options it does not take."""


class ConfigMismatch(DeviceError):
    """A device of another configuration (or no OpenVTA at all) than the bundle was made for."""


class Timeout(DeviceError):
    """The device did not stop within the bound; it is still running."""


class Fault(DeviceError):
    """The device stopped with an error.

    Attributes:
        cause: why.
        unit: which unit found it, or waits (watchdog).
        index: instruction in the segment.
        instruction: its text.
        waits: queues whose tokens it waits for (watchdog).
        finish: it is FINISH, waiting for the others to become idle (watchdog).
    """

    def __init__(
        self,
        message: str,
        *,
        cause: Cause,
        unit: Unit,
        index: int,
        instruction: str,
        waits: tuple[Queue, ...] = (),
        finish: bool = False,
    ) -> None:
        super().__init__(message)
        self.cause = cause
        self.unit = unit
        self.index = index
        self.instruction = instruction
        self.waits = waits
        self.finish = finish


class BusError(Fault):
    """Memory answered an access with an error; ``address`` is the byte address, ``offset`` counts from the image."""

    address: int = 0
    channel: str = ""
