"""What NumPy's array functions do to intervals: selection, sums, and all that only moves elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from conformance.dtypes import dtype as dtype_of
from conformance.oracle import arithmetic
from conformance.oracle.intervals import FUNCTIONS, UFUNCS, Interval
from conformance.oracle.steps import Steps
from conformance.oracle.summation import HIGHER_ORDER, roundings
from conformance.oracle.truth import Truth


def where(condition: Any, chosen: Any, other: Any) -> Interval:
    """The one or the other, and the hull of both where the condition is undecided; selecting is exact."""
    steps = _steps((condition, chosen, other))
    if isinstance(condition, Interval):
        condition = condition != 0
    truth = Truth.coerced(condition, steps)
    a, b = (Interval.coerced(value, steps) for value in (chosen, other))
    both = Interval.hull([a.low, a.high, b.low, b.high], a, b)

    def select(of_a: Any, of_b: Any, of_both: Any) -> Any:
        return np.where(truth.surely, of_a, np.where(truth.maybe, of_both, of_b))

    low, high = select(a.low, b.low, both.low), select(a.high, b.high, both.high)
    return Interval(low, high, steps, select(a.loose, b.loose, both.loose))


def total(x: Any, axis: Any = None, keepdims: bool = False) -> Interval:
    """A sum in the type of the computation, in any order; then one rounding to the type that is stored.

    A sum of whole numbers that stays below 2**24 is exact. In a formula whose steps may be flushed so may subnormal
    terms and partial sums, one for each addition.
    """
    given = Interval.coerced(x, _steps((x,))).consumed()
    options: dict[str, Any] = {"axis": axis, "keepdims": keepdims}
    low, high = given.low.sum(**options), given.high.sum(**options)
    each = np.maximum(np.abs(given.low), np.abs(given.high))
    sizes = each.sum(**options)
    terms = given.size // max(np.size(low), 1)
    precision = dtype_of(given.steps.computed).precision
    error = HIGHER_ORDER * roundings(terms) * 2.0**-precision * sizes
    if given.steps.ranged:
        tiny = given.steps.tiny
        error = error + np.where(each < tiny, each, 0.0).sum(**options) + (terms - 1) * tiny
    whole = ((given.low == given.high) & (np.rint(given.low) == given.low)).all(**options) & (sizes < 2.0**precision)
    error = np.where(whole, 0.0, error)
    loose = np.broadcast_to(given.loose, given.shape).any(**options)
    whatever = np.broadcast_to(given.unknown, given.shape).any(**options)
    if given.steps.ranged:  # where the terms of one sign are beyond the range, some order of the others overflows
        most = dtype_of(given.steps.computed).max / (1.0 + HIGHER_ORDER * roundings(terms) * 2.0**-precision)
        positive, negative = (np.maximum(end, 0.0).sum(**options) for end in (given.high, -given.low))
        whatever = whatever | ((positive > most) & (low < most)) | ((negative > most) & (high > -most))
    some = whatever | (np.isnan(low) != np.isnan(high))
    low, high = np.where(some, -np.inf, low), np.where(some, np.inf, high)
    added = Interval(low, high, given.steps, np.asarray(loose | some))
    return added.by(error, error) if terms > 1 else added


def matmul(a: Interval, b: Interval) -> Interval:
    """A matrix product in the type of the computation, each element summed in any order, then stored.

    With middles and radii, |AB - ab| <= |a| R_b + R_a |b| + R_a R_b, and (K + 1) u |A||B| for the roundings of K
    products and their sum. Where an operand is not finite, or a partial sum may not be, the two ends tell, or nothing
    is known.
    """
    steps = a.steps
    computed = dtype_of(steps.computed)
    (middle_a, radius_a), (middle_b, radius_b) = _middle(a), _middle(b)
    value = np.matmul(middle_a, middle_b)
    size_a, size_b = np.abs(middle_a) + radius_a, np.abs(middle_b) + radius_b
    sizes = np.matmul(size_a, size_b)
    radius = np.matmul(np.abs(middle_a), radius_b) + np.matmul(radius_a, size_b)
    count = np.shape(a.low)[-1]
    error = HIGHER_ORDER * (count + 1) * 2.0**-computed.precision * sizes + count * steps.tiny
    at_ends = [np.matmul(end_a, end_b) for end_a, end_b in ((a.low, b.low), (a.high, b.high))]
    unlimited = ~np.isfinite(sizes)
    agreed = unlimited & ((at_ends[0] == at_ends[1]) | (np.isnan(at_ends[0]) & np.isnan(at_ends[1])))
    open_ended = np.matmul(np.asarray(a.unknown, float), np.ones_like(size_b)) > 0
    open_ended = open_ended | (np.matmul(np.ones_like(size_a), np.asarray(b.unknown, float)) > 0)
    whatever = (unlimited & ~(agreed & ~open_ended)) | (~unlimited & (sizes > computed.max))
    low = np.where(whatever, -np.inf, np.where(unlimited, at_ends[0], value - radius))
    high = np.where(whatever, np.inf, np.where(unlimited, at_ends[0], value + radius))
    return Interval(low, high, steps, whatever).by(error, error)


def _middle(x: Interval) -> tuple[Any, Any]:
    """The middle and the radius of each interval; one without ends has no middle."""
    middle = np.where(x.low == x.high, x.low, x.low / 2.0 + x.high / 2.0)
    return middle, np.where(x.low == x.high, 0.0, np.abs(x.high / 2.0 - x.low / 2.0))


def mean(x: Any, axis: Any = None, keepdims: bool = False) -> Interval:
    """A sum and a quotient."""
    added = total(x, axis, keepdims)
    return added / (np.size(x.low) // max(added.size, 1))


def clip(x: Any, low: Any = None, high: Any = None) -> Interval:
    """Exact."""
    steps = _steps((x, low, high))
    result = Interval.coerced(x, steps)
    if low is not None:
        result = arithmetic.maximum(result, Interval.coerced(low, steps))
    return result if high is None else arithmetic.minimum(result, Interval.coerced(high, steps))


def _structural(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that only moves elements: of the ends and of the mask alike."""

    def moved(*args: Any, **kwargs: Any) -> Any:
        steps = _steps((*args, *kwargs.values()))

        def of(part: str) -> Any:
            given = [_part(argument, part, steps) for argument in args]
            return function(*given, **{key: _part(value, part, steps) for key, value in kwargs.items()})

        low, high, loose = of("low"), of("high"), of("loose")
        if isinstance(low, (list, tuple)):
            return [Interval(a, b, steps, mask) for a, b, mask in zip(low, high, loose, strict=True)]
        return Interval(low, high, steps, loose.astype(bool))

    return moved


