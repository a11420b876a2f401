"""Inherited accuracy: what a formula of Metal functions may return, as an interval around each element.

An op that PyTorch documents as a formula, sigmoid(x) = 1 / (1 + exp(-x)), has no row of its own in the accuracy tables
but inherits one from its parts, in the manner of the WebGPU conformance suite. The formula is evaluated here on
intervals: every operation widens its result by the error that its own row permits, so the final interval holds whatever
a conforming device may compute. Intermediate values may overflow no sooner and flush no more than the final one:
a formula that loses a normal result to an overflow halfway is a defect, not a conforming device.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from conformance.oracle import msl
from conformance.oracle.units import Float64s, nearest, rounding_error, ulp

Function = Callable[[Float64s], Float64s]


@dataclass(frozen=True)
class Interval:
    """Elementwise interval [``low``, ``high``] of float64 values, in a computation that rounds to ``dtype``.

    Operators take another interval or a Python number; a number that ``dtype`` cannot represent stands for its two
    neighbourhoods, as the constant in a kernel would.
    """

    low: Float64s
    high: Float64s
    dtype: str

    @classmethod
    def exact(cls, value: Float64s, dtype: str) -> Interval:
        """The interval of a value known exactly."""
        return cls(value, value, dtype)

    def __add__(self, other: Interval | float) -> Interval:
        other = self._coerce(other)
        return Interval(self.low + other.low, self.high + other.high, self.dtype)._rounded()

    def __sub__(self, other: Interval | float) -> Interval:
        return self + -self._coerce(other)

    def __mul__(self, other: Interval | float) -> Interval:
        other = self._coerce(other)
        return self._hull([a * b for a in (self.low, self.high) for b in (other.low, other.high)])._rounded()

    def __truediv__(self, other: Interval | float) -> Interval:
        other = self._coerce(other)
        return self._hull([a / b for a in (self.low, self.high) for b in (other.low, other.high)])._rounded()

    def __neg__(self) -> Interval:
        return Interval(-self.high, -self.low, self.dtype)

    def __radd__(self, other: float) -> Interval:
        return self + other

    def __rsub__(self, other: float) -> Interval:
        return self._coerce(other) - self

    def __rmul__(self, other: float) -> Interval:
        return self * other

    def __rtruediv__(self, other: float) -> Interval:
        return self._coerce(other) / self

    def monotone(self, function: Function, limit: float) -> Interval:
        """A monotone ``function`` of the interval, whose own error is at most ``limit`` ulp."""
        return self._hull([function(self.low), function(self.high)])._widened(limit)

    def oscillating(self, function: Function, limit: float) -> Interval:
        """A ``function`` with values in [-1, 1] and slope at most 1, whose own error is at most ``limit`` ulp."""
        middle, radius = (self.low + self.high) / 2, (self.high - self.low) / 2
        value = function(middle)
        return Interval(np.maximum(value - radius, -1.0), np.minimum(value + radius, 1.0), self.dtype)._widened(limit)

    def select(self, where: NDArray[np.bool_], other: Interval) -> Interval:
        """Itself where the condition holds, else ``other``; selecting is exact."""
        return Interval(np.where(where, self.low, other.low), np.where(where, self.high, other.high), self.dtype)

    def distance(self, value: Float64s) -> Float64s:
        """How far from ``value`` the interval reaches; NaN where either is undefined."""
        return np.maximum(self.high - value, value - self.low)

    def _coerce(self, other: Interval | float) -> Interval:
        if isinstance(other, Interval):
            return other
        value = np.asarray(other, np.float64)
        error = np.where(nearest(value, self.dtype) == value, 0.0, rounding_error(value, self.dtype))
        return Interval(value - error, value + error, self.dtype)

    def _hull(self, corners: list[Float64s]) -> Interval:
        return Interval(np.minimum.reduce(corners), np.maximum.reduce(corners), self.dtype)

    def _rounded(self) -> Interval:
        return self._outward(rounding_error(self.low, self.dtype), rounding_error(self.high, self.dtype))

    def _widened(self, limit: float) -> Interval:
        if limit == msl.CORRECTLY_ROUNDED:
            return self._rounded()
        return self._outward(limit * ulp(self.low, self.dtype), limit * ulp(self.high, self.dtype))

    def _outward(self, below: Float64s, above: Float64s) -> Interval:
        """Itself with its ends moved outward; infinite ends stay."""
        low = np.where(np.isfinite(self.low), self.low - below, self.low)
        high = np.where(np.isfinite(self.high), self.high + above, self.high)
        return Interval(low, high, self.dtype)


def _limit(function: str, argument: Interval) -> float:
    return msl.limit(function, "8.3" if argument.dtype == "float16" else "8.1")


def exp(x: Interval) -> Interval:
    """Metal's ``exp``."""
    return x.monotone(np.exp, _limit("exp", x))


def log(x: Interval) -> Interval:
    """Metal's ``log``, of an argument that may touch zero."""
    return x.monotone(lambda value: np.log(np.maximum(value, 0.0)), _limit("log", x))


def tanh(x: Interval) -> Interval:
    """Metal's ``tanh``."""
    return x.monotone(np.tanh, _limit("tanh", x))


def sin(x: Interval) -> Interval:
    """Metal's ``sin``."""
    return x.oscillating(np.sin, _limit("sin", x))


def sqrt(x: Interval) -> Interval:
    """Metal's ``sqrt``."""
    return x.monotone(np.sqrt, _limit("sqrt", x))


LOG1P_LIMIT = 9.5
"""log1p in ulp. Metal has none, and Kahan's quotient x * log(1 + x) / ((1 + x) - 1) makes one from ``log``: its 4 ulp
count twice where the quotient moves the logarithm across a power of two, and three roundings add 1.5."""

EXPM1_LIMIT = 5.0
"""expm1 in ulp. Metal has none; far from zero it is ``exp`` (4 ulp) and a subtraction, near zero the OpenCL conformance
suite asks for 3 ulp."""


def log1p(x: Interval) -> Interval:
    """log(1 + x) as made from Metal's ``log``: see :data:`LOG1P_LIMIT`."""
    return x.monotone(np.log1p, LOG1P_LIMIT)


def expm1(x: Interval) -> Interval:
    """exp(x) - 1 as made from Metal's ``exp``: see :data:`EXPM1_LIMIT`."""
    return x.monotone(np.expm1, EXPM1_LIMIT)
