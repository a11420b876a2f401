"""What elementary functions do to intervals: one line each, with the limit and its source."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from conformance.oracle import arithmetic
from conformance.oracle.arrays import where
from conformance.oracle.intervals import UFUNCS, Interval, apply

LOG1P_LIMIT = 9.5
"""log1p in ulp. Metal has none, and Kahan's quotient x * log(1 + x) / ((1 + x) - 1) makes one from ``log``: its 4 ulp
count twice where the quotient moves the logarithm across a power of two, and three roundings add 1.5."""

EXPM1_LIMIT = 5.0
"""expm1 in ulp. Metal has none; far from zero it is ``exp`` (4 ulp) and a subtraction, near zero the OpenCL conformance
suite asks for 3 ulp."""

HYPOT_LIMIT = 2.0
"""hypot in ulp: the squares and their sum are off by a relative 2 u, of which the root halves, and rounds once more."""

Rule = Callable[..., Interval]


def _row(ufunc: Any, name: str) -> Rule:
    """A monotone function with a row in the Metal tables."""
    return lambda x: x.monotone(ufunc, x.steps.limit(name))


def _limited(ufunc: Any, ulps: float) -> Rule:
    """A monotone function made of tabulated ones, with its sum worked out."""
    return lambda x: x.monotone(ufunc, ulps)


def _wave(ufunc: Any, name: str) -> Rule:
    """A function with values in [-1, 1] and slope at most 1."""

    def oscillating(x: Interval) -> Interval:
        middle, radius = (x.low + x.high) / 2, (x.high - x.low) / 2
        value = ufunc(middle)
        low, high = np.fmax(value - radius, -1.0), np.fmin(value + radius, 1.0)
        undefined = np.isnan(value) & ~x.unknown
        low, high = np.where(undefined, np.nan, low), np.where(undefined, np.nan, high)
        return Interval(low, high, x.steps, x.unknown).widened(x.steps.limit(name))

    return oscillating


def tan(x: Interval) -> Interval:
    """Metal's ``tan``; anything where a pole may lie within."""
    branch = [np.floor(end / math.pi + 0.5) for end in (x.low, x.high)]
    crossed = (branch[0] != branch[1]) & ~np.isnan(x.low)
    value = x.monotone(np.tan, x.steps.limit("tan"))
    low, high = np.where(crossed, -np.inf, value.low), np.where(crossed, np.inf, value.high)
    return Interval(low, high, x.steps, x.unknown)


def cosh(x: Interval) -> Interval:
    """Metal's ``cosh``, by the operand's size."""
    return arithmetic.absolute(x).monotone(np.cosh, x.steps.limit("cosh"))


def power(x: Interval, y: Interval) -> Interval:
    """Metal's ``pow``; anything where a pole, or a negative base of an open exponent, may lie within."""
    corners = [np.power(a, b) for a in (x.low, x.high) for b in (y.low, y.high)]
    around_zero = (x.low < 0) & (x.high > 0)
    corners.append(np.where(around_zero & (y.low > 0), 0.0, corners[0]))
    value = Interval.hull(corners, x, y)
    may_be_zero = (x.low <= 0) & (x.high >= 0) & (x.low != x.high)
    open_exponent = (y.low != y.high) & (np.floor(y.high) >= y.low)
    anything = may_be_zero & (y.low < 0) | np.signbit(x.low) & open_exponent
    low, high = np.where(anything, -np.inf, value.low), np.where(anything, np.inf, value.high)
    return Interval(low, high, x.steps, value.loose | anything).widened(x.steps.limit("pow"))


def arctan2(y: Interval, x: Interval) -> Interval:
    """Metal's ``atan2``; a whole turn where the cut or the origin may lie within."""
    corners = [np.arctan2(a, b) for a in (y.low, y.high) for b in (x.low, x.high)]
    cut = (y.low <= 0) & (y.high >= 0) & (y.low != y.high) & (x.low <= 0)
    cut |= (y.low == 0) & (y.high == 0) & (x.low <= 0) & (x.high >= 0) & (x.low != x.high)
    value = Interval.hull(corners, y, x)
    low, high = np.where(cut, -math.pi, value.low), np.where(cut, math.pi, value.high)
    return Interval(low, high, y.steps, value.loose).widened(y.steps.limit("atan2"))


