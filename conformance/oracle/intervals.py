"""Running error analysis: what a formula of Metal functions may return, as an interval around each element.

An op that PyTorch documents as a formula, sigmoid(x) = 1 / (1 + exp(-x)), has no row of its own in the accuracy tables
but inherits one from its parts, in the manner of the WebGPU conformance suite. The formula is evaluated here on
intervals: every operation widens its result by the error that its own row permits, so the final interval holds whatever
a conforming device may compute.

An interval takes the place of an array in NumPy and SciPy formulas: operators, ufuncs and array functions come here by
NumPy's protocols. What each does to an interval is said in :mod:`~conformance.oracle.arithmetic`,
:mod:`~conformance.oracle.functions` and :mod:`~conformance.oracle.arrays`; what is not said there is refused by name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conformance.oracle import msl
from conformance.oracle.steps import Steps
from conformance.oracle.truth import Truth
from conformance.oracle.units import Float64s, nearest, rounding_error, ulp

UFUNCS: dict[Any, Callable[..., Any]] = {}
"""What each ufunc does to intervals: takes and returns :class:`Interval` or :class:`Truth`."""

SPECIAL: list[Callable[[Any], Callable[..., Any] | None]] = []
"""Who else may know what a ufunc does: each gives its rule, or None."""

FUNCTIONS: dict[Any, Callable[..., Any]] = {}
"""What each array function does; takes the arguments as they are."""

_NOWHERE = np.False_


@dataclass(frozen=True, eq=False)
class Interval:
    """Elementwise interval [``low``, ``high``] of float64 values, in arithmetic of ``steps``; NaN in both for a NaN.

    ``loose`` marks the elements that may be NaN beside the interval, as after inf - inf where one of the two may be
    finite. Operators take another interval, an array or a number; a number that the type cannot represent stands for
    its two neighbourhoods, as the constant in a kernel would. Where torch composes ops it is a scalar operand, which
    kernels take in the type of the computation or in the tensors': then both of its roundings are possible.
    """

    low: Float64s
    high: Float64s
    steps: Steps
    loose: NDArray[np.bool_] | np.bool_ = _NOWHERE

    @classmethod
    def exact(cls, value: Float64s, steps: Steps) -> Interval:
        """The interval of a value known exactly."""
        return cls(np.asarray(value, np.float64), np.asarray(value, np.float64), steps)

    @classmethod
    def coerced(cls, value: Any, steps: Steps) -> Interval:
        """An interval as it is, a number or array as a constant, a condition as 0 and 1.

        Raises
        ------
        TypeError
            If the value is complex: an interval has an order.
        """
        if isinstance(value, Interval):
            return value
        if isinstance(value, Truth):
            return cls(value.surely.astype(np.float64), value.maybe.astype(np.float64), steps)
        if np.iscomplexobj(value):
            raise TypeError("an interval stands for real numbers; given: complex ones, which Normwise judges")
        given = np.asarray(value, np.float64)
        error = np.where(nearest(given, steps.stored) == given, 0.0, rounding_error(given, steps.stored))
        error = np.where(np.isfinite(given), error, 0.0)
        return cls(given - error, given + error, steps)

    @classmethod
    def hull(cls, corners: Sequence[Float64s], *operands: Interval) -> Interval:
        """The smallest interval of all ``corners``, values of a function of ``operands``.

        Where some corners are NaN and some not it may be anything, and so it may where all are but an operand is not
        known: 0 times an interval without ends, say.
        """
        stacked = np.stack(np.broadcast_arrays(*corners))
        undefined = np.isnan(stacked)
        known = ~_any(*(x.unknown for x in operands))
        some = undefined.any(axis=0) & ~(undefined.all(axis=0) & known)
        low = np.where(some, -np.inf, np.fmin.reduce(stacked))
        high = np.where(some, np.inf, np.fmax.reduce(stacked))
        return cls(low, high, operands[0].steps, _any(some, *(x.loose for x in operands)))

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the array it stands for."""
        return np.shape(self.low)

    @property
    def ndim(self) -> int:
        """The number of its dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of its elements."""
        return int(np.size(self.low))

    @property
    def real(self) -> Interval:
        """Itself."""
        return self

    @property
    def unknown(self) -> NDArray[np.bool_]:
        """Where nothing is known: it may be NaN, or has no end and is not one infinity."""
        finite = np.isfinite(self.low) & np.isfinite(self.high)
        return np.asarray(self.loose | ((self.low < self.high) & ~finite))

    def __add__(self, other: object) -> Interval:
        return self._by(np.add, self, other)

    def __sub__(self, other: object) -> Interval:
        return self._by(np.subtract, self, other)

    def __mul__(self, other: object) -> Interval:
        return self._by(np.multiply, self, other)

    def __truediv__(self, other: object) -> Interval:
        return self._by(np.divide, self, other)

    def __matmul__(self, other: object) -> Interval:
        return self._by(np.matmul, self, other)

    def __neg__(self) -> Interval:
        return self._by(np.negative, self)

    def __abs__(self) -> Interval:
        return self._by(np.absolute, self)

    def __radd__(self, other: object) -> Interval:
        return self._by(np.add, other, self)

    def __rsub__(self, other: object) -> Interval:
        return self._by(np.subtract, other, self)

    def __rmul__(self, other: object) -> Interval:
        return self._by(np.multiply, other, self)

    def __rtruediv__(self, other: object) -> Interval:
        return self._by(np.divide, other, self)

    def __rmatmul__(self, other: object) -> Interval:
        return self._by(np.matmul, other, self)

    def __pow__(self, exponent: object) -> Interval:
        """The products that 2 and 3 stand for; every other exponent is a call of ``pow``."""
        if isinstance(exponent, int) and exponent in (2, 3):
            square = self._by(np.square, self)
            return square if exponent == 2 else square * self
        return self._by(np.power, self, exponent)

    def __rpow__(self, base: object) -> Interval:
        return self._by(np.power, base, self)

    def __lt__(self, other: object) -> Truth:
        return self._compared(np.less, other)

    def __le__(self, other: object) -> Truth:
        return self._compared(np.less_equal, other)

    def __gt__(self, other: object) -> Truth:
        return self._compared(np.greater, other)

    def __ge__(self, other: object) -> Truth:
        return self._compared(np.greater_equal, other)

    def __eq__(self, other: object) -> Truth:  # type: ignore[override]
        return self._compared(np.equal, other)

    def __ne__(self, other: object) -> Truth:  # type: ignore[override]
        return self._compared(np.not_equal, other)

    def __getitem__(self, key: Any) -> Interval:
        return Interval(self.low[key], self.high[key], self.steps, np.broadcast_to(self.loose, self.shape)[key])

    def __array__(self, dtype: object = None, copy: object = None) -> NDArray[Any]:
        raise TypeError("a formula made an array of an interval; allowed: NumPy's functions and operators")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: object, **kwargs: object) -> Any:
        if method == "reduce" and ufunc is np.add:
            return FUNCTIONS[np.sum](*inputs, **kwargs)
        if method != "__call__" or kwargs:
            raise TypeError(f"np.{ufunc.__name__} of an interval takes operands only; given: {method}, {list(kwargs)}")
        return apply(ufunc, inputs, self.steps)

    def __array_function__(self, function: Any, types: object, args: Any, kwargs: Any) -> Any:
        if function not in FUNCTIONS:
            raise _unknown(function.__name__, FUNCTIONS)
        with np.errstate(all="ignore"):
            return FUNCTIONS[function](*args, **kwargs)

    def sum(self, axis: Any = None, keepdims: bool = False) -> Interval:
        """As ``np.sum``."""
        total: Interval = FUNCTIONS[np.sum](self, axis=axis, keepdims=keepdims)
        return total

    def reshape(self, *shape: Any) -> Interval:
        """As ``np.reshape``."""
        wanted = shape[0] if len(shape) == 1 else shape
        reshaped: Interval = FUNCTIONS[np.reshape](self, wanted)
        return reshaped

    def conj(self) -> Interval:
        """Itself."""
        return self

    def product(self, *factors: object) -> Interval:
        """The product with more factors, in whatever order: which partial product overflows, or is flushed, depends."""
        return _in_any_order([self, *(Interval.coerced(factor, self.steps) for factor in factors)])

    def elementwise(self, function: Callable[[Float64s], Float64s]) -> Interval:
        """A function that is no ufunc, and of which nobody knows the steps."""
        result: Interval = apply(function, (self,), self.steps)
        return result

    def monotone(self, function: Callable[[Float64s], Float64s], limit: float) -> Interval:
        """A monotone ``function`` of the interval, whose own error is at most ``limit`` ulp."""
        return Interval.hull([function(self.low), function(self.high)], self).widened(limit)

    def distance(self, value: Float64s) -> Float64s:
        """How far from ``value`` the interval reaches; NaN where either is undefined."""
        return np.maximum(self.high - value, value - self.low)

    def consumed(self) -> Interval:
        """Itself as an operand of the next step: what may have overflowed reaches infinity, what may be flushed zero.

        What certainly overflows keeps its finite end: a device with a wider intermediate result may have kept it too.
        """
        if not self.steps.ranged:
            return self
        largest, low, high = self.steps.largest, self.low, self.high
        over = np.isfinite(high) & (high > largest), np.isfinite(low) & (low < -largest)
        flushed = self.flushed()
        high = np.where(over[0], np.inf, flushed.high)
        low = np.where(over[1], -np.inf, flushed.low)
        return replace(self, low=low, high=high)

    def flushed(self) -> Interval:
        """Itself, reaching to zero where it may be subnormal."""
        tiny = self.steps.tiny
        low = np.where((self.low > 0) & (self.low < tiny), 0.0, self.low)
        return replace(self, low=low, high=np.where((self.high < 0) & (self.high > -tiny), 0.0, self.high))

    def rounded(self, inexact: NDArray[np.bool_] | np.bool_ = _NOWHERE) -> Interval:
        """Itself after a correctly rounded operation: what is known exactly and representable stays.

        ``inexact`` marks elements that are rounded all the same, in an order of the steps other than the formula's.
        """
        exact = (self.low == self.high) & (nearest(self.low, self.steps.stored) == self.low) & ~inexact
        return self._outward(*(np.where(exact, 0.0, self._roundings(end)) for end in (self.low, self.high)))

    def widened(self, limit: float) -> Interval:
        """Itself after an operation with an error of ``limit`` ulp; 0 for an exact one, 0.5 for a rounded one."""
        if limit == 0:
            return self
        if limit == msl.CORRECTLY_ROUNDED:
            return self.rounded()
        return self.by(*(limit * ulp(end, self.steps.computed) for end in (self.low, self.high)))

    def by(self, below: Float64s, above: Float64s) -> Interval:
        """Itself after an operation with these absolute errors at its two ends, and what storing it adds."""
        stored = [np.zeros(self.shape)] * 2
        if self.steps.stored != self.steps.computed:
            stored = [rounding_error(end, self.steps.stored) for end in (self.low, self.high)]
        return self._outward(below + stored[0], above + stored[1])

    def _roundings(self, end: Float64s) -> Float64s:
        error = self.steps.rounding(end)
        return error if self.steps.stored == self.steps.computed else error + rounding_error(end, self.steps.stored)

    def _outward(self, below: Float64s, above: Float64s) -> Interval:
        """Itself with its ends moved outward; infinite ends stay."""
        low = np.where(np.isfinite(self.low) & np.isfinite(below), self.low - below, self.low)
        high = np.where(np.isfinite(self.high) & np.isfinite(above), self.high + above, self.high)
        return replace(self, low=low, high=high)

    def _by(self, ufunc: Any, *operands: object) -> Interval:
        result: Interval = apply(ufunc, operands, self.steps)
        return result

    def _compared(self, ufunc: Any, other: object) -> Truth:
        result: Truth = apply(ufunc, (self, other), self.steps)
        return result


