"""True values of orthogonal polynomials in ``x`` of degree ``n``, by their three-term recurrences in float64.

A degree is a whole number, of whatever type; a fraction is dropped. The polynomial of a negative degree is 0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Float64s = NDArray[np.float64]
Step = Callable[[Float64s, int, Float64s, Float64s], Float64s]
"""``step(x, k, current, previous)`` is the polynomial of degree k + 1, given those of degrees k and k - 1."""

_LARGEST = 1 << 12


def chebyshev_polynomial_t(x: Float64s, n: Array) -> Float64s:
    """cos(n t) of cos(t)."""
    return _polynomial(x, n, lambda x: x, _chebyshev)


def chebyshev_polynomial_u(x: Float64s, n: Array) -> Float64s:
    """sin((n + 1) t) / sin(t) of cos(t)."""
    return _polynomial(x, n, lambda x: 2.0 * x, _chebyshev)


def chebyshev_polynomial_v(x: Float64s, n: Array) -> Float64s:
    """cos((n + 1/2) t) / cos(t / 2) of cos(t)."""
    return _polynomial(x, n, lambda x: 2.0 * x - 1.0, _chebyshev)


def chebyshev_polynomial_w(x: Float64s, n: Array) -> Float64s:
    """sin((n + 1/2) t) / sin(t / 2) of cos(t)."""
    return _polynomial(x, n, lambda x: 2.0 * x + 1.0, _chebyshev)


def shifted_chebyshev_polynomial_t(x: Float64s, n: Array) -> Float64s:
    """chebyshev_polynomial_t at 2 x - 1."""
    return chebyshev_polynomial_t(2.0 * x - 1.0, n)


def shifted_chebyshev_polynomial_u(x: Float64s, n: Array) -> Float64s:
    """chebyshev_polynomial_u at 2 x - 1."""
    return chebyshev_polynomial_u(2.0 * x - 1.0, n)


def shifted_chebyshev_polynomial_v(x: Float64s, n: Array) -> Float64s:
    """chebyshev_polynomial_v at 2 x - 1."""
    return chebyshev_polynomial_v(2.0 * x - 1.0, n)


def shifted_chebyshev_polynomial_w(x: Float64s, n: Array) -> Float64s:
    """chebyshev_polynomial_w at 2 x - 1."""
    return chebyshev_polynomial_w(2.0 * x - 1.0, n)


def hermite_polynomial_h(x: Float64s, n: Array) -> Float64s:
    """The physicists' Hermite polynomial."""
    return _polynomial(x, n, lambda x: 2.0 * x, lambda x, k, p, q: 2.0 * x * p - 2.0 * k * q)


def hermite_polynomial_he(x: Float64s, n: Array) -> Float64s:
    """The probabilists' Hermite polynomial."""
    return _polynomial(x, n, lambda x: x, lambda x, k, p, q: x * p - k * q)


def laguerre_polynomial_l(x: Float64s, n: Array) -> Float64s:
    """The Laguerre polynomial."""
    return _polynomial(x, n, lambda x: 1.0 - x, lambda x, k, p, q: ((2 * k + 1 - x) * p - k * q) / (k + 1))


def legendre_polynomial_p(x: Float64s, n: Array) -> Float64s:
    """The Legendre polynomial."""
    return _polynomial(x, n, lambda x: x, lambda x, k, p, q: ((2 * k + 1) * x * p - k * q) / (k + 1))


def _chebyshev(x: Float64s, k: int, current: Float64s, previous: Float64s) -> Float64s:
    return 2.0 * x * current - previous


def _polynomial(x: Float64s, n: Array, first: Callable[[Float64s], Float64s], step: Step) -> Float64s:
    """The polynomials of all elements: ``first`` is that of degree 1.

    Raises
    ------
    ValueError
        If a degree exceeds 4096 or is NaN: nothing is learnt from so long a recurrence.
    """
    point, degree = np.broadcast_arrays(np.asarray(x, np.float64), np.trunc(np.asarray(n, np.float64)))
    if not (degree <= _LARGEST).all():
        raise ValueError(f"degree {degree.max()} is too large; allowed: up to {_LARGEST}")
    value = np.where(degree == 0, 1.0, 0.0)
    previous, current = np.ones_like(point), first(point)
    for k in range(1, int(degree.max(initial=0.0)) + 1):
        value = np.where(degree == k, current, value)
        previous, current = current, step(point, k, current, previous)
    return value