def hypot(x: Interval, y: Interval) -> Interval:
    """The root of the sum of squares, which neither overflow nor are flushed: see :data:`HYPOT_LIMIT`."""
    a, b = arithmetic.absolute(x), arithmetic.absolute(y)
    corners = [np.hypot(a.low, b.low), np.hypot(a.high, b.high)]
    return Interval.hull(corners, x, y).widened(HYPOT_LIMIT)


def expit(x: Interval) -> Interval:
    """1 / (1 + exp(-x)), as it is documented."""
    return 1.0 / (1.0 + exp(-x))


def log_expit(x: Interval) -> Interval:
    """min(x, 0) - log1p(exp(-|x|))."""
    return arithmetic.minimum(x, Interval.exact(np.zeros(()), x.steps)) - log1p(exp(-abs(x)))


def logaddexp(x: Interval, y: Interval) -> Interval:
    """The larger, and log1p(exp(-distance))."""
    return arithmetic.maximum(x, y) + log1p(exp(-abs(x - y)))


def logaddexp2(x: Interval, y: Interval) -> Interval:
    """The larger, and log1p(exp2(-distance)) / log(2)."""
    return arithmetic.maximum(x, y) + log1p(apply(np.exp2, [-abs(x - y)], x.steps)) / math.log(2.0)


def xlogy(x: Interval, other: Interval | float) -> Interval:
    """x log(other), and 0 where x is, unless other is NaN."""
    y = Interval.coerced(other, x.steps)
    return where((x == 0) & ~apply(np.isnan, [y], x.steps), 0.0, x * log(y))


def xlog1py(x: Interval, other: Interval | float) -> Interval:
    """x log1p(other), and 0 where x is, unless other is NaN."""
    y = Interval.coerced(other, x.steps)
    return where((x == 0) & ~apply(np.isnan, [y], x.steps), 0.0, x * log1p(y))


def _of(ufunc: Any) -> Callable[[Interval], Interval]:
    """The ufunc as a typed function of intervals."""

    def function(x: Interval) -> Interval:
        result: Interval = apply(ufunc, [x], x.steps)
        return result

    return function


UFUNCS.update(
    {
        np.exp: _row(np.exp, "exp"),
        np.exp2: _row(np.exp2, "exp2"),
        np.expm1: _limited(np.expm1, EXPM1_LIMIT),
        np.log: _row(np.log, "log"),
        np.log2: _row(np.log2, "log2"),
        np.log10: _row(np.log10, "log10"),
        np.log1p: _limited(np.log1p, LOG1P_LIMIT),
        np.sqrt: _row(np.sqrt, "sqrt"),
        np.sin: _wave(np.sin, "sin"),
        np.cos: _wave(np.cos, "cos"),
        np.tan: tan,
        np.arcsin: _row(np.arcsin, "asin"),
        np.arccos: _row(np.arccos, "acos"),
        np.arctan: _row(np.arctan, "atan"),
        np.arctan2: arctan2,
        np.sinh: _row(np.sinh, "sinh"),
        np.cosh: cosh,
        np.tanh: _row(np.tanh, "tanh"),
        np.arcsinh: _row(np.arcsinh, "asinh"),
        np.arccosh: _row(np.arccosh, "acosh"),
        np.arctanh: _row(np.arctanh, "atanh"),
        np.power: power,
        np.float_power: power,
        np.hypot: hypot,
        np.logaddexp: logaddexp,
        np.logaddexp2: logaddexp2,
    }
)

exp, log, tanh, sin, log1p, expm1 = (_of(f) for f in (np.exp, np.log, np.tanh, np.sin, np.log1p, np.expm1))
sqrt = _of(np.sqrt)
