"""The bound of gradients: a running error analysis of the vector-Jacobian product itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conformance.dtypes import dtype as dtype_of
from conformance.op import Acceptance, Bound, Computation, Params, ReferenceFunction
from conformance.oracle.acceptance import Rules, anything, final_rounding, undefined, unruled
from conformance.oracle.bounds import reach
from conformance.oracle.conditioned import Normwise
from conformance.oracle.intervals import Interval
from conformance.oracle.operands import broadcast_to, compute_type, in_common_type, operand_types, operands, parameters
from conformance.oracle.overflow import may_overflow
from conformance.oracle.steps import Steps
from conformance.oracle.units import Float64s

_NO_RULES = Rules()

_LOPSIDED = 2.0
"""By how much an interval may reach farther to one side of the true value than to the other, and count as symmetric."""


@dataclass(frozen=True)
class RunningError:
    """A gradient inherits the errors of the formula of its vector-Jacobian product, step by step.

    The computation's reference is evaluated twice: on the operands, for the true value, and on intervals in their
    place, for what a conforming device may make of it. Each step is granted what its row of the Metal tables permits,
    may be flushed, and may overflow; where an overflow halfway leaves the formula without a value, any is right.

    Attributes
    ----------
    source
        Where the formula is from.
    composed
        Whether torch composes the backward of ops, so that each step is rounded to the tensors' type; else one kernel
        computes it in float32 and rounds once; its products may be made in any order.
    factor
        The relative error that a device's documentation grants one factor of the formula beyond the Metal tables.
    whole
        Whether elements of the result depend on several of an operand, though the shapes may not tell: then what is
        said of an operand's exceptional element says nothing of the result's element at its place.
    mixing
        Whether each element comes of many, in an order that is the device's: where an infinity or a NaN is due any of
        them is right, for which infinities meet, or are multiplied by zero, depends on it.
    rules
        What holds for exceptional operands, those of the gradient (gradient, result, operands). The sign of a zero
        never counts: that of a flushed one is open.
    """

    source: str
    composed: bool = False
    rules: Rules = _NO_RULES
    mixing: bool = False
    factor: float = 0.0
    whole: bool = False

    @property
    def name(self) -> str:
        """Say how it is computed."""
        return "running error" + (", each step rounded" if self.composed else "")

    def accept(self, computation: Computation) -> list[Acceptance]:
        """Accept whatever a conforming device may make of the formula.

        Raises
        ------
        TypeError
            If the formula calls what has no rule for intervals, or the operands are complex.
        """
        first, *narrower = self._steps(computation)
        found = self._with_parameters(computation, parameters(computation), first, "conforming")
        narrow = in_common_type(computation)
        if narrow is not None:
            found += self._with_parameters(computation, narrow, first, "a scalar parameter in the tensors' common type")
        for steps in narrower:
            found += self._with_parameters(computation, parameters(computation), steps, "a step in an operand's type")
        if self.whole:
            return found
        given = operands(computation)
        value = found[0].value
        found += undefined(computation, given, self.rules, value.shape)
        found += unruled(computation, given, value, self.rules)
        if self.mixing:
            found += _any_not_finite(value)
        return [*found, *_at_nan(given, value), *_taken_for_zero(given, value, first.tiny)]

    def _with_parameters(self, computation: Computation, params: Params, steps: Steps, reason: str) -> list[Acceptance]:
        given = operands(computation)
        with np.errstate(all="ignore"):
            value = np.asarray(computation.reference(*given, **params))
            standing = [_standing(x, name, steps) for x, name in zip(given, operand_types(computation), strict=True)]
            interval = Interval.coerced(computation.reference(*standing, **params), steps).flushed()
            return _accepted(self._with_factor(interval), value, computation.dtype, reason)

    def _with_factor(self, interval: Interval) -> Interval:
        if not self.factor:
            return interval
        low, high = (self.factor * np.abs(end) for end in (interval.low, interval.high))
        return replace(interval, low=interval.low - low, high=interval.high + high)

    def _steps(self, computation: Computation) -> list[Steps]:
        """How the steps are rounded: where torch composes ops, one of a single operand is so to that operand's type."""
        common = computation.common or computation.dtype
        if not self.composed or dtype_of(common).kind != "float":
            computed = compute_type(computation.dtype)
            return [Steps(computed, computed, ranged=True, reordered=not self.composed)]
        stored = [common, *sorted({*computation.input_dtypes} - {common})]
        narrower = [name for name in stored if 0 < dtype_of(name).precision <= dtype_of(common).precision]
        return [Steps(compute_type(name), name, ranged=True) for name in narrower]


@dataclass(frozen=True)
class InRange:
    """A formula of complex numbers: judged by its modulus, where no step may overflow.

    Annex G of C99 asks of a few operations that infinite parts make an infinite number, which no GPU library follows:
    what comes of an overflow may be a NaN, and is not judged. ``orders`` are the formula with its steps in other orders
    that are as right.
    """

    modulus: Normwise
    orders: tuple[ReferenceFunction, ...] = ()

    @property
    def name(self) -> str:
        """That of the bound of the modulus."""
        return self.modulus.name

    @property
    def source(self) -> str:
        """That of the bound of the modulus."""
        return self.modulus.source

    def accept(self, computation: Computation) -> list[Acceptance]:
        """Accept what lies within the bound of the modulus, and anything after an overflow."""
        found = self.modulus.accept(computation)
        where = may_overflow(computation)
        for formula in self.orders:
            where = where | may_overflow(replace(computation, reference=formula))
        return [*found, anything("a step of the formula may overflow", where)] if where.any() else found


