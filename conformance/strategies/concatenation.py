"""Cases of ops that join a list of tensors along a dimension."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from conformance.case import Case, TensorSpec
from conformance.dtypes import dtype as dtype_of
from conformance.strategies.layouts import layouts
from conformance.strategies.rarely import one_in
from conformance.strategies.values import cheap, values

_MANY = 24
"""One list of so many has more tensors than one launch of a kernel takes; one of so many has long tensors."""

_LEGACY = 12
"""One list of so many has a tensor of shape (0,), which torch leaves out whatever the rank of the others."""

_MIXED = 4
"""One tensor of so many has an element type of its own, where types may be mixed."""


def cat_cases(op: str, dtype: str, property: str, *, dtypes: tuple[str, ...] = ()) -> st.SearchStrategy[Case]:
    """Cases of ``torch.cat``: mostly one to four tensors that differ in one dimension only, empty ones among them.

    ``dtypes`` are the element types that tensors after the first may have beside ``dtype``. With the property
    ``layout`` at least one tensor is strided.
    """
    for name in (dtype, *dtypes):
        dtype_of(name)
    must_stride = property == "layout"
    counts = one_in(_MANY, st.integers(5, 20), st.integers(1, 4))
    long = st.sampled_from(((1 << 15) - 1, 1 << 15, 1 << 16))
    lengths = one_in(_MANY, st.just(long), st.just(st.integers(0, 6)))

    @st.composite
    def case(draw: st.DrawFn) -> Case:
        shape = draw(st.integers(1, 5).flatmap(lambda rank: st.tuples(*[st.integers(1, 4)] * rank)))
        dim, rank, count = draw(st.integers(0, len(shape) - 1)), len(shape), draw(counts)
        sizes = draw(lengths)
        shape = (1,) * rank if sizes is long else shape
        strided = draw(st.integers(0, count - 1)) if must_stride else None
        left_out = draw(one_in(_LEGACY, st.integers(0, count - 1), st.none())) if count > 1 else None
        specs = []
        for position in range(count):
            own = draw(st.sampled_from((dtype, *dtypes))) if position and draw(_mixed(dtypes)) else dtype
            if position == left_out and position != strided:
                specs.append(TensorSpec(own, (0,)))
                continue
            size = (*shape[:dim], draw(sizes), *shape[dim + 1 :])
            layout = draw(layouts(rank, strided=True if position == strided else None))
            recipe = draw(values(own, elementwise=True))
            recipe = cheap(recipe, own) if sizes is long else recipe
            specs.append(TensorSpec(own, size, layout, recipe))
        params: dict[str, Any] = {"dim": draw(st.sampled_from((dim, dim - rank)))}
        return Case(op, dtype, property, tuple(specs), {} if params["dim"] == 0 and draw(st.booleans()) else params)

    return case()


def _mixed(dtypes: tuple[str, ...]) -> st.SearchStrategy[bool]:
    return one_in(_MIXED, st.just(True), st.just(False)) if dtypes else st.just(False)
