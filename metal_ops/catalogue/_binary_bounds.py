"""The bounds of binary ops: formulas on intervals, and operands for which no value is documented."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conformance.dtypes import dtype as dtype_of
from conformance.op import Bound
from conformance.oracle import (
    ByKind,
    ByParameter,
    CorrectlyRounded,
    Either,
    Inherited,
    Normwise,
    Rules,
    Stepwise,
    Termwise,
)
from conformance.oracle.arrays import where
from conformance.oracle.intervals import Interval
from references.binary import gcd

ANNEX_F = Rules(signed_zero=True)

COMPLEX_ARITHMETIC = Normwise(
    8.0, "four products and their sums, each correctly rounded (MSL 8.1); Jeannerod et al., Math. Comp. 86, 2017"
)

AT_INFINITIES = Rules(unruled=(float("inf"), float("-inf")))

PREDICATE = CorrectlyRounded("a comparison, before which a subnormal may be flushed (MSL 8.1)")

CHOICE = CorrectlyRounded("one of the operands, which may be flushed (MSL 8.1)")

COMPLEX_FUNCTION = Normwise(
    16.0, "no contract for complex functions; 16 u is the loosest limit MSL table 8.1 gives a real one (pow)"
)


def rounded(operation: str, complex_bound: Bound = COMPLEX_ARITHMETIC) -> Bound:
    """One IEEE operation, and of complex numbers one of a few."""
    source = f"Metal Shading Language specification 4.1, table 8.1, {operation}"
    return ByKind(CorrectlyRounded(source, rules=ANNEX_F), complex_bound)


def plus_terms(x: NDArray[Any], other: Any, alpha: float = 1) -> NDArray[Any]:
    """The moduli of the terms of x + alpha other, or of x - alpha other."""
    total: NDArray[Any] = x + abs(alpha) * np.abs(other)
    return total


def from_other_terms(x: NDArray[Any], other: Any, alpha: float = 1) -> NDArray[Any]:
    """The moduli of the terms of other - alpha x."""
    return plus_terms(np.abs(other), x, alpha)


def scaled_sum(formula: Callable[..., Interval], terms: Callable[..., NDArray[Any]] = plus_terms) -> Bound:
    """A sum of an operand and a multiple of another, which may be rounded twice, of halves in their own type.

    The sign of a zero counts without a factor only: a difference may be made as a sum with the negative factor.
    """
    source = "a product and a sum, each correctly rounded (MSL tables 8.1, 8.3 and 8.4), or fused"
    of_zero, of_any = (
        Inherited(formula, source, rules, native=("float16", "bfloat16"), ranged=True) for rules in (ANNEX_F, Rules())
    )
    return ByKind(ByParameter("alpha", 1, of_zero, of_any), Termwise(4.0, terms, source, ("complex32",)))


def plus(x: Interval, other: Interval | float, alpha: float = 1) -> Interval:
    """X + alpha other."""
    return x + alpha * Interval.coerced(other, x.steps)


def minus(x: Interval, other: Interval | float, alpha: float = 1) -> Interval:
    """X - alpha other."""
    return x - alpha * Interval.coerced(other, x.steps)


def from_other(x: Interval, other: Interval | float, alpha: float = 1) -> Interval:
    """Other - alpha x."""
    return Interval.coerced(other, x.steps) - alpha * x


def _lerp(x: Interval, end: Interval, weight: Interval | float) -> Interval:
    return x + weight * (end - x)


def _lerp_by_the_nearer(x: Interval, end: Interval, weight: Interval | float) -> Interval:
    w = Interval.coerced(weight, x.steps)
    return where(abs(w) < 0.5, _lerp(x, end, w), end - (end - x) * (1.0 - w))


def _lerp_terms(x: NDArray[Any], end: NDArray[Any], weight: NDArray[Any] | float) -> NDArray[Any]:
    total: NDArray[Any] = x + (1.0 + np.abs(weight)) * (end + x)
    return total


LERP = ByKind(
    Either(
        Inherited(_lerp, "documented as x + weight (end - x)", AT_INFINITIES, ranged=True),
        Inherited(_lerp_by_the_nearer, "of large weights from the end, so that it is met", ranged=True),
    ),
    Termwise(6.0, _lerp_terms, "documented as x + weight (end - x), four operations"),
)


def at_nan(dtype: str, x: NDArray[Any], other: NDArray[Any]) -> NDArray[np.bool_]:
    """PyTorch documents no step at NaN."""
    return np.asarray(np.isnan(x))


def infinite_exponent(
    dtype: str, gradient: NDArray[Any], result: NDArray[Any], x: NDArray[Any], exponent: Any
) -> NDArray[np.bool_]:
    """A power of infinity is constant but for a jump, and PyTorch documents no derivative of it."""
    return np.asarray(np.broadcast_to(np.isinf(exponent), np.shape(result)))


def without_sign(dtype: str, x: NDArray[Any], other: NDArray[Any]) -> NDArray[np.bool_]:
    """A NaN's sign means nothing (IEEE 754-2019, 6.3), and conversions between types may change it."""
    return np.asarray(np.isnan(np.asarray(other, np.float64)))


def by_zero(dtype: str, x: NDArray[Any], other: NDArray[Any]) -> NDArray[np.bool_]:
    """Integers have no quotient by zero, and PyTorch documents none."""
    return np.asarray((other == 0) & (dtype_of(dtype).kind == "int"))


def beyond_width(dtype: str, x: NDArray[Any], other: NDArray[Any]) -> NDArray[np.bool_]:
    """C has no shift by a negative amount, or by the type's width and more."""
    return np.asarray((other < 0) | (other >= 8 * dtype_of(dtype).itemsize))


_QUOTIENT = "a quotient and its rounding to a whole number, across which the quotient's own may lead"

FLOORED = Stepwise(1.0, _QUOTIENT, Rules(undefined=by_zero, unruled=(float("inf"), float("-inf"))))
"""Python and NumPy have no inf // y, mathematics has."""

TRUNCATED = Stepwise(1.0, _QUOTIENT, Rules(undefined=by_zero))

REMAINDER = "fmod is exact (MSL table 8.1, 0 ulp); Python's remainder adds the divisor, one rounding"


def no_divisor(dtype: str, x: NDArray[Any], other: NDArray[Any]) -> NDArray[np.bool_]:
    """The greatest divisor of the least integer and itself, or 0, is beyond the type."""
    return _beyond(dtype, gcd(x, other))


def no_multiple(dtype: str, x: NDArray[Any], other: NDArray[Any]) -> NDArray[np.bool_]:
    """Where the least multiple is beyond the type, PyTorch documents none."""
    divisor = np.maximum(gcd(x, other), 1)
    return _beyond(dtype, (x // divisor).astype(np.float64) * other)


def _beyond(dtype: str, number: NDArray[Any]) -> NDArray[np.bool_]:
    if dtype_of(dtype).kind == "bool":
        return np.zeros(number.shape, bool)
    return np.asarray(np.abs(number.astype(np.float64)) >= np.iinfo(dtype_of(dtype).numpy).max + 1.0)
