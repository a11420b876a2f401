"""Storages of device ``air``, and tensors on them.

Torch offers Python no allocator for a device of its own. But a storage can be made from a pointer, and the CPU kernels
of ``set_`` and ``as_strided`` only write a tensor's description, whatever its device. So a tensor here is a real one:
the memory is NumPy's, and the storage object keeps it alive (torch preserves a storage's Python object, with its
attributes, as long as the storage).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch._C import DispatchKey, DispatchKeySet

from conformance.dtypes import BY_NAME, DType
from metal_ops.launch._views import View, row_major

if TYPE_CHECKING:
    from torch import UntypedStorage

DEVICE_TYPE = "air"
CPU = DispatchKeySet(DispatchKey.CPU)

_UNINITIALISED = 0xFF
"""Fresh memory is NaN in every float type, so that an element left out shows."""

_REFUSED = (torch.float64, torch.complex128)

_set = torch.ops.aten.set_.source_Storage_storage_offset


class Allocation:
    """The bytes of one storage; counted while they live."""

    __slots__ = ("address", "array")
    live = 0
    peak = 0

    def __init__(self, nbytes: int) -> None:
        owner = torch.empty(nbytes, dtype=torch.uint8).fill_(_UNINITIALISED)  # aligned to 64 bytes, as NumPy's is not
        self.address = owner.data_ptr()
        self.array: NDArray[np.uint8] = owner.numpy()
        Allocation._count(nbytes)

    @classmethod
    def of(cls, array: NDArray[np.uint8]) -> Allocation:
        """Adopt bytes that a launch has written."""
        self = object.__new__(cls)
        self.address = array.ctypes.data
        self.array = array
        Allocation._count(array.nbytes)
        return self

    @staticmethod
    def _count(nbytes: int) -> None:
        Allocation.live += nbytes
        Allocation.peak = max(Allocation.peak, Allocation.live)

    def __del__(self) -> None:
        Allocation.live -= self.array.nbytes


@cache
def device() -> torch.device:
    """The one device there is."""
    return torch.device(DEVICE_TYPE, 0)


def is_air(tensor: torch.Tensor) -> bool:
    """Whether the tensor lies on the emulated GPU."""
    return tensor.device.type == DEVICE_TYPE


def storage_on(allocation: Allocation) -> UntypedStorage:
    """A storage that keeps the memory alive, and can be cloned although torch has no allocator for the device."""
    storage: Any = torch._C._construct_storage_from_data_pointer(allocation.address, device(), allocation.array.nbytes)
    storage.allocation = allocation
    storage.clone = partial(_clone, allocation)
    return storage  # type: ignore[no-any-return]


def _clone(allocation: Allocation) -> UntypedStorage:
    return storage_on(Allocation.of(allocation.array.copy()))


def _on(allocation: Allocation, dtype: torch.dtype, size: Sequence[int], stride: Sequence[int]) -> torch.Tensor:
    tensor = torch._C._acc.create_empty_tensor((0,), dtype)
    _set.redispatch(CPU, tensor, storage_on(allocation), 0, size, stride)
    return tensor


def check_dtype(dtype: torch.dtype) -> None:
    """Refuse what Metal has not, as device ``mps`` does.

    Raises
    ------
    TypeError
        If the type is float64 or complex128.
    """
    if dtype in _REFUSED:
        raise TypeError(f"device air has no {str(dtype).removeprefix('torch.')}, as Metal has not; use float32")


def allocate(size: Sequence[int], stride: Sequence[int], dtype: torch.dtype | None) -> torch.Tensor:
    """A new tensor of uninitialised memory with the strides given, both in elements."""
    dtype = dtype or torch.get_default_dtype()
    check_dtype(dtype)
    return _on(Allocation(_extent(size, stride) * dtype.itemsize), dtype, size, stride)


def allocate_dense(
    size: Sequence[int], dtype: torch.dtype | None, memory_format: torch.memory_format | None = None
) -> torch.Tensor:
    """A new tensor of uninitialised memory, without gaps, in a memory format (contiguous by default)."""
    return allocate(size, dense_strides(size, memory_format), dtype)


def dense_strides(size: Sequence[int], memory_format: torch.memory_format | None) -> tuple[int, ...]:
    """Strides without gaps in a memory format, contiguous by default."""
    if memory_format in (None, torch.contiguous_format, torch.preserve_format):
        return row_major(size)
    return torch.empty(tuple(size), device="meta", memory_format=memory_format).stride()


def resize(tensor: torch.Tensor, size: Sequence[int], strides: Sequence[int]) -> torch.Tensor:
    """Give a tensor another size and strides, with memory of its own if its storage is too small.

    A storage made from a pointer cannot grow, so other views of the old one keep the old one.
    """
    needed = (int(tensor.storage_offset()) + _extent(size, strides)) * tensor.itemsize
    storage = tensor.untyped_storage()
    if storage.nbytes() < needed:
        grown = Allocation(needed)
        grown.array[: storage.nbytes()] = memory(storage)
        storage = storage_on(grown)
    _set.redispatch(CPU, tensor, storage, tensor.storage_offset(), tuple(size), tuple(strides))
    return tensor


def _extent(size: Sequence[int], strides: Sequence[int]) -> int:
    """Elements from the first to behind the last."""
    return 0 if 0 in size else 1 + sum((n - 1) * step for n, step in zip(size, strides, strict=True))


def memory(storage: UntypedStorage) -> NDArray[np.uint8]:
    """The bytes of a storage of this device."""
    allocation: Allocation = storage.allocation  # type: ignore[attr-defined]
    return allocation.array


def on_host(tensor: torch.Tensor) -> torch.Tensor:
    """The same memory as a CPU tensor, with the lazy bits of conjugation and negation kept."""
    if not is_air(tensor):
        return tensor
    array = memory(tensor.untyped_storage())
    flat = torch.from_numpy(array) if array.nbytes else torch.empty(0, dtype=torch.uint8)
    alias = torch.empty(0, dtype=tensor.dtype).set_(
        flat.untyped_storage(), tensor.storage_offset(), tensor.shape, tensor.stride()
    )
    if tensor.is_conj():
        alias = alias.conj()
    return torch._neg_view(alias) if tensor.is_neg() else alias


_DTYPES: dict[torch.dtype, DType] = {getattr(torch, name): dtype for name, dtype in BY_NAME.items()}
_TORCH = {dtype.name: torch_dtype for torch_dtype, dtype in _DTYPES.items()}


def dtype_of(dtype: torch.dtype) -> DType:
    """The suite's description of an element type."""
    try:
        return _DTYPES[dtype]
    except KeyError:
        raise NotImplementedError(f"device air has no launches for {dtype}") from None


def view_of(tensor: torch.Tensor) -> View:
    """A tensor as launches take it, on the same memory.

    Raises
    ------
    RuntimeError
        If it is neither on device ``air`` nor a CPU tensor without dimensions.
    """
    if is_air(tensor):
        array = memory(tensor.untyped_storage())
    elif tensor.device.type == "cpu" and not tensor.dim():
        array = np.frombuffer(bytearray(tensor.reshape(1).view(torch.uint8).numpy()), np.uint8)
        return View(dtype_of(tensor.dtype), (), (), 0, array)
    else:
        raise RuntimeError(f"all tensors must be on device air; one is on {tensor.device}")
    return View(
        dtype_of(tensor.dtype),
        tuple(tensor.shape),
        tensor.stride(),
        int(tensor.storage_offset()),
        array,
        tensor.is_conj(),
        tensor.is_neg(),
    )


def tensor_of(view: View) -> torch.Tensor:
    """A new tensor on the memory of a view that a launch has made; views made of one storage do not share it."""
    tensor = torch._C._acc.create_empty_tensor((0,), _TORCH[view.dtype.name])
    storage = storage_on(Allocation.of(view.storage))
    _set.redispatch(CPU, tensor, storage, view.offset, view.shape, view.strides)
    return tensor
