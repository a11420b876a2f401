"""The alternatives among which an element of an elementwise op may choose: conforming, operand flushed, result flushed.

Section 8.1 of the Metal Shading Language specification lets a device flush subnormal operands and results of
arithmetic; section 8.5 lists the results that are then right, and leaves the sign of a flushed zero open. What is
subnormal is decided in the type of the *computation*, float32 for float16 too, so a float16 subnormal is never flushed:
not as an operand (its conversion to float is exact), nor as a result (section 8.6: "may not be flushed").
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conformance.dtypes import dtype as dtype_of
from conformance.op import Acceptance, Computation, Params
from conformance.oracle.operands import broadcast_to, compute_type, evaluated, in_common_type, operand_types, operands
from conformance.oracle.units import Float64s, rounding_error, ulp

Operands = Sequence[NDArray[Any]]

Error = Callable[[Operands, NDArray[Any]], Float64s]
"""Maps operands and true value to the largest absolute error of the computation, before the final rounding."""

Undefined = Callable[..., NDArray[np.bool_]]
"""``undefined(dtype, *operands)`` is the mask of elements for which no value is documented; ``dtype`` is the name of
the type that the operands were converted to."""


@dataclass(frozen=True)
class Rules:
    """What holds for exceptional values of one op.

    Attributes
    ----------
    signed_zero
        Whether the sign of an exactly zero result counts: it does where IEEE 754 or C99 Annex F define it.
    unruled
        Operands for which no standard gives a value, such as -inf for silu, whose formula is -inf * 0 there: beside the
        reference's limit, NaN and the infinities are right.
    two_sided_poles
        Whether no standard gives a value at finite operands with an infinite result either, because the limits from
        the two sides differ.
    undefined
        Where PyTorch documents no value at all, as of an integer's quotient by zero: any value is right.
    """

    signed_zero: bool = False
    unruled: tuple[float, ...] = ()
    two_sided_poles: bool = False
    undefined: Undefined | None = None


def alternatives(
    computation: Computation, error: Callable[[Params | None], Error], rules: Rules, *, whole: bool = False
) -> list[Acceptance]:
    """All alternatives of an elementwise op whose computation errs by at most an error.

    The tolerance of an alternative is that error plus, where the result type is narrower than the type of the
    computation, the rounding to it. ``error`` makes the error function for parameters, None for the given ones: where
    scalar parameters may be taken in the common type there is an alternative for it. ``whole`` says that elements of
    the result may depend on several elements of an operand though the shapes do not tell.
    """
    given = operands(computation)
    found = _with_parameters(computation, given, error(None), rules, None, whole)
    found += undefined(computation, given, rules, found[0].value.shape)
    narrow = in_common_type(computation)
    if narrow is not None:
        found += _with_parameters(computation, given, error(narrow), rules, narrow, whole)
    return found


def undefined(computation: Computation, given: Operands, rules: Rules, shape: tuple[int, ...]) -> list[Acceptance]:
    """Anything, where no value is documented.

    The rule speaks of the operands' elements broadcast; of a gradient, whose ``shape`` may be narrower, an element is a
    sum, of which one term is enough.
    """
    if rules.undefined is None:
        return []
    numbers = {name: computation.params[name] for name in computation.scalars}
    where = np.asarray(rules.undefined(computation.common or computation.input_dtypes[0], *given, **numbers))
    where = _any_to(where, shape)
    return [anything("no value is documented here", where)] if where.any() else []


def _any_to(where: NDArray[np.bool_], shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """The elements of an array of ``shape``, broadcast from it to the shape of ``where``, that any such place is of."""
    extra = max(where.ndim - len(shape), 0)
    kept = np.any(where, axis=tuple(range(extra)))
    due = shape[len(shape) - kept.ndim :]
    added = tuple(axis for axis, size in enumerate(due) if size == 1 != kept.shape[axis])
    return np.asarray(np.any(kept, axis=added, keepdims=True))


def anything(reason: str, where: NDArray[np.bool_]) -> Acceptance:
    """Any number, and NaN, at some elements."""
    return Acceptance(np.asarray(0.0), np.asarray(np.inf), reason, where)


def _with_parameters(
    computation: Computation, given: Operands, error: Error, rules: Rules, params: Params | None, whole: bool
) -> list[Acceptance]:
    reference = evaluated(computation, params)
    value = np.asarray(reference(*given))
    reason = "conforming" if params is None else "a scalar parameter in the tensors' common type"
    elementwise = not whole and broadcast_to(given, value.shape)
    if elementwise:
        given = np.broadcast_arrays(*given)
    found = [_conforming(computation, given, value, error, reason, None, rules.signed_zero)]
    found += unruled(computation, given, value, rules)
    flushing = _elements_flushed if elementwise else _whole_flushed
    found += flushing(computation, reference, given, error)
    found += _result_flushed(computation, given, value, error)
    return found


def unruled(computation: Computation, given: Operands, value: NDArray[Any], rules: Rules) -> list[Acceptance]:
    """NaN and the infinities, where the rules of an elementwise op say that no standard gives a value."""
    if not broadcast_to(given, value.shape):
        return []
    given = [*given, *(np.asarray(computation.params[name]) for name in computation.scalars)]
    where = np.logical_or.reduce([np.broadcast_to(np.isin(x, rules.unruled), value.shape) for x in given])
    if rules.two_sided_poles:
        where |= np.isinf(value) & np.logical_and.reduce([np.broadcast_to(np.isfinite(x), value.shape) for x in given])
    if not where.any():
        return []
    return [_fixed(other, "no standard gives a value here", where) for other in (np.nan, np.inf, -np.inf)]


def _conforming(
    computation: Computation,
    given: Operands,
    value: NDArray[Any],
    error: Error,
    reason: str,
    where: NDArray[np.bool_] | None,
    signed_zero: bool,
) -> Acceptance:
    tolerance = error(given, value)
    if compute_type(computation.dtype) != computation.dtype:
        last = final_rounding(value, tolerance, computation.dtype)
        tolerance = np.where(np.isfinite(tolerance), tolerance + last, tolerance)
    return Acceptance(value, tolerance, reason, where, signed_zero)


def final_rounding(value: NDArray[Any], error: Float64s, dtype: str) -> Float64s:
    """The error of rounding a computed result to ``dtype``: as of the true value, unless the result can be far larger.

    It can near a zero of the function, where the error of the computation exceeds the ulp of the true value.
    """
    far = error > ulp(value, dtype)
    return rounding_error(np.where(far, np.abs(value) + error, value), dtype)


def _fixed(value: float, reason: str, where: NDArray[np.bool_]) -> Acceptance:
    return Acceptance(np.asarray(value), np.asarray(0.0), reason, where)


def _elements_flushed(
    computation: Computation, reference: Callable[..., NDArray[Any]], given: Operands, error: Error
) -> list[Acceptance]:
    """The results with subnormal operands flushed, any of them to a zero of either sign, element by element.

    Where that is zero, an operand that a comparison took for zero may be returned as it is.
    """
    types = operand_types(computation)
    where = np.logical_or.reduce([_subnormal(x, name) for x, name in zip(given, types, strict=True)])
    if not where.any():
        return []
    found = []
    vanishing = np.zeros(where.shape, np.bool_)
    for chosen in _choices(tuple(x[where] for x in given), types):
        value = np.asarray(reference(*chosen))
        at = _conforming(computation, chosen, value, error, "operand flushed", where, False)
        vanishing[where] |= value == 0
        whole, tolerance = np.zeros(where.shape, value.dtype), np.zeros(where.shape)
        whole[where], tolerance[where] = at.value, at.tolerance
        found.append(Acceptance(whole, tolerance, at.reason, where))
    for x, name in zip(given, types, strict=True):
        kept = vanishing & _subnormal(x, name)
        if kept.any():
            found.append(Acceptance(x, np.asarray(0.0), "an operand that a comparison takes for zero", kept))
    return found


def _whole_flushed(
    computation: Computation, reference: Callable[..., NDArray[Any]], given: Operands, error: Error
) -> list[Acceptance]:
    """The same of an op that is not elementwise: all elements of an operand are flushed, or none."""
    return [
        _conforming(computation, chosen, np.asarray(reference(*chosen)), error, "operand flushed", None, False)
        for chosen in _choices(given, operand_types(computation))
    ]


def _choices(given: Operands, types: Sequence[str]) -> Iterator[Operands]:
    """The operands with their subnormal elements flushed: every choice but the one that flushes nothing."""
    options = [[x, *_flushed(x, name)] for x, name in zip(given, types, strict=True)]
    choices = product(*options)
    next(choices)
    yield from choices


def _flushed(x: NDArray[Any], name: str) -> list[NDArray[Any]]:
    """The two results of flushing, with +0 and with -0; the subnormal parts of a complex number keep their signs."""
    subnormal = _subnormal(x, name)
    if not subnormal.any():
        return []
    if np.iscomplexobj(x):
        parts = np.ascontiguousarray(x).view(np.float64)
        small = _small(parts, dtype_of(name).tiny)
        return [np.where(small, np.copysign(0.0, parts), parts).view(np.complex128).reshape(x.shape)]
    return [np.where(subnormal, zero, x) for zero in (0.0, -0.0)]


def _result_flushed(computation: Computation, given: Operands, value: NDArray[Any], error: Error) -> list[Acceptance]:
    """Zero, where a computed result can be subnormal before it is converted to the result type."""
    computed = dtype_of(compute_type(computation.dtype))
    if computed.kind != "float":
        return []
    candidates = (np.abs(value) < 2 * computed.tiny) & (value != 0)
    if not np.any(candidates):
        return []
    where = candidates & (np.abs(value) - error(given, value) < computed.tiny)
    return [_fixed(0.0, "result flushed", where)]


def _subnormal(x: NDArray[Any], name: str) -> NDArray[np.bool_]:
    """Where an operand of type ``name`` is subnormal in the type of the computation; nowhere for integers."""
    described = dtype_of(compute_type(name))
    if described.kind not in ("float", "complex"):
        return np.zeros(x.shape, bool)
    if np.iscomplexobj(x):
        return _small(x.real, described.tiny) | _small(x.imag, described.tiny)
    return _small(x, described.tiny)


def _small(x: Float64s, tiny: float) -> NDArray[np.bool_]:
    small: NDArray[np.bool_] = (x != 0) & (np.abs(x) < tiny)
    return small
