"""Conditioning without derivatives: how much the true value changes when operands move by part of an ulp."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conformance.oracle.units import Float64s, ulp

Operands = Sequence[NDArray[Any]]
Function = Callable[..., NDArray[Any]]

NEAR = (71 / 128, 88 / 128)
"""By how many ulp an operand is moved to measure conditioning. Not whole ones, and two of them: the ulp of a large
operand can be close to a whole number of a function's periods, and a step by that shows no change at all. For the
period 2 pi one of these two is always at least 0.3 pi from a multiple of it, for each power of two from 2**4 to 2**105;
multiples of 1/128 so that the moved operand is exact in float64."""

_AROUND = (1.3, 2.9, 5.7, 11.3)
"""How many ulp away the size of a badly conditioned function is looked up."""

_CAP = 3.0
"""The largest conditional error, in units of that size: two waves of one amplitude differ by two, and the sampled size
may be somewhat less than the amplitude."""


def conditional(
    function: Function, operands: Operands, value: NDArray[Any], ulps: float, dtype: str, fixed: Collection[int] = ()
) -> Float64s:
    """What ``ulps`` of error in each operand change at most, the sum over the operands.

    Parameters
    ----------
    function
        The true value, elementwise.
    operands
        Arrays that broadcast to the shape of ``value``; those at the positions ``fixed`` do not move.
    value
        ``function`` of the operands.
    ulps, dtype
        The error of an operand, in ulp of this format.
    """
    parts = [
        _of_operand(function, operands, i, value, ulps, dtype) for i in range(len(operands)) if i not in set(fixed)
    ]
    return np.asarray(sum(parts, np.zeros(np.shape(value))))


def _of_operand(
    function: Function, operands: Operands, position: int, value: NDArray[Any], ulps: float, dtype: str
) -> Float64s:
    step = ulp(operands[position], dtype)
    slopes = [np.abs(other - value) / d for d in NEAR for other in _moved(function, operands, position, d * step)]
    change = ulps * largest(slopes)
    wild = change > np.abs(value)
    if np.any(wild):
        distances = [d for d in _AROUND if d <= ulps]
        at = tuple(np.broadcast_to(x, np.shape(value))[wild] for x in operands)
        steps = np.broadcast_to(step, np.shape(value))[wild]
        nearby = [np.abs(other) for d in distances for other in _moved(function, at, position, d * steps)]
        size = np.maximum(np.abs(value[wild]), largest(nearby))
        change[wild] = np.minimum(change[wild], _CAP * size)
    return change


def _moved(function: Function, operands: Operands, position: int, distance: Float64s) -> list[NDArray[Any]]:
    """The true values with one operand a distance away, on both sides."""
    before, x, after = operands[:position], operands[position], operands[position + 1 :]
    return [function(*before, x + d, *after) for d in (-distance, distance)]


def largest(sizes: Iterable[Float64s]) -> Float64s:
    """The largest of several, elementwise; what is not finite, because it is outside the domain, does not count."""
    found: Float64s = np.maximum.reduce([np.where(np.isfinite(size), size, 0.0) for size in sizes])
    return found
