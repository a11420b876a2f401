"""Between torch's CPU tensors and the views of launches, and the layouts that a tensor can have."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from conformance.dtypes import dtype
from metal_ops.launch._views import View, row_major

BYTE_TYPES = [torch.float8_e4m3fn, torch.int8, torch.uint8, torch.bool]
REAL_TYPES = [torch.float32, torch.float16, torch.bfloat16]
INTEGER_TYPES = [torch.int64, torch.int32, torch.int16, torch.uint64, torch.uint32, torch.uint16]
COMPLEX_TYPES = [torch.complex64, torch.complex32]
ALL_TYPES = [*BYTE_TYPES, *REAL_TYPES, *INTEGER_TYPES, *COMPLEX_TYPES]


def as_view(tensor: torch.Tensor) -> View:
    """A tensor of the CPU as launches take it, lazy bits kept, on the same memory: keep the tensor alive."""
    storage = tensor.untyped_storage()
    memory = (ctypes.c_uint8 * storage.nbytes()).from_address(storage.data_ptr()) if storage.nbytes() else b""
    name = str(tensor.dtype).removeprefix("torch.")
    offset = int(tensor.storage_offset())
    view = View(dtype(name), tuple(tensor.shape), tensor.stride(), offset, np.frombuffer(memory, np.uint8))
    return replace(view, conj=tensor.is_conj(), neg=tensor.is_neg())


def view_of(tensor: torch.Tensor) -> View:
    """The same on a copy of the storage."""
    view = as_view(tensor)
    return replace(view, storage=view.storage.copy())


def tensor_of(view: View) -> torch.Tensor:
    """A tensor on a copy of the view's storage."""
    storage = torch.from_numpy(view.storage.copy()).untyped_storage()
    return torch.empty(0, dtype=getattr(torch, view.dtype.name)).set_(storage, view.offset, view.shape, view.strides)


def same_bits(first: torch.Tensor, second: torch.Tensor) -> bool:
    """Whether two tensors have the same type, shape and bytes."""
    if first.dtype != second.dtype or first.shape != second.shape:
        return False
    packed = [torch.empty(tensor.shape, dtype=tensor.dtype).copy_(tensor) for tensor in (first, second)]
    return torch.equal(*(tensor.reshape(-1).view(torch.uint8) for tensor in packed))


def layouts(tensor: torch.Tensor) -> Iterator[torch.Tensor]:
    """The tensor contiguous, permuted, with gaps and an offset, sliced in the last dimension, and in channels_last."""
    yield tensor.contiguous()
    if tensor.dim() > 1:
        yield tensor.transpose(0, -1).contiguous().transpose(0, -1)
    if tensor.dim() > 0:
        base = torch.zeros([2 * size + 1 for size in tensor.shape], dtype=tensor.dtype)
        gapped = base[tuple(slice(1, None, 2) for _ in tensor.shape)]
        yield gapped.copy_(tensor)
        base = torch.zeros([*tensor.shape[:-1], tensor.shape[-1] + 3], dtype=tensor.dtype)
        yield base[..., 2:-1].copy_(tensor)
    if tensor.dim() == 4:
        yield tensor.contiguous(memory_format=torch.channels_last)


def outside(view: View) -> Any:
    """The bytes of the storage that belong to no element."""
    inside = np.zeros(view.storage.size, bool)
    step = view.dtype.itemsize
    offsets = np.array([0])
    for size, stride in zip(view.shape, view.strides, strict=True):
        offsets = (offsets[:, None] + stride * np.arange(size)).ravel()
    for byte in range(step):
        inside[(view.offset + offsets) * step + byte] = True
    return view.storage[~inside]


def poisoned(
    shape: tuple[int, ...], type_: torch.dtype, strides: tuple[int, ...] | None = None, offset: int = 0
) -> View:
    """A view to write to, in memory that is 0xA5 all over, with guards behind it."""
    element = dtype(str(type_).removeprefix("torch."))
    steps = strides if strides is not None else row_major(shape)
    bare = View(element, shape, steps, offset, np.empty(0, np.uint8))
    return replace(bare, storage=np.full((offset + bare.extent + 3) * element.itemsize, 0xA5, np.uint8))
