"""Judging: how far each element of a result is from right, in units of its bound and in ulp."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conformance.dtypes import DType
from conformance.dtypes import dtype as dtype_of
from conformance.formats import bits_of_array, hexadecimal, narrowed, number_text, widened
from conformance.op import Acceptance, Bound, Computation
from conformance.oracle.operands import in_compute_type
from conformance.oracle.units import Float64s, ulp


@dataclass(frozen=True)
class Judgement:
    """The verdict on every element of one result.

    Attributes
    ----------
    units
        Error of each element in units of its bound, the least over the alternatives; at most 1 is right. Infinite where
        no number measures the mismatch: a NaN, an infinity or the sign of a zero where something else was due.
    ulp
        Error of each element in ulp of the result type against the conforming value; infinite as ``units`` is.
    worst
        Flat index of the element with the largest ``units`` (of those, the largest ``ulp``); None for an empty result.
    message
        The worst element in words; empty if the result is empty.
    """

    units: Float64s
    ulp: Float64s
    worst: int | None
    message: str

    @property
    def failing(self) -> NDArray[np.bool_]:
        """Give the mask of elements outside their bound."""
        return ~(self.units <= 1.0)

    @property
    def passed(self) -> bool:
        """Whether every element is right."""
        return not bool(np.any(self.failing))

    @property
    def worst_units(self) -> float | None:
        """The largest ``units``: 0.0 for an empty result, None (for JSON has no infinity) if it is infinite."""
        return _finite_at(self.units, self.worst)

    @property
    def worst_ulp(self) -> float | None:
        """The ``ulp`` of the worst element: 0.0 for an empty result, None if it is infinite."""
        return _finite_at(self.ulp, self.worst)


def judge(computation: Computation, got: NDArray[Any], bound: Bound) -> Judgement:
    """Judge a result element by element.

    Parameters
    ----------
    computation
        What was computed; its ``dtype`` is the result's.
    got
        The result as stored, of that type (bfloat16 as :mod:`ml_dtypes` has it).
    bound
        The error that a right implementation may have.

    Raises
    ------
    ValueError
        If ``got`` has another type or shape than the result must have.
    """
    result = dtype_of(computation.dtype)
    if got.dtype != result.numpy:
        raise ValueError(f"the result to judge must have dtype {result.name}; given: {got.dtype}")
    with np.errstate(all="ignore"):
        accepted = bound.accept(computation)
        first = accepted[0]
        if got.shape != np.shape(first.value):
            raise ValueError(f"the result to judge must have shape {np.shape(first.value)}; given: {got.shape}")
        number = _number(np.atleast_1d(got), result)
        errors = _errors(number, first, result)
        units = _in_units(errors, first)
        for other in accepted[1:]:
            units = np.minimum(units, _in_units(_errors(number, other, result), other))
        if np.any(units > 1.0) and (direct := in_compute_type(computation)) is not None:
            for other in bound.accept(direct):
                units = np.minimum(units, _in_units(_errors(number, other, result), other))
        in_ulp = errors / ulp(first.value, result.name) if result.precision else errors
    in_ulp = np.where(np.isnan(in_ulp), np.where(errors == 0, 0.0, np.inf), in_ulp)
    units, in_ulp = units.reshape(got.shape), in_ulp.reshape(got.shape)
    worst = _worst(units, in_ulp)
    message = "" if worst is None else _describe(computation, got, bound, first, units, in_ulp, worst)
    return Judgement(units, in_ulp, worst, message)


def _number(got: NDArray[Any], result: DType) -> NDArray[Any]:
    """The result upcast exactly: integers and bool stay, floats become float64 and complex ones complex128."""
    return widened(got, result) if result.precision else got


def _errors(got: NDArray[Any], accepted: Acceptance, result: DType) -> Float64s:
    """The distance of ``got`` from an accepted value; infinite where only a pattern could match and does not."""
    value = accepted.value
    if result.kind in ("int", "bool"):
        return np.where(got == value, 0.0, np.maximum(np.abs(got.astype(np.float64) - value), 1.0))
    if result.kind != "complex":
        return _real_errors(got, value, result, accepted.signed_zero)
    if not accepted.by_part:
        return _complex_errors(got, value, result)
    value = np.asarray(value, np.complex128)
    real, imaginary = (
        _real_errors(*parts, result, accepted.signed_zero) for parts in ((got.real, value.real), (got.imag, value.imag))
    )
    return np.maximum(real, imaginary)


def _real_errors(got: Float64s, value: Float64s, result: DType, signed_zero: bool) -> Float64s:
    error: Float64s = np.asarray(np.abs(got - value))  # of a scalar result too, which NumPy gives without an array
    special = ~np.isfinite(error)
    if np.any(special):
        _patterns(error, got, value, special, result)
    if signed_zero:
        zeros = (got == 0) & (value == 0)
        error[zeros & (np.signbit(got) != np.signbit(value))] = np.inf
    return error


def _patterns(error: Float64s, got: Float64s, value: Float64s, special: NDArray[np.bool_], result: DType) -> None:
    """Rewrite the ``special`` errors, where a NaN or an infinity is involved.

    An infinite result of a finite value stands for the first number beyond the format's range, 2**(emax + 1), and for
    all that follow: so overflow is judged by the same tolerance as everything else.
    """
    value = np.broadcast_to(value, got.shape)[special]
    got = got[special]
    overflow = 2.0 ** (result.emax + 1)
    beyond = np.where(np.sign(got) == np.sign(value), np.maximum(overflow - np.abs(value), 0.0), np.inf)
    matches = (np.isnan(got) & np.isnan(value)) | (got == value)
    error[special] = np.where(matches, 0.0, np.where(np.isinf(got) & np.isfinite(value), beyond, np.inf))


def _complex_errors(got: NDArray[np.complex128], value: NDArray[np.complex128], result: DType) -> Float64s:
    """The modulus of the error; infinite where only one of the two is infinite, or undefined.

    By C99 Annex G a number with an infinite part is infinite whatever its other part is. A value with a part at or
    beyond the largest finite number may be infinite too.
    """
    error = np.abs(got - value)
    value = np.broadcast_to(value, got.shape)
    got_infinite = np.isinf(got.real) | np.isinf(got.imag)
    due_infinite = (np.abs(value.real) >= result.max) | (np.abs(value.imag) >= result.max)
    is_infinite = np.isinf(value.real) | np.isinf(value.imag)
    both_undefined = np.isnan(got) & np.isnan(value) & ~got_infinite & ~is_infinite
    error = np.where(got_infinite & due_infinite | both_undefined, 0.0, error)
    return np.where(np.isnan(error), np.inf, error)


def _in_units(errors: Float64s, accepted: Acceptance) -> Float64s:
    units = np.where(errors == 0, 0.0, errors / accepted.tolerance)
    units = np.where(np.isnan(units), np.where(np.isinf(accepted.tolerance), 0.0, np.inf), units)
    return units if accepted.where is None else np.where(accepted.where, units, np.inf)


def _worst(units: Float64s, in_ulp: Float64s) -> int | None:
    if units.size == 0:
        return None
    candidates = np.flatnonzero(units == units.max())
    return int(candidates[np.argmax(in_ulp.reshape(-1)[candidates])])


def _finite_at(errors: Float64s, index: int | None) -> float | None:
    if index is None:
        return 0.0
    error = float(errors.reshape(-1)[index])
    return error if math.isfinite(error) else None


def _describe(
    computation: Computation,
    got: NDArray[Any],
    bound: Bound,
    conforming: Acceptance,
    units: Float64s,
    in_ulp: Float64s,
    worst: int,
) -> str:
    """One sentence about the worst element, with numbers that identify its inputs and result exactly."""
    index = np.unravel_index(worst, got.shape)
    operands = [
        _exact(narrowed(array[index], dtype_of(name)), name)
        for array, name in zip(computation.inputs, computation.input_dtypes, strict=True)
        if array.shape == got.shape
    ]
    expected = np.broadcast_to(conforming.value, got.shape)[index]
    tolerance = float(np.broadcast_to(conforming.tolerance, got.shape)[index])
    where = f"at [{', '.join(map(str, map(int, index)))}]" + (f" of input {', '.join(operands)}" if operands else "")
    error = f"{units[index]:.4g} times the bound ({bound.name}), {in_ulp[index]:.4g} ulp"
    return f"{where}: got {_exact(got[index], computation.dtype)}, expected {expected} +- {tolerance:.3g}: {error}"


def _exact(number: Any, dtype: str) -> str:
    """A stored number in decimal and as its bits."""
    described = dtype_of(dtype)
    bits = bits_of_array(np.asarray(number).reshape(1), described)
    texts = [f"{number_text(int(word), described)} [{hexadecimal(int(word), described)}]" for word in bits]
    return " + ".join(texts) + (" i" if described.kind == "complex" else "")
