"""How PyTorch's TensorIterator walks any number of operands, given their output: order of dimensions and coalescing.

The rules of aten/src/ATen/TensorIterator.cpp, with the layout of an output that the iterator itself would allocate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from metal_ops.launch._iterator import dimension_order
from metal_ops.launch._layouts import contiguous_as_suggested, dense, expanded, packed_strides
from metal_ops.launch._views import View, row_major

INT32_LIMIT = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Walk:
    """A coalesced iteration: ``shape`` with the fastest dimension first; ``strides`` in bytes, an operand a tuple."""

    shape: tuple[int, ...]
    strides: tuple[tuple[int, ...], ...]
    itemsizes: tuple[int, ...]
    numel: int

    @property
    def contiguous(self) -> bool:
        """Whether every operand is one run of memory."""
        return self.numel == 1 or (len(self.shape) == 1 and self.contiguous_inner)

    @property
    def contiguous_inner(self) -> bool:
        """Whether the fastest dimension has unit stride in every operand."""
        return all(steps[0] == size for steps, size in zip(self.strides, self.itemsizes, strict=True))

    @property
    def indexes_32bit(self) -> bool:
        """Whether every byte offset fits in 32 bits; larger iterations are split by the host."""
        return self.numel <= INT32_LIMIT and all(
            sum((size - 1) * stride for size, stride in zip(self.shape, steps, strict=True)) <= INT32_LIMIT
            for steps in self.strides
        )


def walk(*operands: View) -> Walk:
    """The iteration over operands of one shape, the output first; broadcast operands have strides of 0."""
    first = operands[0]
    itemsizes = tuple(operand.dtype.itemsize for operand in operands)
    if all(operand.contiguous for operand in operands):
        return Walk((first.numel,), tuple((size,) for size in itemsizes), itemsizes, first.numel)
    steps = [[stride * size for stride in operand.strides] for operand, size in zip(operands, itemsizes, strict=True)]
    shape: list[int] = []
    strides: list[list[int]] = [[] for _ in operands]
    for dim in dimension_order(first.shape, steps):
        size = first.shape[dim]
        if shape and _joins(
            shape[-1], size, [(own[-1], given[dim]) for own, given in zip(strides, steps, strict=True)]
        ):
            if shape[-1] == 1:
                for own, given in zip(strides, steps, strict=True):
                    own[-1] = given[dim]
            shape[-1] *= size
        else:
            shape.append(size)
            for own, given in zip(strides, steps, strict=True):
                own.append(given[dim])
    return Walk(tuple(shape), tuple(map(tuple, strides)), itemsizes, first.numel)


def _joins(size: int, next_size: int, steps: Sequence[tuple[int, int]]) -> bool:
    """Whether a dimension continues the one before it in every operand."""
    return size == 1 or next_size == 1 or all(step * size == following for step, following in steps)


def output_strides(inputs: Sequence[View], shape: Sequence[int]) -> tuple[int, ...]:
    """Strides of an output of ``shape`` for ``inputs``, which broadcast to it, in elements."""
    if all(operand.shape == tuple(shape) for operand in inputs):
        if all(operand.contiguous for operand in inputs):
            return row_major(shape)
        if len(shape) == 4 and all(contiguous_as_suggested(operand, as_channels_last=True) for operand in inputs):
            return packed_strides(shape, (1, 3, 2, 0))
        if all(dense(operand) and operand.strides == inputs[0].strides for operand in inputs):
            return inputs[0].strides
    order = dimension_order(shape, [expanded(operand, shape).strides for operand in inputs])
    if order == sorted(order, reverse=True):
        return row_major(shape)
    strides, step = [0] * len(shape), 1
    for dim in order:
        strides[dim] = step
        step *= shape[dim]  # elsewhere PyTorch takes a size of zero for one
    return tuple(strides)