@dataclass(frozen=True)
class ManyFactors:
    """The gradient of a product of many factors: where one is 0 it is made of products of the others, in any order.

    Where those above 1 leave the range of the type that is stored by themselves, some order has an infinity, and NaN
    where that meets the 0: nothing is known. ``dim`` is the parameter that names the dimension, None for all.
    """

    bound: Bound
    dim: str = "dim"

    @property
    def name(self) -> str:
        """That of the bound elsewhere."""
        return self.bound.name

    @property
    def source(self) -> str:
        """That of the bound elsewhere."""
        return self.bound.source

    def accept(self, computation: Computation) -> list[Acceptance]:
        """Accept by the bound, and anything where an order of the factors overflows."""
        found = self.bound.accept(computation)
        factors = np.abs(operands(computation)[2])
        axis = computation.params.get(self.dim)
        with np.errstate(over="ignore"):
            largest = np.prod(np.maximum(factors, 1.0), axis=axis, keepdims=True)
        where = np.broadcast_to((largest > dtype_of(computation.dtype).max) & (factors == 0).any(), factors.shape)
        return [*found, anything("some order of the factors overflows", where)] if where.any() else found


def _accepted(interval: Interval, value: Float64s, dtype: str, reason: str) -> list[Acceptance]:
    """The value with the longer reach of the interval; where that is far longer than the other, the interval itself."""
    narrower = dtype_of(dtype).precision < dtype_of(interval.steps.stored).precision

    def rounded(at: Float64s, error: Float64s) -> Float64s:
        last = final_rounding(at, error, dtype) if narrower else np.zeros(at.shape)
        return np.asarray(np.where(np.isfinite(error), error + last, error))

    longer = reach(interval, value)
    shorter = np.minimum(interval.high - value, value - interval.low)
    lopsided = np.isfinite(longer) & np.isfinite(shorter) & (longer > _LOPSIDED * shorter)
    found = [Acceptance(value, rounded(value, np.where(lopsided, np.maximum(shorter, 0.0), longer)), reason)]
    if lopsided.any():
        middle, half = (interval.low + interval.high) / 2.0, (interval.high - interval.low) / 2.0
        found.append(Acceptance(middle, rounded(middle, half), "within what the steps may lead to", lopsided))
    return found


def _at_nan(given: Sequence[NDArray[Any]], value: Float64s) -> list[Acceptance]:
    """NaN, 0 or the incoming gradient, where an operand is NaN and the formula does not make NaN of it.

    There a comparison with NaN chose a branch, and which one depends on how it is written. The result of the
    forward, second of three operands or more, excuses nothing: NaN there is the device's own doing.
    """
    gradient = given[0]
    inputs = given[2:] or given[1:]
    undefined_at = [np.isnan(x) for x in inputs if x.dtype.kind == "f"]
    if not undefined_at or not broadcast_to(given, value.shape):
        return []
    of_formula = np.isnan(value) & ~np.isnan(gradient)
    where = np.broadcast_to(np.logical_or.reduce(np.broadcast_arrays(*undefined_at)), value.shape) & ~of_formula
    if not where.any():
        return []
    branches = (np.asarray(np.nan), np.asarray(0.0), np.broadcast_to(gradient, value.shape))
    return [Acceptance(other, np.asarray(0.0), "a comparison with NaN chooses a branch", where) for other in branches]


def _any_not_finite(value: Float64s) -> list[Acceptance]:
    """NaN and both infinities, where the true value is one of them."""
    where = ~np.isfinite(value)
    if not where.any():
        return []
    reason = "which infinities meet depends on the order of the steps"
    return [Acceptance(np.asarray(other), np.asarray(0.0), reason, where) for other in (np.nan, np.inf, -np.inf)]


def _taken_for_zero(given: Sequence[NDArray[Any]], value: Float64s, tiny: float) -> list[Acceptance]:
    """A subnormal incoming gradient, returned as it is by a step that compares it with zero, as xlogy does."""
    gradient = given[0]
    if not broadcast_to(given, value.shape):
        return []
    where = (gradient != 0) & (np.abs(gradient) < tiny) & (np.abs(value) < tiny)
    if not where.any():
        return []
    kept = np.broadcast_to(gradient, value.shape)
    return [Acceptance(kept, np.asarray(0.0), "a subnormal gradient that a comparison takes for zero", where)]


def _standing(x: NDArray[Any], name: str, steps: Steps) -> Interval | NDArray[Any]:
    """What stands for an operand: an interval for numbers, the array itself for conditions and for indices."""
    if dtype_of(name).kind in ("bool", "int"):
        return x
    if np.iscomplexobj(x):
        raise TypeError(f"a running error analysis is for real operands; given: {name}, which Normwise judges")
    return Interval.exact(x, steps)
