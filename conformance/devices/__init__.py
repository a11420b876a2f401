"""Devices under test: what they are, and how a name becomes one."""

from conformance.devices.base import Device, Emulated, Unavailable, Unsupported
from conformance.devices.resolve import default_name, resolve

__all__ = ["Device", "Emulated", "Unavailable", "Unsupported", "default_name", "resolve"]
