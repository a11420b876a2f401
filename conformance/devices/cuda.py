"""The first CUDA device of the host torch."""

from __future__ import annotations

from conformance.devices.torch_device import TorchDevice


class CudaDevice(TorchDevice):
    """Device 0 of CUDA (or of ROCm, which torch calls by the same name)."""

    name = "cuda"
    torch_device = "cuda:0"

    def available(self) -> str | None:
        """Give None, or why the device cannot be had."""
        import torch

        if torch.version.cuda is None and torch.version.hip is None:
            return f"device cuda: torch {torch.__version__} is built without CUDA"
        return None if torch.cuda.is_available() else "device cuda: torch finds no CUDA device or driver here"

    def synchronize(self) -> None:
        """Wait until all work of the device is done."""
        import torch

        torch.cuda.synchronize()

    def memory(self) -> dict[str, int | None]:
        """Give bytes in tensors, bytes cached by the allocator, and all that the driver has handed out."""
        import torch

        free, total = torch.cuda.mem_get_info()
        return {
            "current": torch.cuda.memory_allocated(),
            "reserved": torch.cuda.memory_reserved(),
            "driver": total - free,
        }
