"""The alternatives among which an element of an elementwise op may choose: conforming, operand flushed, result flushed.

Section 8.1 of the Metal Shading Language specification lets a device flush subnormal operands and results of
arithmetic; section 8.5 lists the results that are then right, and leaves the sign of a flushed zero open. What is
subnormal is decided in the type of the *computation*, float32 for float16 too, so a float16 subnormal is never flushed:
not as an operand (its conversion to float is exact), nor as a result (section 8.6: "may not be flushed").
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conformance.dtypes import dtype as dtype_of
from conformance.op import Acceptance, Computation
from conformance.oracle.units import Float64s, rounding_error, ulp

Error = Callable[[NDArray[Any], NDArray[Any]], Float64s]
"""Maps operand and true value to the largest absolute error of the computation, before the final rounding."""

_COMPUTED_IN = {"float16": "float32", "bfloat16": "float32"}


def compute_type(dtype: str) -> str:
    """The type in which results of type ``dtype`` are computed: PyTorch's opmath type, float32 for the small ones."""
    return _COMPUTED_IN.get(dtype, dtype)


def operand(computation: Computation) -> NDArray[Any]:
    """The operand as the op sees it: integers and bool are first converted to a floating result type, rounding once.

    Raises
    ------
    ValueError
        If the computation has not exactly one operand.
    """
    if len(computation.inputs) != 1:
        raise ValueError(f"an elementwise bound judges ops with 1 operand; given: {len(computation.inputs)}")
    given, (given_dtype,) = computation.inputs[0], computation.input_dtypes
    result = dtype_of(computation.dtype)
    if dtype_of(given_dtype).kind in ("int", "bool") and result.kind in ("float", "complex"):
        return given.astype(np.float32).astype(np.float64)
    return given


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
    """

    signed_zero: bool = False
    unruled: tuple[float, ...] = ()
    two_sided_poles: bool = False


def alternatives(computation: Computation, error: Error, rules: Rules) -> list[Acceptance]:
    """All alternatives of an elementwise op whose computation errs by at most ``error``.

    The tolerance of an alternative is that error plus, where the result type is narrower than the type of the
    computation, the rounding to it.
    """
    x = operand(computation)
    value = computation.reference(x, **computation.params)
    found = [_conforming(computation, x, value, error, "conforming", None, rules.signed_zero)]
    unruled = np.isin(x, rules.unruled)
    if rules.two_sided_poles:
        unruled |= np.isinf(value) & np.isfinite(x)
    if np.any(unruled):
        found += [_fixed(other, "no standard gives a value here", unruled) for other in (np.nan, np.inf, -np.inf)]
    found += _operand_flushed(computation, x, error)
    found += _result_flushed(computation, x, value, error)
    return found


def _conforming(
    computation: Computation,
    x: NDArray[Any],
    value: NDArray[Any],
    error: Error,
    reason: str,
    where: NDArray[np.bool_] | None,
    signed_zero: bool,
) -> Acceptance:
    tolerance = error(x, value)
    if compute_type(computation.dtype) != computation.dtype:
        tolerance = tolerance + _final_rounding(value, tolerance, computation.dtype)
    return Acceptance(value, tolerance, reason, where, signed_zero)


def _final_rounding(value: NDArray[Any], error: Float64s, dtype: str) -> Float64s:
    """The error of rounding a computed result to ``dtype``: as of the true value, unless the result can be far larger.

    It can near a zero of the function, where the error of the computation exceeds the ulp of the true value.
    """
    far = error > ulp(value, dtype)
    return rounding_error(np.where(far, np.abs(value) + error, value), dtype)


def _fixed(value: float, reason: str, where: NDArray[np.bool_]) -> Acceptance:
    return Acceptance(np.asarray(value), np.asarray(0.0), reason, where)


def _operand_flushed(computation: Computation, x: NDArray[Any], error: Error) -> list[Acceptance]:
    """The results of both zeros, for operands that are subnormal in the type of the computation.

    The subnormal parts of a complex operand become zeros of their sign.
    """
    given = dtype_of(computation.input_dtypes[0])
    if given.precision == 0:
        return []
    if given.kind == "complex":
        parts = np.ascontiguousarray(x).view(np.float64)
        subnormal = _subnormal(parts, given.name)
        flushed = np.where(subnormal, np.copysign(0.0, parts), parts).view(np.complex128)
        where = np.asarray(subnormal.reshape(*x.shape, 2).any(axis=-1))
        zeros = [flushed.reshape(x.shape)]
    else:
        where = _subnormal(x, compute_type(given.name))
        zeros = [np.array([0.0]), np.array([-0.0])]
    if not np.any(where):
        return []
    found = []
    for zero in zeros:
        value = computation.reference(zero, **computation.params)
        found.append(_conforming(computation, zero, value, error, "operand flushed", where, False))
    return found


def _result_flushed(computation: Computation, x: NDArray[Any], value: NDArray[Any], error: Error) -> list[Acceptance]:
    """Zero, where a computed result can be subnormal before it is converted to the result type."""
    computed = dtype_of(compute_type(computation.dtype))
    if computed.kind != "float":
        return []
    candidates = (np.abs(value) < 2 * computed.tiny) & (value != 0)
    if not np.any(candidates):
        return []
    where = candidates & (np.abs(value) - error(x, value) < computed.tiny)
    return [_fixed(0.0, "result flushed", where)]


def _subnormal(x: Float64s, dtype: str) -> NDArray[np.bool_]:
    subnormal: NDArray[np.bool_] = (x != 0) & (np.abs(x) < dtype_of(dtype).tiny)
    return subnormal
