"""Cases whose result is stored in a tensor that the caller provides."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from hypothesis import assume
from hypothesis import strategies as st

from conformance.case import Case, TensorSpec
from conformance.dtypes import BY_NAME
from conformance.expectation import results_of
from conformance.layout import Layout
from conformance.strategies.layouts import layouts
from conformance.strategies.rarely import one_in
from conformance.values import Values

if TYPE_CHECKING:
    from conformance.op import Op

_NO_SIZE = 12
"""One tensor of so many has no elements yet, and must be resized."""

_LEFT_OUT = ("float64", "complex128", "float8_e4m3fn")
"""Types that only a CPU has; and one without infinity, of which nobody says what an overflow becomes there."""

_UNSIZED = one_in(_NO_SIZE, st.just(True), st.just(False))

_BEFORE = Values("choice", params={"values": ["0", "1"]})
"""What the tensor holds before: numbers, so that an element that is not written to is a number, and wrong."""


def with_out(op: Op, cases: st.SearchStrategy[Case]) -> st.SearchStrategy[Case]:
    """The cases of ``cases`` with one result, each with a tensor for it: a layout and an element type of its own.

    Every type to which torch casts the result is drawn, half of the time the result's own. The tensor overlaps with
    nothing, itself included, which torch would refuse.
    """

    @st.composite
    def case(draw: st.DrawFn) -> Case:
        forward = draw(cases)
        results = results_of(op, forward)
        assume(results is not None and len(results) == 1)
        assert results is not None
        dtype, shape = results[0]
        own = draw(_own(dtype))
        if draw(_UNSIZED):
            return replace(forward, out=TensorSpec(own, (0,), Layout(guard=0), _BEFORE))
        return replace(forward, out=TensorSpec(own, shape, draw(_not_expanded(len(shape))), _BEFORE))

    return case()


@cache
def _own(dtype: str) -> st.SearchStrategy[str]:
    return st.sampled_from(castable(dtype)) | st.just(dtype)


@cache
def _not_expanded(rank: int) -> st.SearchStrategy[Layout]:
    return layouts(rank).filter(lambda layout: not layout.expanded)


@cache
def castable(dtype: str) -> tuple[str, ...]:
    """The other element types to which torch casts a result of ``dtype``, of those that devices have."""
    import torch

    source = getattr(torch, dtype)
    others = [name for name in BY_NAME if name != dtype and name not in _LEFT_OUT]
    return tuple(name for name in others if torch.can_cast(source, getattr(torch, name))) or (dtype,)
