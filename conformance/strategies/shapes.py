"""Shapes: small ones of any rank, runs either side of a vector's length, large ones, and those that broadcast."""

from __future__ import annotations

from functools import cache
from math import prod

from hypothesis import strategies as st

from conformance.strategies.rarely import one_in

Shape = tuple[int, ...]

LARGE = 1 << 18
"""Where elementwise kernels of GPU backends change how many elements a thread takes, and 32-bit grids are split."""

_RUNS = (15, 16, 17, 31, 32, 33)
"""Lengths of the innermost dimension either side of where a kernel handles it as one vector."""

_USUAL = 128
"""One tensor of so many is large: it costs as much as they do."""

_USUAL_STRIDED = 48
"""One strided tensor of so many has a dimension about 2^15 or 2^16, where narrow indices end; sweeps are contiguous."""

_LOW_RANK = 24
"""Each rank up to five is drawn for so many small tensors where two have six, two seven and two eight dimensions."""

_EQUAL = 5
"""Of eight cases with several operands so many have operands of one shape."""


@cache
def shapes(min_rank: int) -> st.SearchStrategy[Shape]:
    """Small shapes of up to eight dimensions, runs about 16 and 32, and rarely a large tensor."""
    sizes = [st.tuples(*[st.integers(1, 7)] * rank) for rank in range(min_rank, 6)] * _LOW_RANK
    sizes += [st.tuples(*[st.integers(1, 2)] * rank) for rank in (6, 7, 8)] * 2
    # By an index of our own: a union would drop repeated strategies.
    small = st.integers(0, len(sizes) - 1).flatmap(sizes.__getitem__)
    flat = st.integers(1, 200).map(lambda size: (size,))
    with_run = st.tuples(st.integers(1, 5), st.integers(1, 5), st.sampled_from(_RUNS))
    image = st.tuples(st.integers(1, 3), st.integers(1, 5), st.integers(1, 6), st.integers(1, 6))
    empty = st.sampled_from(((0,), (3, 0), (0, 2, 3)))
    usual = st.one_of(small, flat, with_run, with_run.map(lambda run: run[1:]), image, empty)
    large = st.sampled_from(((LARGE - 1,), (LARGE,), (LARGE + 1,), (257, 1021), (64, 65, 64)))
    if min_rank:
        long = st.sampled_from(((1 << 15) - 1, 1 << 15, (1 << 15) + 1, (1 << 16) - 1, 1 << 16, (1 << 16) + 1))
        usual = one_in(
            _USUAL_STRIDED, long.flatmap(lambda size: st.sampled_from(((size,), (1, size), (size, 1)))), usual
        )
    return one_in(_USUAL, large, usual)


def is_large(shape: Shape) -> bool:
    """Whether a tensor is so large that its values must be cheap to make."""
    return prod(shape) >= LARGE // 2


@st.composite
def broadcast(draw: st.DrawFn, shape: Shape, count: int, whole: int | None = None) -> tuple[Shape, ...]:
    """Shapes of ``count`` operands that broadcast to at most ``shape``; operand ``whole``, if given, has all of it.

    Mostly all have it. Else each has some sizes of 1, or lacks leading dimensions, or all of them, or is whole.
    """
    if count == 1 or draw(st.integers(0, 7)) < _EQUAL:
        return (shape,) * count
    return tuple(shape if position == whole else draw(_part(shape)) for position in range(count))


@cache
def _part(shape: Shape) -> st.SearchStrategy[Shape]:
    rank = len(shape)
    masked = st.integers(0, (1 << rank) - 1).map(
        lambda mask: tuple(1 if mask >> dim & 1 else size for dim, size in enumerate(shape))
    )
    kinds = [st.just(shape), masked, st.tuples(masked, st.integers(0, rank)).map(lambda cut: cut[0][cut[1] :])]
    return st.integers(0, 3).flatmap(lambda kind: kinds[kind] if kind < 3 else st.just(()))
