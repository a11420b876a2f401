"""The CPU kernels of the host torch."""

from __future__ import annotations

from conformance.devices.torch_device import TorchDevice


class CpuDevice(TorchDevice):
    """Always there; the device against which failures of others are classed."""

    name = "cpu"
    torch_device = "cpu"
