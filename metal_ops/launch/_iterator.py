"""How PyTorch's TensorIterator walks a unary op: output layout, dimension order and coalescing.

The rules of aten/src/ATen/TensorIterator.cpp that decide which kernel runs and with which strides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from conformance.dtypes import DType
from metal_ops.launch._views import View, empty, row_major

INT32_LIMIT = 2**31 - 1


@dataclass(frozen=True)
class UnaryIterator:
    """The coalesced iteration: ``shape`` with the fastest dimension first, strides of output and input in bytes."""

    output: View
    input: View
    shape: tuple[int, ...]
    output_strides: tuple[int, ...]
    input_strides: tuple[int, ...]

    @property
    def numel(self) -> int:
        """Elements to compute."""
        return self.output.numel

    @property
    def contiguous(self) -> bool:
        """Whether one run of memory goes to one run of memory."""
        if self.numel == 1:
            return True
        return len(self.shape) == 1 and self.contiguous_inner

    @property
    def contiguous_inner(self) -> bool:
        """Whether the fastest dimension has unit stride in both operands."""
        sizes = (self.output.dtype.itemsize, self.input.dtype.itemsize)
        return bool(self.shape) and (self.output_strides[0], self.input_strides[0]) == sizes

    @property
    def indexes_32bit(self) -> bool:
        """Whether every byte offset fits in 32 bits; larger iterations are split by the host."""
        return all(
            sum((size - 1) * stride for size, stride in zip(self.shape, strides, strict=True)) <= INT32_LIMIT
            for strides in (self.output_strides, self.input_strides)
        )


def _comes_after(view: View, first: int, second: int) -> int:
    """Compare two dimensions by memory order: 1 if ``first`` is the slower, -1 the faster, 0 unknown."""
    a, b = view.strides[first], view.strides[second]
    if a == 0 or b == 0:
        return 0
    if a != b:
        return 1 if a > b else -1
    return 1 if view.shape[first] > view.shape[second] else 0


def memory_order(view: View) -> list[int]:
    """Dimensions of ``view``, fastest first.

    A stable insertion sort from the row-major order: broadcast dimensions (stride 0) cannot be compared, so they stay
    where they are relative to the others until a comparison decides.
    """
    order = list(reversed(range(len(view.shape))))
    for start in range(1, len(order)):
        moving = start
        for other in range(start - 1, -1, -1):
            comparison = _comes_after(view, order[other], order[moving])
            if comparison > 0:
                order[other], order[moving] = order[moving], order[other]
                moving = other
            elif comparison < 0:
                break
    return order


def _dense(view: View) -> bool:
    """Whether the view covers its memory exactly once, in some order of dimensions."""
    expected = 1
    for dim in sorted(range(len(view.shape)), key=lambda d: (view.strides[d], view.shape[d])):
        if view.shape[dim] == 1:
            continue
        if view.strides[dim] != expected:
            return False
        expected *= view.shape[dim]
    return True


_CHANNELS_LAST = (1, 3, 2, 0)
"""Dimensions of an image batch (N, C, H, W), fastest first, in the memory format channels_last."""


def _is_channels_last(view: View) -> bool:
    """Whether a 4-d view is contiguous in the format channels_last; strides of dimensions of one do not matter."""
    packed = _packed(view, _CHANNELS_LAST) if len(view.shape) == len(_CHANNELS_LAST) else ()
    return bool(packed) and all(
        size == 1 or stride == expected for size, stride, expected in zip(view.shape, view.strides, packed, strict=True)
    )


def _packed(view: View, order: Sequence[int]) -> tuple[int, ...]:
    """Strides without gaps for dimensions of the view's sizes, laid out in ``order``, fastest first."""
    strides, step = [0] * len(order), 1
    for dim in order:
        strides[dim] = step
        step *= max(view.shape[dim], 1)
    return tuple(strides)


def unary(source: View, result: DType) -> UnaryIterator:
    """Allocate the output of a unary op on ``source`` and lay out the iteration."""
    order = memory_order(source)
    if source.contiguous:
        strides = row_major(source.shape)
    elif _is_channels_last(source):
        strides = _packed(source, _CHANNELS_LAST)
    elif source.numel and _dense(source):
        strides = source.strides
    else:
        strides = _packed(source, order)
    return _coalesced(empty(result, source.shape, strides), source, order)


def _coalesced(output: View, source: View, order: list[int]) -> UnaryIterator:
    shape: list[int] = []
    out: list[int] = []
    into: list[int] = []
    for dim in order:
        size = source.shape[dim]
        steps = output.strides[dim] * output.dtype.itemsize, source.strides[dim] * source.dtype.itemsize
        if shape and _joins(shape[-1], (out[-1], into[-1]), size, steps):
            if shape[-1] == 1:
                out[-1], into[-1] = steps
            shape[-1] *= size
        else:
            shape.append(size)
            out.append(steps[0])
            into.append(steps[1])
    if not shape:  # a 0-d tensor is walked as one element
        shape, out, into = [1], [output.dtype.itemsize], [source.dtype.itemsize]
    return UnaryIterator(output, source, tuple(shape), tuple(out), tuple(into))


def _joins(size: int, steps: tuple[int, int], next_size: int, next_steps: tuple[int, int]) -> bool:
    """Whether a dimension continues the one before it in both operands."""
    if size == 1 or next_size == 1:
        return True
    return all(size * step == following for step, following in zip(steps, next_steps, strict=True))
