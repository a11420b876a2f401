"""The CPU kernels of the host torch."""

from __future__ import annotations

from conformance.devices.torch_device import TorchDevice


class CpuDevice(TorchDevice):
    """Always there; the device against which failures of others are classed.

    Its vector code, for dense operands, and its scalar code, for the rest, are different libraries that round
    differently: both must be within the bound, not the same.
    """

    name = "cpu"
    torch_device = "cpu"
    same_bits_in_any_layout = False
