"""What arithmetic, comparisons and exact functions do to intervals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from conformance.oracle.intervals import UFUNCS, Interval
from conformance.oracle.truth import Truth
from conformance.oracle.units import Float64s, ulp


def _either(x: Interval, y: Interval) -> Any:
    return x.loose | y.loose


def add(x: Interval, y: Interval) -> Interval:
    """Correctly rounded (MSL table 8.1); anything where infinities of both signs may meet but need not."""
    low, high = x.low + y.low, x.high + y.high
    opposite = (np.isposinf(x.high) & np.isneginf(y.low)) | (np.isneginf(x.low) & np.isposinf(y.high))
    some = opposite & ~((x.low == x.high) & (y.low == y.high))
    low, high = np.where(some, -np.inf, low), np.where(some, np.inf, high)
    return Interval(low, high, x.steps, np.asarray(x.loose | y.loose | some)).rounded()


def subtract(x: Interval, y: Interval) -> Interval:
    """Correctly rounded (MSL table 8.1)."""
    return add(x, negative(y))


def multiply(x: Interval, y: Interval) -> Interval:
    """Correctly rounded (MSL table 8.1); anything where zero and an infinity may meet but need not."""
    corners = [a * b for a in (x.low, x.high) for b in (y.low, y.high)]
    product = Interval.hull(corners, x, y)
    some = (_around_zero(x) & _endless(y)) | (_around_zero(y) & _endless(x))
    product = replace(product, loose=np.asarray(product.loose | some))
    return product.rounded(x.steps.reordered & ~(_scales(x) | _scales(y)))


def _scales(x: Interval) -> Any:
    """Where a factor is a power of two, 0 or an infinity, by which a product is exact in whichever order."""
    mantissa, _ = np.frexp(np.abs(x.low))
    return (x.low == x.high) & ((mantissa == 0.5) | (mantissa == 0) | np.isinf(mantissa))


def _around_zero(x: Interval) -> Any:
    return (x.low < 0) & (x.high > 0)


def _endless(x: Interval) -> Any:
    return np.isinf(x.low) | np.isinf(x.high)


def divide(x: Interval, y: Interval) -> Interval:
    """Correctly rounded (MSL table 8.1); by what may be zero, but need not, it may be anything."""
    corners = [a / b for a in (x.low, x.high) for b in (y.low, y.high)]
    anything = (y.low <= 0) & (y.high >= 0) & (y.low != y.high)
    quotient = Interval.hull(corners, x, y)
    low, high = np.where(anything, -np.inf, quotient.low), np.where(anything, np.inf, quotient.high)
    zero_by_zero = anything & (x.low <= 0) & (x.high >= 0)
    return Interval(low, high, x.steps, np.asarray(quotient.loose | zero_by_zero)).rounded()


def floor_divide(x: Interval, y: Interval) -> Interval:
    """The floor of the quotient; where its ulp is 1 or more one ulp beside it, as the bound of the op itself has it."""
    floor = divide(x, y).monotone(np.floor, 0.0)
    steps = (ulp(end, x.steps.computed) for end in (floor.low, floor.high))
    below, above = (np.where(step >= 1.0, step, 0.0) for step in steps)
    return replace(floor, low=floor.low - below, high=floor.high + above)


def negative(x: Interval) -> Interval:
    """Exact."""
    return Interval(-x.high, -x.low, x.steps, x.loose)


def absolute(x: Interval) -> Interval:
    """Exact."""
    ends = np.abs(x.low), np.abs(x.high)
    low = np.where((x.low <= 0) & (x.high >= 0), 0.0, np.minimum(*ends))
    return Interval(low, np.maximum(*ends), x.steps, x.loose)


def square(x: Interval) -> Interval:
    """One product."""
    size = absolute(x)
    return Interval(size.low * size.low, size.high * size.high, x.steps, x.loose).rounded()


def reciprocal(x: Interval) -> Interval:
    """Correctly rounded (MSL table 8.1)."""
    return divide(Interval.exact(np.ones(()), x.steps), x)


def maximum(x: Interval, y: Interval) -> Interval:
    """Exact; NaN if one is."""
    return Interval(np.maximum(x.low, y.low), np.maximum(x.high, y.high), x.steps, _either(x, y))


def minimum(x: Interval, y: Interval) -> Interval:
    """Exact; NaN if one is."""
    return Interval(np.minimum(x.low, y.low), np.minimum(x.high, y.high), x.steps, _either(x, y))


def fmax(x: Interval, y: Interval) -> Interval:
    """Exact; NaN if both are."""
    return Interval(np.fmax(x.low, y.low), np.fmax(x.high, y.high), x.steps, _either(x, y))


def fmin(x: Interval, y: Interval) -> Interval:
    """Exact; NaN if both are."""
    return Interval(np.fmin(x.low, y.low), np.fmin(x.high, y.high), x.steps, _either(x, y))


def copysign(x: Interval, y: Interval) -> Interval:
    """Exact, of either sign where the sign of ``y`` is open."""
    size = absolute(x)
    open_sign = (y.low != y.high) & (y.low <= 0) & (y.high >= 0) | y.loose
    negative_sign = np.signbit(y.low)
    low = np.where(open_sign | negative_sign, -size.high, size.low)
    high = np.where(open_sign, size.high, np.where(negative_sign, -size.low, size.high))
    return Interval(low, high, x.steps, _either(x, y))


def heaviside(x: Interval, y: Interval) -> Interval:
    """Exact: 0 below zero, 1 above, ``y`` at zero."""
    corners = [np.heaviside(a, b) for a in (x.low, x.high) for b in (y.low, y.high)]
    inside = (x.low < 0) & (x.high > 0)
    corners += [np.where(inside, y.low, corners[0]), np.where(inside, y.high, corners[0])]
    return Interval.hull(corners, x, y)


def less(x: Interval, y: Interval) -> Truth:
    """Certain where the intervals are apart."""
    loose = _either(x, y)
    return Truth((x.high < y.low) & ~loose, (x.low < y.high) | loose, x.steps)


def less_equal(x: Interval, y: Interval) -> Truth:
    """Certain where the intervals are apart or touch."""
    loose = _either(x, y)
    return Truth((x.high <= y.low) & ~loose, (x.low <= y.high) | loose, x.steps)


def equal(x: Interval, y: Interval) -> Truth:
    """Certain for two equal points."""
    point = (x.low == x.high) & (y.low == y.high) & (x.low == y.low)
    loose = _either(x, y)
    return Truth(point & ~loose, (x.low <= y.high) & (y.low <= x.high) | loose, x.steps)


def isnan(x: Interval) -> Truth:
    """Certain for a NaN, possible for what is loose."""
    return Truth(np.isnan(x.low), np.isnan(x.low) | x.loose, x.steps)


def isfinite(x: Interval) -> Truth:
    """Certain between finite ends."""
    finite = np.isfinite(x.low) & np.isfinite(x.high) & ~x.loose
    return Truth(finite, finite | x.unknown, x.steps)


def isinf(x: Interval) -> Truth:
    """Certain for one infinity, possible where an end is."""
    infinite = np.isinf(x.low) | np.isinf(x.high)
    return Truth(infinite & (x.low == x.high) & ~x.loose, infinite | x.loose, x.steps)


def _exact_and_monotone(function: Callable[[Float64s], Float64s]) -> Callable[[Interval], Interval]:
    return lambda x: x.monotone(function, 0.0)


_RULES: dict[Any, Callable[..., Any]] = {
    np.add: add,
    np.subtract: subtract,
    np.multiply: multiply,
    np.divide: divide,
    np.negative: negative,
    np.positive: lambda x: x,
    np.conjugate: lambda x: x,
    np.absolute: absolute,
    np.fabs: absolute,
    np.square: square,
    np.reciprocal: reciprocal,
    np.floor_divide: floor_divide,
    np.maximum: maximum,
    np.minimum: minimum,
    np.fmax: fmax,
    np.fmin: fmin,
    np.copysign: copysign,
    np.heaviside: heaviside,
    np.less: less,
    np.less_equal: less_equal,
    np.greater: lambda x, y: less(y, x),
    np.greater_equal: lambda x, y: less_equal(y, x),
    np.equal: equal,
    np.not_equal: lambda x, y: ~equal(x, y),
    np.isnan: isnan,
    np.isinf: isinf,
    np.isfinite: isfinite,
    np.signbit: lambda x: Truth(np.signbit(x.high), np.signbit(x.low), x.steps),
}
UFUNCS.update(_RULES)
UFUNCS.update({function: _exact_and_monotone(function) for function in (np.sign, np.floor, np.ceil, np.trunc, np.rint)})
