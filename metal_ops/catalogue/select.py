"""Choosing and joining: where, masked_fill, cat. To add an op, add one block."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.op import Op, Reference
from conformance.oracle import Exact, Rules
from metal_ops.catalogue._blocks import ANY, FLOATS, UNSIGNED, fitting_numbers
from metal_ops.catalogue._gradients import copied, moved
from metal_ops.catalogue._workloads import SIZES, workloads
from references import select as true
from references.gradients import select as derivative

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

    from conformance.case import Case

_FAMILY = "select"
_COPIED = (*ANY, *UNSIGNED)
_MOVES = Exact("an element of one operand or the other, converted to the common type", rules=Rules(signed_zero=True))


def _beside(dtype: str) -> tuple[str, ...]:
    """Types that may stand beside ``dtype``: torch promotes the wider unsigned integers with floats only."""
    return FLOATS if dtype in UNSIGNED else ANY


def _where(dtype: str, property: str) -> SearchStrategy[Case]:
    from conformance.strategies import Operand, elementwise_cases

    operands = Operand(("bool",)), Operand((dtype,)), Operand((dtype, *_beside(dtype)), number="other")
    return elementwise_cases("where", dtype, property, operands=operands)


def _masked_fill(dtype: str, property: str) -> SearchStrategy[Case]:
    from conformance.strategies import Operand, elementwise_cases

    operands = Operand((dtype,)), Operand(("bool",))
    value = fitting_numbers(dtype)
    return elementwise_cases("masked_fill", dtype, property, operands=operands, params={"value": value})


def _cat(dtype: str, property: str) -> SearchStrategy[Case]:
    from conformance.strategies import cat_cases

    return cat_cases("cat", dtype, property, dtypes=_beside(dtype))


OPS: tuple[Op, ...] = (
    Op(
        name="where",
        family=_FAMILY,
        function="where",
        dtypes=_COPIED,
        cases=_where,
        reference=Reference(true.where, "numpy"),
        bound=_MOVES,
        properties=("forward", "layout", "backward"),
        kernels=("where_*",),
        gradient=moved(derivative.where),
        workloads=workloads("where", [(size,) * 3 for size in SIZES], first="bool"),
        promotes=(1, 2, "other"),
    ),
    Op(
        name="masked_fill",
        family=_FAMILY,
        function="masked_fill",
        dtypes=_COPIED,
        cases=_masked_fill,
        reference=Reference(true.masked_fill, "numpy"),
        bound=_MOVES,
        properties=("forward", "layout", "backward"),
        kernels=("masked_fill_scalar_*",),
        gradient=moved(derivative.masked_fill),
        promotes=(0,),
    ),
    Op(
        name="cat",
        family=_FAMILY,
        function="cat",
        dtypes=_COPIED,
        cases=_cat,
        reference=Reference(true.cat, "numpy"),
        bound=_MOVES,
        properties=("forward", "layout", "backward"),
        kernels=("cat_*",),
        gradient=copied(derivative.cat),
        workloads=workloads("cat", [(size,) * 2 for size in SIZES], {"dim": 0}),
        listed=True,
    ),
)
