"""How a call reaches a device: in this process now; out of process the same call goes through the wire form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from conformance.worker.executor import run
from conformance.worker.protocol import Call, Outcome

if TYPE_CHECKING:
    from conformance.devices.base import Device


class Transport(Protocol):
    """Carries calls to one device and brings their outcomes back."""

    def run(self, call: Call) -> Outcome:
        """Run one call; a failure of the device is an outcome, never an exception."""
        ...


class InProcess:
    """The device lives in this process, and a call is a call."""

    def __init__(self, device: Device) -> None:
        self.device = device

    def run(self, call: Call) -> Outcome:
        """Run one call on the device."""
        return run(call, self.device)
