"""Tensors as the emulated GPU sees them: memory, and a strided view into it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conformance.dtypes import DType, dtype
from conformance.worker.protocol import Tensor

METAL_NAMES = {
    "float8_e4m3fn": "float8_e4m3fn",
    "float32": "float",
    "float16": "half",
    "bfloat16": "bfloat",
    "complex64": "float2",
    "complex32": "half2",
    "int64": "long",
    "int32": "int",
    "int16": "short",
    "int8": "char",
    "uint8": "uchar",
    "uint16": "ushort",
    "uint32": "uint",
    "uint64": "ulong",
    "bool": "bool",
}
"""The part of a kernel's name that says an element type."""


@dataclass(frozen=True)
class View:
    """A strided view: ``shape``, ``strides`` and ``offset`` in elements of ``dtype``, over ``storage`` (bytes).

    ``conj`` and ``neg`` are torch's lazy bits: the logical values are the conjugates, or the negatives, of what lies in
    memory. Only copies ever see them set; torch resolves them before any other op.
    """

    dtype: DType
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    storage: NDArray[np.uint8]
    conj: bool = False
    neg: bool = False

    @property
    def numel(self) -> int:
        """The number of logical elements."""
        return prod(self.shape)

    @property
    def metal(self) -> str:
        """The element type's name in Metal."""
        return METAL_NAMES[self.dtype.name]

    @property
    def contiguous(self) -> bool:
        """Whether elements lie in row-major order without gaps (PyTorch's definition: size-1 dims do not matter)."""
        expected = 1
        for size, stride in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if size != 1 and stride != expected:
                return self.numel == 0
            expected *= size
        return True

    @property
    def extent(self) -> int:
        """Elements from the first to behind the last one that the view reaches; 0 if it is empty."""
        if not self.numel:
            return 0
        return 1 + sum((size - 1) * stride for size, stride in zip(self.shape, self.strides, strict=True))

    @property
    def memory(self) -> NDArray[np.uint8]:
        """The bytes that a kernel may touch: exactly the view's extent, so that a read of a guard is out of bounds."""
        start = self.offset * self.dtype.itemsize
        return self.storage[start : start + self.extent * self.dtype.itemsize]

    def array(self) -> NDArray[Any]:
        """The view as a NumPy array on the same memory."""
        step = self.dtype.itemsize
        base = (
            self.storage[self.offset * step :].view(self.dtype.numpy) if self.numel else np.empty(0, self.dtype.numpy)
        )
        return np.lib.stride_tricks.as_strided(base, self.shape, [stride * step for stride in self.strides])


def from_tensor(tensor: Tensor) -> View:
    """A view on a writable copy of the tensor's storage."""
    storage = np.frombuffer(tensor.storage, np.uint8).copy()
    return View(dtype(tensor.dtype), tensor.shape, tensor.strides, tensor.offset, storage)


def to_tensor(view: View) -> Tensor:
    """The view as data for the worker boundary."""
    return Tensor(view.dtype.name, view.shape, view.strides, view.offset, view.storage.tobytes())


def row_major(shape: Sequence[int]) -> tuple[int, ...]:
    """Strides of a contiguous tensor, in elements."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


def empty(type_: DType, shape: Sequence[int], strides: Sequence[int] | None = None) -> View:
    """A new tensor whose bytes are all 0xFF (NaN in every float type), so that an element left out shows."""
    storage = np.full(prod(shape) * type_.itemsize, 0xFF, np.uint8)
    return View(type_, tuple(shape), tuple(strides if strides is not None else row_major(shape)), 0, storage)
