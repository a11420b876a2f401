"""The cases with which ops that have no ladder are measured: small to large, dense, of moderate numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from conformance.case import Case, TensorSpec
from conformance.ladder import within

Shape = tuple[int, ...]

ROWS: tuple[Shape, ...] = ((32, 256), (1, 50257), (1024, 1024))
"""A few short rows, one as long as a vocabulary, and many."""

IMAGES: tuple[Shape, ...] = ((1, 4, 16, 16), (1, 16, 64, 64), (1, 16, 256, 256))

SIZES: tuple[Shape, ...] = ((1 << 10,), (1 << 16,), (1 << 20,))


def alone(shapes: Sequence[Shape]) -> list[tuple[Shape, ...]]:
    """One operand of each shape."""
    return [(shape,) for shape in shapes]


def workloads(
    op: str,
    shapes: Sequence[tuple[Shape, ...]],
    params: Mapping[str, Any] | None = None,
    *,
    first: str | None = None,
) -> Callable[[str], list[Case]]:
    """One case for each of ``shapes``, which are those of the operands.

    ``first`` is the element type of the first operand where that has one of its own.
    """

    def cases(dtype: str) -> list[Case]:
        return [Case(op, dtype, "measure", _specs(dtype, each), dict(params or {})) for each in shapes]

    def _specs(dtype: str, each: tuple[Shape, ...]) -> tuple[TensorSpec, ...]:
        types = [first or dtype, *[dtype] * (len(each) - 1)]
        return tuple(
            TensorSpec(name, shape, values=within(name, None, seed))
            for seed, (name, shape) in enumerate(zip(types, each, strict=True), 1)
        )

    return cases
