"""Between the host and the device: plain copies of memory, casts on the side that torch makes them on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from conformance.devices.base import Unsupported
from metal_ops.backend.kernels import missing
from metal_ops.backend.memory import allocate, allocate_dense, dense_strides, is_air, on_host, resize, view_of
from metal_ops.backend.runtime import queue
from metal_ops.launch import copy


def _empty(
    size: list[int],
    *,
    dtype: torch.dtype | None = None,
    layout: torch.layout | None = None,
    device: torch.device | None = None,
    pin_memory: bool | None = None,
    memory_format: torch.memory_format | None = None,
) -> torch.Tensor:
    return allocate_dense(size, dtype, memory_format)


def _empty_strided(
    size: list[int],
    stride: list[int],
    *,
    dtype: torch.dtype | None = None,
    layout: torch.layout | None = None,
    device: torch.device | None = None,
    pin_memory: bool | None = None,
) -> torch.Tensor:
    return allocate(size, stride, dtype)


def _resize(tensor: torch.Tensor, size: list[int], *, memory_format: torch.memory_format | None = None) -> torch.Tensor:
    return resize(tensor, size, dense_strides(size, memory_format))


def _forget(tensor: torch.Tensor) -> torch.Tensor:
    """``set_()``: a tensor without elements, on memory of its own."""
    return resize(tensor.set_(allocate((0,), (1,), tensor.dtype).untyped_storage()), (0,), (1,))


def _copy_from(source: torch.Tensor, destination: torch.Tensor, non_blocking: bool = False) -> torch.Tensor:
    """Copy between devices, or from one tensor of this device to another by a kernel.

    A transfer moves memory: as in PyTorch's Metal backend, a cast that it needs is made by a kernel where the device
    has the type, and on the host where it has not (float64).
    """
    source = source.expand(destination.shape)
    if is_air(source) and is_air(destination):
        _copy_on_device(source, destination)
    elif is_air(destination):
        _upload(source, destination)
    else:
        destination.copy_(on_host(source))
    return destination


def _upload(source: torch.Tensor, destination: torch.Tensor) -> None:
    on_host(destination).copy_(source)


def _copy_on_device(source: torch.Tensor, destination: torch.Tensor) -> None:
    try:
        copy.copy(queue(), view_of(source), view_of(destination))
    except Unsupported as reason:
        raise NotImplementedError(missing("copy_", (source, destination), str(reason))) from reason


def _local_scalar_dense(tensor: torch.Tensor) -> Any:
    return on_host(tensor).item()


TRANSFERS: dict[str, Callable[..., Any]] = {
    "empty.memory_format": _empty,
    "empty_strided": _empty_strided,
    "resize_": _resize,
    "set_": _forget,
    "_copy_from": _copy_from,
    "_local_scalar_dense": _local_scalar_dense,
}
"""By aten overload."""
