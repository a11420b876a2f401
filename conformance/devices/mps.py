"""The GPU of an Apple silicon machine, through the host torch."""

from __future__ import annotations

from conformance.devices.torch_device import TorchDevice


class MpsDevice(TorchDevice):
    """Torch's Metal backend; the kernels judged are those of the installed torch."""

    name = "mps"
    torch_device = "mps"

    def available(self) -> str | None:
        """Give None, or why the device cannot be had."""
        import torch

        if not torch.backends.mps.is_built():
            return (
                f"device mps: torch {torch.__version__} is built without MPS; it needs a macOS wheel on Apple silicon"
            )
        return None if torch.backends.mps.is_available() else "device mps: this macOS or machine has no MPS device"

    def synchronize(self) -> None:
        """Wait for all kernels of all MPS streams."""
        import torch

        torch.mps.synchronize()

    def memory(self) -> dict[str, int | None]:
        """Give bytes in live blocks, in the allocator's heaps (None before torch 2.15), and all that Metal holds."""
        import torch

        try:
            reserved: int | None = torch.accelerator.memory_reserved()
        except (AttributeError, RuntimeError):
            reserved = None
        return {
            "current": torch.mps.current_allocated_memory(),
            "reserved": reserved,
            "driver": torch.mps.driver_allocated_memory(),
        }
