"""How tensors lie in memory, as PyTorch's host code asks: memory formats, density, collapsed dimensions, index widths.

The definitions of c10/core/TensorImpl.cpp, c10/core/MemoryFormat.h and aten/src/ATen/TensorUtils.h.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from conformance.dtypes import DType
from metal_ops.launch._iterator import memory_order
from metal_ops.launch._views import View, empty, row_major

_CHANNELS_LAST = {4: (1, 3, 2, 0), 5: (1, 4, 3, 2, 0)}
"""By number of dimensions: the dimensions of an image batch in the format channels_last (or _3d), fastest first."""


def fits(view: View, limit: int) -> bool:
    """Whether the number of elements and every offset (in elements) are below ``limit``."""
    return view.numel < limit and view.extent <= limit


def dense(view: View) -> bool:
    """Whether the elements cover one run of memory exactly once, in whatever order of dimensions."""
    if view.contiguous:
        return True
    expected = 1
    for stride, size in sorted(zip(view.strides, view.shape, strict=True)):
        if size == 1:
            continue
        if stride != expected:
            return False
        expected *= size
    return True


def channels_last(view: View) -> bool:
    """Whether PyTorch suggests channels_last (or channels_last_3d) for what is made from the tensor.

    Sizes of one make some layouts ambiguous; those are taken for contiguous.
    """
    order = _CHANNELS_LAST.get(len(view.shape))
    if order is None or view.strides[1] == 0:
        return False
    smallest = 0
    for dim in order:
        size, stride = view.shape[dim], view.strides[dim]
        if size == 0 or stride < smallest or (dim == 0 and smallest == view.strides[1]):
            return False
        smallest = stride * size
    return True


def contiguous_as_suggested(view: View, *, as_channels_last: bool) -> bool:
    """Whether the tensor is contiguous in the memory format contiguous, or in channels_last (or _3d)."""
    if not as_channels_last:
        return view.contiguous
    order = _CHANNELS_LAST.get(len(view.shape))
    if order is None:
        return False
    expected = 1
    for dim in order:
        if view.shape[dim] != 1 and view.strides[dim] != expected:
            return False
        expected *= max(view.shape[dim], 1)
    return True


def empty_in_format(type_: DType, shape: Sequence[int], *, as_channels_last: bool) -> View:
    """A new tensor in the memory format contiguous, or in channels_last (or _3d)."""
    if not as_channels_last:
        return empty(type_, shape)
    strides, step = [0] * len(shape), 1
    for dim in _CHANNELS_LAST[len(shape)]:
        strides[dim] = step
        step *= shape[dim]  # PyTorch takes a size of zero for one in every format but these
    return empty(type_, shape, strides)


def empty_like(view: View) -> View:
    """A new tensor of the same type and shape: with the same strides if these are dense, else in their order."""
    strides = view.strides if dense(view) else packed_strides(view.shape, memory_order(view))
    return empty(view.dtype, view.shape, strides)


def packed_strides(shape: Sequence[int], order: Sequence[int]) -> tuple[int, ...]:
    """Strides without gaps for ``shape`` laid out in ``order``, fastest dimension first."""
    strides, step = [0] * len(shape), 1
    for dim in order:
        strides[dim] = step
        step *= max(shape[dim], 1)
    return tuple(strides)


def narrowed(view: View, dim: int, start: int, length: int) -> View:
    """Elements ``start`` to ``start + length`` of a dimension; raises RuntimeError if there are none such."""
    if length < 0 or start < 0 or start + length > view.shape[dim]:
        raise RuntimeError(
            f"narrow: start {start} and length {length} exceed dimension {dim} of size {view.shape[dim]}"
        )
    shape = (*view.shape[:dim], length, *view.shape[dim + 1 :])
    return replace(view, shape=shape, offset=view.offset + start * view.strides[dim])


def permuted(view: View, order: Sequence[int]) -> View:
    """The same elements with dimensions in another order."""
    return replace(view, shape=tuple(view.shape[d] for d in order), strides=tuple(view.strides[d] for d in order))


def expanded(view: View, shape: Sequence[int]) -> View:
    """The tensor broadcast to ``shape``; raises RuntimeError if it cannot be."""
    missing = len(shape) - len(view.shape)
    if missing < 0 or any(size not in (1, wanted) for size, wanted in zip(view.shape, shape[missing:], strict=True)):
        raise RuntimeError(f"a tensor of shape {view.shape} cannot be broadcast to {tuple(shape)}")
    steps = [
        step if size == wanted else 0
        for size, step, wanted in zip(view.shape, view.strides, shape[missing:], strict=True)
    ]
    return replace(view, shape=tuple(shape), strides=(*[0] * missing, *steps))


def collapsed(shape: Sequence[int], strides: Sequence[int]) -> list[tuple[int, int]]:
    """Blocks (size, stride) of dimensions that can be walked as one, slowest first; dimensions of one are left out."""
    blocks: list[tuple[int, int]] = []
    for size, stride in zip(shape, strides, strict=True):
        if size == 1:
            continue
        if blocks and blocks[-1][1] == size * stride:
            blocks[-1] = (blocks[-1][0] * size, stride)
        else:
            blocks.append((size, stride))
    return blocks


def flattened(view: View, first: int, last: int) -> View:
    """A contiguous tensor with dimensions ``first`` to ``last`` made one."""
    shape = (*view.shape[:first], prod(view.shape[first : last + 1]), *view.shape[last + 1 :])
    return replace(view, shape=shape, strides=row_major(shape))


def wrapped(dim: int, rank: int) -> int:
    """A dimension counted from the front; raises IndexError, as c10's ``maybe_wrap_dim``, for one that is not there."""
    size = max(rank, 1)
    if not -size <= dim < size:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-size}, {size - 1}], but got {dim})")
    return dim % size