def _part(argument: Any, part: str, steps: Steps) -> Any:
    """One part of the intervals in an argument; whatever else it is stays."""
    if isinstance(argument, Truth):
        argument = Interval.coerced(argument, steps)
    if isinstance(argument, Interval):
        return np.broadcast_to(getattr(argument, part), argument.shape)
    if isinstance(argument, (list, tuple)) and any(isinstance(item, (Interval, Truth)) for item in argument):
        return [_part(Interval.coerced(item, steps), part, steps) for item in argument]
    return argument


def _steps(arguments: tuple[Any, ...]) -> Steps:
    """The arithmetic of the first interval or condition among the arguments."""
    for argument in arguments:
        if isinstance(argument, (Interval, Truth)):
            return argument.steps
        if isinstance(argument, (list, tuple)):
            for item in argument:
                if isinstance(item, (Interval, Truth)):
                    return item.steps
    raise TypeError("no argument is an interval")


_MOVING = (
    "reshape broadcast_to transpose moveaxis swapaxes expand_dims squeeze flip roll ravel take repeat tile concatenate "
    "stack split array_split atleast_1d pad rot90 diagonal copy"
)
FUNCTIONS.update({getattr(np, name): _structural(getattr(np, name)) for name in _MOVING.split()})

UFUNCS[np.matmul] = matmul

FUNCTIONS.update(
    {
        np.where: where,
        np.sum: total,
        np.mean: mean,
        np.clip: clip,
        np.zeros_like: lambda x, **options: np.zeros(x.shape),
        np.ones_like: lambda x, **options: np.ones(x.shape),
        np.full_like: lambda x, value, **options: where(np.ones(x.shape, bool), value, x),
        np.shape: lambda x: x.shape,
        np.ndim: lambda x: len(x.shape),
        np.size: lambda x: x.size,
        np.real: lambda x: x,
        np.imag: lambda x: np.zeros(x.shape),
        np.iscomplexobj: lambda x: False,
        np.isrealobj: lambda x: True,
    }
)
