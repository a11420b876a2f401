"""Functions of three operands. To add an op, add one block."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from conformance.op import Op, Params, Reference, ReferenceFunction
from metal_ops.catalogue._binary_bounds import CHOICE, LERP
from metal_ops.catalogue._blocks import COMPLEX, FLOATS, INTS, factor, ternary
from metal_ops.catalogue._gradients import TIES, composed
from metal_ops.catalogue._ternary_bounds import (
    PRODUCTS,
    QUOTIENTS,
    by_divisor,
    by_factors,
    divided,
    multiplied,
    product_added,
)
from references import binary
from references import ternary as true
from references.gradients import binary as binary_derivative
from references.gradients import ternary as derivative

if TYPE_CHECKING:
    from collections.abc import Sequence

_op = partial(ternary, family="ternary")


def _true(function: ReferenceFunction) -> Reference:
    return Reference(function, "numpy")


def _values(dtype: str) -> Sequence[Params]:
    return [{"value": 2}]


OPS: tuple[Op, ...] = (
    _op(
        "addcmul",
        functor="addcmul",
        reference=_true(true.addcmul),
        bound=product_added(multiplied, by_factors, PRODUCTS),
        dtypes=(*FLOATS, *INTS, *COMPLEX),
        params=factor("value"),
        swept=_values,
        gradient=composed(derivative.addcmul),
    ),
    _op(
        "addcdiv",
        functor="addcdiv",
        reference=_true(true.addcdiv),
        bound=product_added(divided, by_divisor, QUOTIENTS),
        dtypes=(*FLOATS, *COMPLEX),
        others=(*FLOATS, *INTS, *COMPLEX),
        params=factor("value"),
        swept=_values,
        gradient=composed(derivative.addcdiv),
    ),
    _op(
        "clamp.tensor",
        function="clamp",
        functor="clamp",
        reference=_true(true.clamp),
        bound=CHOICE,
        dtypes=(*FLOATS, *INTS),
        gradient=composed(partial(derivative.clamp, ties=TIES)),
    ),
    _op(
        "lerp.tensor",
        function="lerp",
        functor="lerp",
        reference=_true(binary.lerp),
        bound=LERP,
        dtypes=(*FLOATS, *COMPLEX),
        others=(),
        domains=(None, None, (0, 1)),
        also=("int64",),
        gradient=composed(binary_derivative.lerp),
    ),
)
