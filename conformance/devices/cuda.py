"""The first CUDA device of the host torch."""

from __future__ import annotations

from contextlib import AbstractContextManager

from conformance.devices.torch_device import TorchDevice


class CudaDevice(TorchDevice):
    """Device 0 of CUDA (or of ROCm, which torch calls by the same name).

    Its kernels for dense and for strided operands are compiled apart, and the compiler may fuse a product and a sum in
    one and not in the other (CUDA C++ Programming Guide, floating-point standard). PyTorch promises no equal bits
    either (its notes on numerical accuracy), and adds up some gradients by atomic operations, in any order.
    """

    name = "cuda"
    torch_device = "cuda:0"
    same_bits_in_any_layout = False

    def available(self) -> str | None:
        """Give None, or why the device cannot be had."""
        import torch

        if torch.version.cuda is None and torch.version.hip is None:
            return f"device cuda: torch {torch.__version__} is built without CUDA"
        return None if torch.cuda.is_available() else "device cuda: torch finds no CUDA device or driver here"

    def session(self) -> AbstractContextManager[None]:
        """Make device 0 the current one, for ops that make tensors without saying where."""
        import torch

        return torch.cuda.device(self.torch_device)

    def synchronize(self) -> None:
        """Wait for all streams of the device."""
        import torch

        torch.cuda.synchronize(self.torch_device)

    def reset_peaks(self) -> None:
        """Let the peaks of the allocator be what is held now."""
        import torch

        torch.cuda.reset_peak_memory_stats(self.torch_device)

    def peaks(self) -> dict[str, int | None]:
        """Give the allocator's peaks; the driver has none."""
        import torch

        return {
            "current": torch.cuda.max_memory_allocated(self.torch_device),
            "reserved": torch.cuda.max_memory_reserved(self.torch_device),
        }

    def memory(self) -> dict[str, int | None]:
        """Give bytes in tensors, bytes in the allocator's segments, and bytes of the GPU in use by any process."""
        import torch

        free, total = torch.cuda.mem_get_info(self.torch_device)
        return {
            "current": torch.cuda.memory_allocated(self.torch_device),
            "reserved": torch.cuda.memory_reserved(self.torch_device),
            "driver": total - free,
        }
