"""Cases of elementwise ops with one tensor."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from hypothesis import strategies as st

from conformance.case import Case, TensorSpec
from conformance.dtypes import dtype as dtype_of
from conformance.strategies.layouts import layouts
from conformance.strategies.rarely import one_in
from conformance.strategies.values import values

_LARGE = 1 << 18
"""Where elementwise kernels of GPU backends change how many elements a thread takes, and 32-bit grids are split."""

_RUNS = (15, 16, 17, 31, 32, 33)
"""Lengths of the innermost dimension either side of where a kernel handles it as one vector."""

_USUAL = 128
"""One tensor of so many is large: it costs as much as they do."""

_USUAL_STRIDED = 48
"""One strided tensor of so many has a dimension about 2^15 or 2^16, where narrow indices end; sweeps are contiguous."""


def unary_cases(
    op: str,
    dtype: str,
    property: str,
    *,
    params: Mapping[str, st.SearchStrategy[Any]] | None = None,
    domain: tuple[float, float] | None = None,
) -> st.SearchStrategy[Case]:
    """Cases of an elementwise op with one tensor of ``dtype``.

    Parameters
    ----------
    op, dtype, property
        As in the case. The property ``layout`` draws strided tensors only.
    params
        A strategy of JSON values for each parameter that is passed by keyword.
    domain
        The closed interval in which the op is defined; its ends are drawn more often.
    """
    dtype_of(dtype)
    strided = True if property == "layout" else None
    shapes = _shapes(0 if strided is None else 1)
    recipes = values(dtype, domain=domain, elementwise=True)

    @st.composite
    def case(draw: st.DrawFn) -> Case:
        shape = draw(shapes)
        layout = draw(layouts(len(shape), strided=strided))
        recipe = draw(recipes)
        drawn = {name: draw(strategy) for name, strategy in (params or {}).items()}
        return Case(op, dtype, property, (TensorSpec(dtype, shape, layout, recipe),), drawn)

    return case()


@cache
def _shapes(min_rank: int) -> st.SearchStrategy[tuple[int, ...]]:
    """Small shapes of up to five dimensions, runs about 16 and 32, and rarely a large tensor."""
    sizes = [st.tuples(*[st.integers(1, 7)] * rank) for rank in range(min_rank, 6)]
    small = st.integers(0, len(sizes) - 1).flatmap(sizes.__getitem__)
    flat = st.integers(1, 200).map(lambda size: (size,))
    with_run = st.tuples(st.integers(1, 5), st.integers(1, 5), st.sampled_from(_RUNS))
    image = st.tuples(st.integers(1, 3), st.integers(1, 5), st.integers(1, 6), st.integers(1, 6))
    empty = st.sampled_from(((0,), (3, 0), (0, 2, 3)))
    usual = st.one_of(small, flat, with_run, with_run.map(lambda sizes: sizes[1:]), image, empty)
    large = st.sampled_from(((_LARGE - 1,), (_LARGE,), (_LARGE + 1,), (257, 1021), (64, 65, 64)))
    if min_rank:
        long = st.sampled_from(((1 << 15) - 1, 1 << 15, (1 << 15) + 1, (1 << 16) - 1, 1 << 16, (1 << 16) + 1))
        usual = one_in(
            _USUAL_STRIDED, long.flatmap(lambda size: st.sampled_from(((size,), (1, size), (size, 1)))), usual
        )
    return one_in(_USUAL, large, usual)
