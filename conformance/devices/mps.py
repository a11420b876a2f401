"""The GPU of an Apple silicon machine, through the host torch."""

from __future__ import annotations

from contextlib import suppress

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

    def reset_peaks(self) -> None:
        """Let the peaks of the allocator be what is held now, where it has any."""
        import torch

        with suppress(*_NO_STATISTICS):
            torch.accelerator.reset_peak_memory_stats("mps")

    def peaks(self) -> dict[str, int | None]:
        """Give the allocator's peaks; Metal has none of what it holds."""
        return {
            "current": _statistic("allocated_bytes.all.peak"),
            "reserved": _statistic("reserved_bytes.all.peak"),
        }

    def memory(self) -> dict[str, int | None]:
        """Give bytes in live blocks, in the allocator's heaps (None where torch does not tell), and all Metal holds.

        ``driver`` is what Metal holds for this process, Apple's own libraries included; it has no peak counter.
        """
        import torch

        return {
            "current": torch.mps.current_allocated_memory(),
            "reserved": _statistic("reserved_bytes.all.current"),
            "driver": torch.mps.driver_allocated_memory(),
        }


# Of an allocator without statistics, and where another backend (``air``) has become the accelerator of the process.
_NO_STATISTICS = (AttributeError, RuntimeError, ValueError)


def _statistic(name: str) -> int | None:
    """Read the statistics themselves: ``torch.accelerator.memory_reserved`` makes a 0 of what it does not know."""
    import torch

    try:
        found: int | None = torch.accelerator.memory_stats("mps").get(name)
    except _NO_STATISTICS:
        return None
    return found
