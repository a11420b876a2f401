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
        """Give bytes in live blocks, in the allocator's heaps (None where torch does not tell), and all Metal holds.

        ``driver`` is what Metal holds for this process, Apple's own libraries included; it has no peak counter.
        """
        import torch

        return {
            "current": torch.mps.current_allocated_memory(),
            "reserved": _reserved(),
            "driver": torch.mps.driver_allocated_memory(),
        }


def _reserved() -> int | None:
    """Read the statistics themselves: ``torch.accelerator.memory_reserved`` makes a 0 of what it does not know."""
    import torch

    try:
        statistics = torch.accelerator.memory_stats("mps")
    # Of an allocator without statistics, and where another backend (``air``) has become the accelerator of the process.
    except (AttributeError, RuntimeError, ValueError):
        return None
    reserved: int | None = statistics.get("reserved_bytes.all.current")
    return reserved
