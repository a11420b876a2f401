"""How a logical tensor lies in memory: the order of its dimensions, gaps, stride 0, offset and guards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conformance.dtypes import DType
from conformance.dtypes import dtype as dtype_of
from conformance.formats import component, poison_bits
from conformance.worker.protocol import Tensor

GUARD = 16
"""Elements of poison behind a tensor, unless the layout says otherwise."""


@dataclass(frozen=True)
class Layout:
    """A memory layout; the default is contiguous at offset 0.

    Attributes
    ----------
    order
        The dimensions from the outermost in memory to the innermost; empty means their own order. ``(0, 2, 3, 1)``
        is channels_last, ``(1, 0)`` a transposed matrix.
    steps
        A dimension of step ``s`` uses every ``s``-th place (``x[::s]``); empty means 1 for all.
    pads
        Places left unused behind each dimension (``x[:, :n]`` of a wider base); empty means 0 for all.
    expanded
        Dimensions of stride 0.
    offset
        Elements of poison before the tensor: its storage offset and its leading guard.
    guard
        Elements of poison behind it.
    """

    order: tuple[int, ...] = ()
    steps: tuple[int, ...] = ()
    pads: tuple[int, ...] = ()
    expanded: tuple[int, ...] = ()
    offset: int = 0
    guard: int = GUARD

    @property
    def is_contiguous(self) -> bool:
        """Whether the layout is dense and row-major (any offset)."""
        in_order = self.order == tuple(range(len(self.order)))
        return in_order and all(s == 1 for s in self.steps) and not any(self.pads) and not self.expanded

    def check(self, shape: Sequence[int]) -> None:
        """Raise ValueError if the layout does not fit a tensor of ``shape``."""
        rank = len(shape)
        if self.order and sorted(self.order) != list(range(rank)):
            raise ValueError(f"layout order {self.order} is no permutation of the {rank} dimensions of {tuple(shape)}")
        for name in ("steps", "pads"):
            given: tuple[int, ...] = getattr(self, name)
            if given and len(given) != rank:
                raise ValueError(f"layout {name} {given} has not one entry for each dimension of {tuple(shape)}")
        if any(step < 1 for step in self.steps) or any(pad < 0 for pad in self.pads):
            raise ValueError(f"layout steps {self.steps} must be at least 1 and pads {self.pads} at least 0")
        if any(not 0 <= dim < rank for dim in self.expanded):
            raise ValueError(f"layout expands dimensions {self.expanded} of a tensor with {rank}")
        if self.offset < 0 or self.guard < 0:
            raise ValueError(f"layout offset {self.offset} and guard {self.guard} must be at least 0")

    def strides(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The strides of a tensor of ``shape``, in elements."""
        return self._places(shape)[0]

    def _places(self, shape: Sequence[int]) -> tuple[tuple[int, ...], int]:
        """The strides, and how many elements the tensor spans with its gaps."""
        strides = [0] * len(shape)
        running = 1
        for dim in reversed(self.order or range(len(shape))):
            if dim in self.expanded:
                continue
            step = self.steps[dim] if self.steps else 1
            strides[dim] = running * step
            running *= max(shape[dim], 1) * step + (self.pads[dim] if self.pads else 0)
        return tuple(strides), running

    def stored_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """``shape`` with size 1 where the stride is 0: the elements that exist in memory."""
        return tuple(min(size, 1) if dim in self.expanded else size for dim, size in enumerate(shape))

    def place(self, values: NDArray[Any], shape: tuple[int, ...], dtype: DType) -> Tensor:
        """Lay ``values`` (of the stored shape) out as a tensor of ``shape`` in a poisoned storage."""
        strides, span = self._places(shape)
        poison = np.full((self.offset + span + self.guard) * component(dtype).count, 0, component(dtype).unsigned)
        poison[:] = poison_bits(dtype)
        storage = poison.view(dtype.numpy)
        stored = self.stored_shape(shape)
        if prod(stored):
            window = storage[self.offset :]
            target = np.lib.stride_tricks.as_strided(window, stored, [s * dtype.itemsize for s in strides])
            target[...] = values.reshape(stored)
        return Tensor(dtype.name, shape, strides, self.offset, storage.tobytes())

    def to_json(self) -> dict[str, Any]:
        """Give the layout as JSON, without what has its default."""
        described = {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) != f.default}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in described.items()}

    @classmethod
    def from_json(cls, described: Mapping[str, Any]) -> Layout:
        """Read what :meth:`to_json` wrote; raises ValueError for an unknown field."""
        allowed = [f.name for f in fields(cls)]
        if unknown := set(described) - set(allowed):
            raise ValueError(f"layout has unknown fields {sorted(unknown)}; allowed: {', '.join(allowed)}")
        read: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else int(v) for k, v in described.items()}
        return cls(**read)


def lies_within(tensor: Tensor) -> bool:
    """Whether every element of a tensor lies in its storage."""
    if not prod(tensor.shape):
        return True
    reach = [(size - 1) * stride for size, stride in zip(tensor.shape, tensor.strides, strict=True)]
    first, last = (tensor.offset + sum(part for part in reach if part * sign > 0) for sign in (-1, 1))
    return first >= 0 and (last + 1) * dtype_of(tensor.dtype).itemsize <= len(tensor.storage)


def view_of(tensor: Tensor) -> NDArray[Any]:
    """The logical tensor as a read-only NumPy view of its storage (bfloat16 through ml_dtypes).

    Raises
    ------
    ValueError
        If it reaches past its storage: NumPy would read whatever lies there.
    """
    dtype = dtype_of(tensor.dtype)
    if not lies_within(tensor):
        raise ValueError(
            f"{tensor.dtype}{list(tensor.shape)} with strides {tensor.strides} at offset {tensor.offset} reaches past "
            f"its storage of {len(tensor.storage)} bytes"
        )
    flat = np.frombuffer(tensor.storage, dtype.numpy)[tensor.offset :]
    byte_strides = [stride * dtype.itemsize for stride in tensor.strides]
    if not prod(tensor.shape):
        return np.zeros(tensor.shape, dtype.numpy)
    return np.lib.stride_tricks.as_strided(flat, tensor.shape, byte_strides, writeable=False)