def apply(ufunc: Any, operands: Sequence[object], steps: Steps) -> Any:
    """A ufunc of operands of which at least one is an interval or a condition.

    Raises
    ------
    TypeError
        If nothing says what the ufunc does to intervals.
    """
    rule = UFUNCS.get(ufunc) or next(filter(None, (known(ufunc) for known in SPECIAL)), None)
    if rule is None:
        raise _unknown(ufunc.__name__, UFUNCS)
    with np.errstate(all="ignore"):
        return rule(*(Interval.coerced(operand, steps).consumed() for operand in operands))


def _in_any_order(factors: Sequence[Interval]) -> Interval:
    """The hull of the products in which each factor comes last."""
    if len(factors) == 2:
        return factors[0] * factors[1]
    found = [_in_any_order([*factors[:i], *factors[i + 1 :]]) * factor for i, factor in enumerate(factors)]
    return Interval.hull([end for each in found for end in (each.low, each.high)], *found)


def _any(*masks: Any) -> NDArray[np.bool_]:
    return np.asarray(reduce(np.logical_or, masks))


def _unknown(name: str, known: dict[Any, Any]) -> TypeError:
    allowed = ", ".join(sorted({function.__name__ for function in known}))
    return TypeError(f"function {name!r} has no rule for intervals; allowed: {allowed}")
