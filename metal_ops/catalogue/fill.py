"""Filling with a number. To add an op, add one block."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.op import Ladder, Op, Reference
from conformance.oracle import Exact, Rules
from metal_ops.catalogue._blocks import ANY, UNSIGNED, fitting_numbers
from metal_ops.catalogue._gradients import copied
from references import fill as true
from references.gradients import fill as derivative

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

    from conformance.case import Case

_SIGNED = Rules(signed_zero=True)


def _cases(dtype: str, property: str) -> SearchStrategy[Case]:
    from conformance.strategies import elementwise_cases

    return elementwise_cases("fill", dtype, property, params={"value": fitting_numbers(dtype)})


OPS: tuple[Op, ...] = (
    Op(
        name="fill",
        family="fill",
        function="fill",
        dtypes=(*ANY, *UNSIGNED, "float8_e4m3fn", "complex32"),
        cases=_cases,
        reference=Reference(true.fill, "exact"),
        bound=Exact("a number's conversion: rounded to nearest (IEEE 754), truncated or wrapped (C)", rules=_SIGNED),
        properties=("forward", "variants", "layout", "backward"),
        ladder=Ladder(params=lambda dtype: [{"value": 1}]),
        kernels=("fill_scalar_*",),
        gradient=copied(derivative.fill),
        promotes=(0,),
    ),
)
