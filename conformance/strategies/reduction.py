"""Cases of ops that reduce or normalise along one dimension or several, such as a softmax, a sum or a norm.

Kernels of such ops change with the length of the dimension, the number of rows and what is contiguous. Each regime
below sits on both sides of such a threshold, so that a few examples reach every kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Any

from hypothesis import strategies as st

from conformance.case import Case, TensorSpec
from conformance.dtypes import dtype as dtype_of
from conformance.formats import component
from conformance.layout import Layout
from conformance.strategies.layouts import layouts
from conformance.strategies.rarely import one_in
from conformance.strategies.values import values
from conformance.values import Special

_VOCABULARIES = (50257, 128256, 151936, 201088)
_RARE = 32
"""One case of so many in a regime is large."""

_EMPTY = 8
"""One small tensor of so many has no elements."""

_LISTED = 3
"""One case of so many passes no dimension, or one in a list, where there is but one."""

_TYPED = 4
"""One case of so many asks for an element type of the result."""

_MASKED = 6
"""One case of so many has a slice of one value throughout."""

Shaped = tuple[tuple[int, ...], int, Layout]
"""Shape, reduced dimension, layout."""


def reduction_cases(
    op: str,
    dtype: str,
    property: str,
    *,
    dim_param: str = "dim",
    several: bool = False,
    keepdim: bool = False,
    dtypes: Sequence[str] = (),
) -> st.SearchStrategy[Case]:
    """Cases of an op with one tensor that works along a dimension, or several.

    Parameters
    ----------
    op, dtype, property
        As in the case. The property ``layout`` draws strided tensors only.
    dim_param
        The keyword of the dimension, which is any in [-rank, rank).
    several
        Whether the op also takes a list of dimensions, or all of them where None is given or nothing.
    keepdim
        Whether the op takes a parameter ``keepdim``.
    dtypes
        Element types that the parameter ``dtype`` of the op may ask for; without any, it is not passed.
    """
    # Weighted so that 25 cases reach about all kernels: short rows, whole columns, split rows, split columns.
    rows, whole = [*[_small()] * 3, _rows()], [_inner(), _long_rows()]
    regimes = [*rows, *whole, *whole, *[_chunked_rows()] * 3, *[_strided_split()] * 4]
    if property == "layout":
        regimes = [strategy.filter(_not_contiguous) for strategy in (_small(), _inner(), _strided_split())]

    regime = st.integers(0, len(regimes) - 1).flatmap(regimes.__getitem__)
    recipes = values(dtype)

    @st.composite
    def case(draw: st.DrawFn) -> Case:
        shape, dim, layout = draw(regime)
        recipe = draw(recipes)
        recipe = replace(recipe, specials=(*recipe.specials, *draw(_whole_slices(dtype, shape, dim))))
        rank = max(len(shape), 1)
        passed: Any = dim - rank if draw(st.booleans()) else dim
        params = {dim_param: draw(_several(passed, len(shape))) if several else passed}
        if keepdim and draw(st.booleans()):
            params["keepdim"] = draw(st.booleans())
        elif params[dim_param] is None and draw(st.booleans()):
            params = {}
        if dtypes and draw(st.integers(0, _TYPED - 1)) == _TYPED - 1:
            params["dtype"] = f"torch.{draw(st.sampled_from(tuple(dtypes)))}"
        return Case(op, dtype, property, (TensorSpec(dtype, shape, layout, recipe),), params)

    return case()


def _several(dim: int, rank: int) -> st.SearchStrategy[Any]:
    """Mostly the one dimension, else it in a list, all dimensions, or a list of some, from the front or the end."""
    everything = st.sampled_from((None, [dim]))
    if rank < 2:
        return one_in(_LISTED, everything, st.just(dim))
    some = st.lists(st.integers(0, rank - 1), min_size=1, max_size=rank, unique=True)
    signed = st.tuples(some, st.integers(0, 1)).map(lambda drawn: [one - rank * drawn[1] for one in drawn[0]])
    kinds = [st.just(dim), st.just(dim), everything, signed]
    return st.integers(0, len(kinds) - 1).flatmap(kinds.__getitem__)


def _whole_slices(dtype: str, shape: tuple[int, ...], dim: int) -> st.SearchStrategy[tuple[Special, ...]]:
    """Now and then one value throughout a slice, as a mask leaves rows of attention that nothing is seen from.

    A slice is a row, or all columns of a block where others lie inside the dimension. What is beside it stays as it is,
    so that a kernel that carries something over from one row to the next is seen.
    """
    length = prod(shape[dim:])
    slices = prod(shape[:dim])
    numbers = ("-inf", "-inf", "inf", "nan") if component(dtype_of(dtype)).is_float else ("0", "1")
    masked = st.tuples(st.integers(0, max(slices - 1, 0)), st.sampled_from(numbers))
    nothing: st.SearchStrategy[tuple[Special, ...]] = st.just(())
    return one_in(_MASKED, masked.map(lambda drawn: ((drawn[0] * length, length, drawn[1]),)), nothing)


def _not_contiguous(shaped: Shaped) -> bool:
    return not shaped[2].is_contiguous


def _last(shape: tuple[int, ...]) -> st.SearchStrategy[Shaped]:
    """A contiguous tensor, reduced along its last dimension."""
    return st.sampled_from((0, 1, 4)).map(lambda offset: (shape, len(shape) - 1, Layout(offset=offset)))


def _rows_of(rows: Sequence[int], lengths: Sequence[int]) -> st.SearchStrategy[Shaped]:
    """Contiguous rows: one row also as a tensor of one dimension, several also as one of three."""
    pairs = st.tuples(st.sampled_from(rows), st.sampled_from(lengths), st.booleans())
    return pairs.map(_row_shape).flatmap(_last)


def _row_shape(drawn: tuple[int, int, bool]) -> tuple[int, ...]:
    rows, length, other = drawn
    if not other:
        return rows, length
    return (length,) if rows == 1 else (1, rows, length)


@st.composite
def _small(draw: st.DrawFn) -> Shaped:
    """Up to five dimensions of a few elements, any dimension, any layout."""
    shape = draw(_SMALL_SHAPES)
    dim = draw(st.integers(0, max(len(shape) - 1, 0)))
    return shape, max(len(shape) - 1 - dim, 0), draw(layouts(len(shape)))


# By rank, each as often: lists of any length are mostly short.
_SIZES = st.integers(0, 5).flatmap(lambda rank: st.tuples(*[st.integers(1, 9 if rank < 4 else 5)] * rank))
_SMALL_SHAPES = one_in(_EMPTY, st.tuples(_SIZES, st.integers(0, 5)).map(lambda drawn: _emptied(*drawn)), _SIZES)


def _emptied(shape: tuple[int, ...], place: int) -> tuple[int, ...]:
    """The shape with a size of 0 at ``place``, or behind the last."""
    return (*shape[:place], 0, *shape[place + 1 :])


def _rows() -> st.SearchStrategy[Shaped]:
    """Contiguous rows that one SIMD group can take; rarely so many that longer rows are taken that way as well."""
    usual = _rows_of((1, 2, 7, 8, 9, 17), (*range(1, 34), 63, 64, 65, 100, 127, 128, 129, 511, 512, 1023, 1024))
    return one_in(_RARE, _rows_of((127, 128, 129), (1025, 2047, 2048)), usual)


def _long_rows() -> st.SearchStrategy[Shaped]:
    """Contiguous rows too long for a SIMD group and too short or too many to be split; rarely many of them."""
    usual = _rows_of((1, 2, 3, 5), (1025, 1026, 1536, 2047, 2048))
    return one_in(2 * _RARE, _rows_of((257, 512), (2049, 2050)), usual)


def _chunked_rows() -> st.SearchStrategy[Shaped]:
    """Few contiguous rows that are split into chunks; rarely as long as a vocabulary or as many as 256."""
    usual = _rows_of((1, 2, 3), (2049, 2050, 4095, 4096, 4097, 6145, 8193))
    rare = st.one_of(_rows_of((1,), _VOCABULARIES), _rows_of((255, 256), (2049, 2051)))
    return one_in(2 * _RARE, rare, usual)


@st.composite
def _inner(draw: st.DrawFn) -> Shaped:
    """A dimension with others inside it, whose product is either side of a threadgroup's width."""
    outer = draw(st.integers(1, 3))
    length = draw(st.integers(1, 40))
    inner = draw(st.sampled_from((1, 2, 3, 31, 32, 33, 63, 64, 65)))
    shape = (outer, length, inner)
    return shape, 1, draw(layouts(len(shape)))


@st.composite
def _strided_split(draw: st.DrawFn) -> Shaped:
    """A long dimension with few others inside it, so that strided kernels split it.

    The fewer the columns, the longer the dimension must be: a column of its own has up to 256 threads of 16 elements.
    """
    shape, dim = draw(
        st.sampled_from(
            (
                ((8192, 1), 0),
                ((8193, 2), 0),
                ((1, 8200, 1), 1),
                ((2, 8192), 1),
                ((1024, 31), 0),
                ((1025, 32), 0),
                ((1024, 33), 0),
                ((1, 1024, 64), 1),
                ((1027, 65), 0),
            )
        )
    )
    if shape[dim + 1 :] in ((), (1,)):  # a dense column would count as a row
        return shape, dim, Layout(steps=tuple(2 if d == dim else 1 for d in range(len(shape))))
    plain = st.just(Layout())
    padded = st.just(Layout(pads=tuple(3 if d == len(shape) - 1 else 0 for d in range(len(shape)))))
    return shape, dim, draw(st.one_of(plain, padded))
