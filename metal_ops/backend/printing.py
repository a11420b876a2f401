"""``repr`` of a tensor of this device: its numbers are read on the host, as torch itself does for XLA and MTIA."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import _tensor_str

from metal_ops.backend.memory import is_air


def install() -> None:
    """Make torch's printing copy a tensor of this device to the host first; it would launch a dozen kernels else."""
    contents: Callable[[torch.Tensor, int], str] = _tensor_str._tensor_str

    def from_host(tensor: torch.Tensor, indent: int) -> str:
        return contents(tensor.cpu() if is_air(tensor) else tensor, indent)

    _tensor_str._tensor_str = from_host
