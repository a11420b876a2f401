"""Cases of elementwise ops with any number of operands, which broadcast."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from conformance.case import Case, TensorSpec
from conformance.dtypes import dtype as dtype_of
from conformance.layout import Layout
from conformance.strategies.layouts import layouts
from conformance.strategies.numbers import numbers
from conformance.strategies.shapes import Shape, broadcast, is_large, shapes
from conformance.strategies.values import cheap, related, values, whole_values
from conformance.values import Values

_OFTEN = 4
"""One operand of so many is a Python number where it may be, has a type of its own, or relates to the first."""


@dataclass(frozen=True)
class Operand:
    """What an operand of an elementwise op may be.

    Attributes
    ----------
    dtypes
        Its element types: mostly that of the case if it is among them, now and then another. Empty: that of the case.
    domain
        The closed interval in which the op is defined in this operand; its ends are drawn more often.
    number
        The keyword by which the operand can be a Python number instead of a tensor; None if it cannot.
    divides
        Whether the operand is a divisor: then an integer tensor has no zeros where the case is about integers.
    whole
        The least and the largest of the whole numbers that the operand is made of, whatever its type, as a degree is;
        None for numbers of all kinds.
    """

    dtypes: tuple[str, ...] = ()
    domain: tuple[float, float] | None = None
    number: str | None = None
    divides: bool = False
    whole: tuple[int, int] | None = None


def elementwise_cases(
    op: str,
    dtype: str,
    property: str,
    *,
    operands: Sequence[Operand] = (Operand(),),
    params: Mapping[str, st.SearchStrategy[Any]] | None = None,
    domain: tuple[float, float] | None = None,
) -> st.SearchStrategy[Case]:
    """Cases of an elementwise op: shapes that broadcast, each operand with a layout, type and values of its own.

    Parameters
    ----------
    op, dtype, property
        As in the case. With the property ``layout`` at least one operand is strided.
    operands
        What each operand may be, in order. An operand that may be a Python number is one in a case of four; one
        operand at least stays a tensor.
    params
        A strategy of JSON values for each parameter that is passed by keyword.
    domain
        The domain of the operands that have none of their own.
    """
    dtype_of(dtype)
    must_stride = property == "layout"
    frames = shapes(1 if must_stride else 0)
    domains = [operand.domain or domain for operand in operands]

    @st.composite
    def case(draw: st.DrawFn) -> Case:
        kept, drawn = _numbers(draw, operands, dtype)
        which = draw(st.integers(0, len(kept) - 1)) if must_stride and len(kept) > 1 else 0
        sizes = draw(broadcast(draw(frames), len(kept), which if must_stride else None))
        specs: list[TensorSpec] = []
        for position, shape in zip(kept, sizes, strict=True):
            own = _dtype(draw, operands[position], dtype)
            strided = True if must_stride and len(specs) == which else None
            layout = _layout(draw, shape, strided, specs)
            whole = operands[position].whole
            recipe = draw(whole_values(own, *whole)) if whole else _recipe(draw, own, shape, domains[position], specs)
            if operands[position].divides and all(dtype_of(name).kind in ("int", "bool") for name in (own, dtype)):
                recipe = Values("nonzero", params={"of": recipe.to_json()})
            specs.append(TensorSpec(own, shape, layout, recipe))
        drawn |= {name: draw(strategy) for name, strategy in (params or {}).items()}
        return Case(op, dtype, property, tuple(specs), drawn)

    return case()


def _numbers(draw: st.DrawFn, operands: Sequence[Operand], dtype: str) -> tuple[list[int], dict[str, Any]]:
    """The operands that are tensors, and the Python numbers that stand for the others."""
    kept: list[int] = []
    drawn: dict[str, Any] = {}
    for position, operand in enumerate(operands):
        last_chance = not kept and position == len(operands) - 1
        if operand.number is None or last_chance or draw(st.integers(0, _OFTEN - 1)) < _OFTEN - 1:
            kept.append(position)
        else:
            drawn[operand.number] = draw(st.integers(*operand.whole) if operand.whole else numbers(dtype))
    return kept, drawn


def _dtype(draw: st.DrawFn, operand: Operand, dtype: str) -> str:
    if not operand.dtypes or operand.dtypes == (dtype,):
        return dtype
    if dtype in operand.dtypes and draw(st.integers(0, _OFTEN - 1)) < _OFTEN - 1:
        return dtype
    return draw(st.sampled_from(operand.dtypes))


def _layout(draw: st.DrawFn, shape: Shape, strided: bool | None, specs: Sequence[TensorSpec]) -> Layout:
    """A layout of the operand's own; sometimes that of the first, for kernels that take operands of equal strides.

    A large operand is contiguous unless it must not be: some kernels run for large contiguous tensors only.
    """
    if specs and strided is None and specs[0].shape == shape and draw(st.integers(0, _OFTEN - 1)) == _OFTEN - 1:
        return specs[0].layout
    layout = draw(layouts(len(shape), strided=strided))
    return Layout(offset=layout.offset) if is_large(shape) and not strided else layout


def _recipe(
    draw: st.DrawFn, dtype: str, shape: Shape, domain: tuple[float, float] | None, specs: Sequence[TensorSpec]
) -> Values:
    """Values of the operand's own; sometimes related to those of the first, so that they cancel or tie."""
    if specs and specs[0].dtype == dtype and draw(st.integers(0, _OFTEN - 1)) == _OFTEN - 1:
        return draw(related(specs[0].values, dtype))
    recipe = draw(values(dtype, domain=domain, elementwise=True))
    return cheap(recipe, dtype) if is_large(shape) else recipe
