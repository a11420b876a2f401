"""The order in which PyTorch walks dimensions: ``reorder_dimensions`` of aten/src/ATen/TensorIterator.cpp."""

from __future__ import annotations

from collections.abc import Sequence

from metal_ops.launch._views import View


def dimension_order(shape: Sequence[int], strides: Sequence[Sequence[int]]) -> list[int]:
    """Dimensions, fastest first, for operands of these strides, the output first.

    A stable insertion sort from the row-major order, decided by the first operand that can: broadcast dimensions
    (stride 0) cannot be compared, so they stay where they are relative to the others until a comparison decides.
    """
    order = list(range(len(shape) - 1, -1, -1))
    for start in range(1, len(order)):
        moving = start
        for other in range(start - 1, -1, -1):
            comparison = _slower(shape, strides, order[other], order[moving])
            if comparison > 0:
                order[other], order[moving] = order[moving], order[other]
                moving = other
            elif comparison < 0:
                break
    return order


def _slower(shape: Sequence[int], strides: Sequence[Sequence[int]], first: int, second: int) -> int:
    """Compare two dimensions by memory order: 1 if ``first`` is the slower, -1 the faster, 0 unknown."""
    for steps in strides:
        a, b = steps[first], steps[second]
        if a == 0 or b == 0:
            continue
        if a != b:
            return 1 if a > b else -1
        if shape[first] > shape[second]:
            return 1
    return 0


def memory_order(view: View) -> list[int]:
    """Dimensions of one tensor, fastest first."""
    return dimension_order(view.shape, [view.strides])
