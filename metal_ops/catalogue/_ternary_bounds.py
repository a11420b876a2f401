"""The bounds of ternary ops: formulas on intervals, of which a kernel may take the factors in any order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conformance.op import Bound, ReferenceFunction
from conformance.oracle import ByKind, Inherited, InRange, Normwise
from conformance.oracle.intervals import Interval

_SOURCE = "documented as a sum with a product of three, each correctly rounded (MSL tables 8.1, 8.3 and 8.4), or fused"


Returning = Callable[..., NDArray[np.float64]]


def product_added(
    formula: Callable[..., Interval], returning: Returning, orders: tuple[ReferenceFunction, ...]
) -> Bound:
    """A sum with a product or quotient of two operands and a number, of halves possibly in their own type.

    ``returning`` gives the factor by which a flushed product of complex numbers may come back; ``orders`` are the ways
    in which three factors may be joined.
    """
    real = Inherited(formula, _SOURCE, native=("float16", "bfloat16"), ranged=True)
    # Two products or quotients of complex numbers, each within sqrt(5) u (Brent, Percival and Zimmermann, Math. Comp.
    # 76, 2007) or, with a reciprocal, twice that, and a sum.
    source = "a product, a product or quotient and a sum of complex numbers"
    return ByKind(real, InRange(Normwise(8.0, source, returning=returning), orders))


PRODUCTS: tuple[ReferenceFunction, ...] = (
    lambda x, first, second, value=1: x + value * (first * second),
    lambda x, first, second, value=1: x + first * (value * second),
)
"""The orders in which the product of two operands and a number may be made, beside that of the reference."""

QUOTIENTS: tuple[ReferenceFunction, ...] = (
    lambda x, first, second, value=1: x + value * (first / second),
    lambda x, first, second, value=1: x + first * (value / second),
)
"""The same with a quotient."""


def multiplied(x: Interval, first: Interval, second: Interval, value: float = 1) -> Interval:
    """X + value first second."""
    return x + first.product(second, value)


def by_factors(x: NDArray[Any], first: NDArray[Any], second: NDArray[Any], value: float = 1) -> NDArray[np.float64]:
    """A product of two of the factors is multiplied by the third."""
    largest: NDArray[np.float64] = np.maximum(max(1.0, abs(value)), np.maximum(np.abs(first), np.abs(second)))
    return largest


def by_divisor(x: NDArray[Any], first: NDArray[Any], second: NDArray[Any], value: float = 1) -> NDArray[np.float64]:
    """A product with a part of the dividend is divided by the divisor's modulus, and multiplied by the number."""
    with np.errstate(divide="ignore"):
        scale: NDArray[np.float64] = max(1.0, abs(value)) * np.maximum(1.0, 1.0 / np.abs(second))
    return scale


def divided(x: Interval, first: Interval, second: Interval, value: float = 1) -> Interval:
    """X + value first / second."""
    if value == 1:
        return x + first / second
    one, other = value * first / second, value * (first / second)
    return x + Interval.hull([one.low, one.high, other.low, other.high], one, other)
