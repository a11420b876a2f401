"""Vector-Jacobian products of special functions, for real operands."""

from __future__ import annotations

from functools import partial
from math import pi
from math import sqrt as square_root

import numpy as np
import scipy

from references import special as true
from references.gradients._common import Array, Gradients, elementwise, sign

_TINY = float(np.finfo(np.float64).eps)
"""Up to here the derivatives at 0 are exact, and quotients by the operand are not needed."""

_TWO_OVER_ROOT_PI = 2.0 / square_root(pi)


def lgamma(gradient: Array, result: Array, x: Array) -> Gradients:
    """digamma(x)."""
    return (gradient * scipy.special.psi(x),)


def digamma(gradient: Array, result: Array, x: Array) -> Gradients:
    """polygamma(1, x)."""
    return (gradient * elementwise(partial(true.polygamma, n=1), x),)


def polygamma(gradient: Array, result: Array, x: Array, n: int) -> Gradients:
    """The next derivative."""
    return (gradient * elementwise(partial(true.polygamma, n=n + 1), x),)


def erf(gradient: Array, result: Array, x: Array) -> Gradients:
    """2 / sqrt(pi) exp(-x**2)."""
    return (_TWO_OVER_ROOT_PI * np.exp(-(x * x)) * gradient,)


def erfc(gradient: Array, result: Array, x: Array) -> Gradients:
    """-2 / sqrt(pi) exp(-x**2)."""
    return (-_TWO_OVER_ROOT_PI * np.exp(-(x * x)) * gradient,)


def erfcx(gradient: Array, result: Array, x: Array) -> Gradients:
    """2 x times the result, minus 2 / sqrt(pi), which cancel for large ``x``."""
    return ((2.0 * x * result - _TWO_OVER_ROOT_PI) * gradient,)


def erfinv(gradient: Array, result: Array, x: Array) -> Gradients:
    """sqrt(pi) / 2 exp(erfinv(x)**2)."""
    inverse = scipy.special.erfinv(x)
    return (0.5 * square_root(pi) * np.exp(inverse * inverse) * gradient,)


def entr(gradient: Array, result: Array, x: Array) -> Gradients:
    """-(1 + log(x))."""
    return (gradient * -(1.0 + np.log(x)),)


def sinc(gradient: Array, result: Array, x: Array) -> Gradients:
    """(pi x cos(pi x) - sin(pi x)) / (pi x**2), which cancels near 0, and 0 where the denominator is 0."""
    turned = x * pi
    denominator = x * x * pi
    safe = np.where(denominator == 0, 1.0, denominator)
    slope = np.conj((turned * np.cos(turned) - np.sin(turned)) / safe)
    return (np.where(denominator == 0, 0.0, gradient * slope),)


def logit(gradient: Array, result: Array, x: Array, eps: float | None = None) -> Gradients:
    """1 / (x (1 - x)); outside [0, 1] NaN without ``eps``, and outside [eps, 1 - eps] 0 with it."""
    slope = gradient / (x * (1.0 - x))
    if eps is None:
        at_ends = np.where((x == 0) | (x == 1), gradient * np.inf, slope)
        return (np.where((x < 0) | (x > 1), np.nan, at_ends),)
    return (np.where((x < eps) | (x > 1.0 - eps), 0.0, slope),)


def i0(gradient: Array, result: Array, x: Array) -> Gradients:
    """i1(x)."""
    return (gradient * scipy.special.i1(x),)


def i0e(gradient: Array, result: Array, x: Array) -> Gradients:
    """i1e(x) minus the result times the sign."""
    return (gradient * (scipy.special.i1e(x) - sign(x) * result),)


def i1(gradient: Array, result: Array, x: Array) -> Gradients:
    """i0(x) minus the result over x; 1/2 at 0."""
    large = np.abs(x) > _TINY
    safe = np.where(large, x, _TINY)
    return (gradient * np.where(large, scipy.special.i0(safe) - result * (1.0 / safe), 0.5),)


def i1e(gradient: Array, result: Array, x: Array) -> Gradients:
    """i0e(x) minus the result times the sum of the sign and 1 / x; 1/2 at 0."""
    large = np.abs(x) > _TINY
    safe = np.where(large, x, _TINY)
    slope = scipy.special.i0e(safe) - result * (sign(safe) + 1.0 / safe)
    return (gradient * np.where(large, slope, 0.5),)


def k0(gradient: Array, result: Array, x: Array) -> Gradients:
    """-k1(x)."""
    return (gradient * -scipy.special.k1(x),)


def k1(gradient: Array, result: Array, x: Array) -> Gradients:
    """Minus the sum of k0(x) and the result over x."""
    return (gradient * -(scipy.special.k0(x) + result * (1.0 / x)),)


def j0(gradient: Array, result: Array, x: Array) -> Gradients:
    """-j1(x)."""
    return (gradient * -scipy.special.j1(x),)


def j1(gradient: Array, result: Array, x: Array) -> Gradients:
    """j0(x) minus the result over x; 1/2 at 0."""
    large = np.abs(x) > _TINY
    safe = np.where(large, x, _TINY)
    return (gradient * np.where(large, scipy.special.j0(safe) - result * (1.0 / safe), 0.5),)


def y0(gradient: Array, result: Array, x: Array) -> Gradients:
    """-y1(x)."""
    return (gradient * -scipy.special.y1(x),)


def y1(gradient: Array, result: Array, x: Array) -> Gradients:
    """y0(x) minus the result over x; inf at 0."""
    slope = scipy.special.y0(x) - result * (1.0 / x)
    return (gradient * np.where(x == 0, np.inf, slope),)
