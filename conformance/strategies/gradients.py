"""Cases with a backward: which operands need a gradient, and what comes in for each result."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from hypothesis import assume
from hypothesis import strategies as st

from conformance.case import Case, TensorSpec, differentiable, ones
from conformance.expectation import Result, results_of
from conformance.strategies.layouts import layouts
from conformance.strategies.shapes import is_large
from conformance.strategies.values import cheap, incoming_values

if TYPE_CHECKING:
    from conformance.op import Op


def with_gradients(op: Op, cases: st.SearchStrategy[Case]) -> st.SearchStrategy[Case]:
    """The cases of ``cases`` that have a backward, with some operands that need a gradient.

    Any subset of the differentiable operands but the empty one; all come first. Each result is given an incoming
    gradient of its shape and element type, by torch's rules, with a layout and values of its own: bugs are known of
    gradients that are expanded, permuted, not all ones, tiny or large.
    """

    @st.composite
    def case(draw: st.DrawFn) -> Case:
        forward = draw(cases)
        operands = _differentiable(op, forward)
        assume(operands)
        results = results_of(op, forward)
        assume(results is not None and any(differentiable(dtype) for dtype, _ in results))
        assert results is not None
        without = draw(st.integers(0, 2 ** len(operands) - 2))
        wanted = tuple(position for bit, position in enumerate(operands) if not without >> bit & 1)
        gradients = tuple(draw(_incoming(op, result)) for result in results)
        return replace(forward, requires_grad=wanted, gradients=gradients)

    return case()


def _differentiable(op: Op, case: Case) -> tuple[int, ...]:
    """The positions of the tensors that the op may be differentiated by."""
    first = len(case.tensors) - len(case.named)
    inert = {first + place for place, name in enumerate(case.named) if name in op.inert}
    return tuple(position for position in case.differentiable() if position not in inert)


def _incoming(op: Op, result: Result) -> st.SearchStrategy[TensorSpec]:
    dtype, shape = result
    if not differentiable(dtype):
        return st.just(ones(dtype, shape))
    return st.builds(
        lambda layout, recipe: TensorSpec(dtype, shape, layout, cheap(recipe, dtype) if is_large(shape) else recipe),
        layouts(len(shape))
        if op.gradient is None or op.gradient.layouts is None
        else op.gradient.layouts(dtype, shape),
        incoming_values(dtype),
    )
