"""True values of special functions, by SciPy, for float64 arrays of any shape.

SciPy's functions err by less than 2**-49, or less than 2**-26 float32 roundings near their zeros, over the whole
float32 range (compared with arb, see ``tests/references``), with two exceptions that are mended here: Bessel functions
of large arguments, and polygamma of negative ones.
"""

from __future__ import annotations

from collections.abc import Callable
from math import factorial, pi, sqrt

import numpy as np
import scipy
from numpy.polynomial import Polynomial
from numpy.polynomial.polynomial import polyval
from numpy.typing import NDArray

Float64s = NDArray[np.float64]

_LARGE = 1e4
"""Where the asymptotic Bessel functions take over: from here two terms of each series are exact to 2**-60."""


def digamma(x: Float64s) -> Float64s:
    """The logarithmic derivative of gamma: -inf at 0.0, inf at -0.0, NaN at negative integers."""
    value: Float64s = scipy.special.psi(x)
    return np.where(x == 0, np.copysign(np.inf, -x), np.where((x < 0) & (x == np.floor(x)), np.nan, value))


def lgamma(x: Float64s) -> Float64s:
    """log(|gamma(x)|): inf at the poles and at both infinities."""
    return np.where(np.isinf(x), np.inf, scipy.special.gammaln(x))


def polygamma(x: Float64s, n: int) -> Float64s:
    """The ``n``-th derivative of digamma, n >= 0.

    At nonpositive integers, for n >= 1, it is the limit from the right. The reflection formula takes negative
    arguments to positive ones; its term is the n-th derivative of pi cot(pi x), a polynomial in the cotangent.
    """
    if n == 0:
        return digamma(x)
    positive = np.where(x < 0, 1.0 - x, x)
    value: Float64s = (-1.0) ** (n + 1) * factorial(n) * scipy.special.zeta(n + 1.0, positive)
    cotangents = Polynomial([0.0, 1.0])
    for _ in range(n):
        cotangents = -Polynomial([1.0, 0.0, 1.0]) * cotangents.deriv()
    fraction = x - np.rint(x)
    with np.errstate(all="ignore"):
        reflected = (-1.0) ** n * value - pi ** (n + 1) * polyval(1.0 / np.tan(pi * fraction), cotangents.coef)
    pole = (x <= 0) & (fraction == 0)
    return np.where(pole, (-1.0) ** (n + 1) * np.inf, np.where(x < 0, reflected, value))


def erf(x: Float64s) -> Float64s:
    """The error function."""
    return np.asarray(scipy.special.erf(x))


def erfc(x: Float64s) -> Float64s:
    """1 - erf(x)."""
    return np.asarray(scipy.special.erfc(x))


def erfcx(x: Float64s) -> Float64s:
    """exp(x**2) erfc(x)."""
    return np.asarray(scipy.special.erfcx(x))


def erfinv(x: Float64s) -> Float64s:
    """The inverse of erf: infinite at -1 and 1, NaN beyond.

    By the normal quantile of (1 - |x|) / 2, which is exact for the float32 numbers from 1/2 up; below, where the
    difference drops bits of ``x``, by two Newton steps, of which the second only polishes. (SciPy's own takes 2 us.)
    """
    y = np.abs(x)
    value = -scipy.special.ndtri((1.0 - y) / 2.0) / sqrt(2.0)
    small = np.where(y < 0.5, y, 0.0)
    refined = np.where(y < 0.01, small * sqrt(pi) / 2.0, np.where(y < 0.5, value, 0.0))
    for _ in range(2):
        refined = refined - (scipy.special.erf(refined) - small) * sqrt(pi) / 2.0 * np.exp(refined**2)
    return np.copysign(np.where(y < 0.5, refined, value), x)


def entr(x: Float64s) -> Float64s:
    """-x log(x): 0 at 0, -inf below."""
    return np.asarray(scipy.special.entr(x))


def logit(x: Float64s, eps: float | None = None) -> Float64s:
    """log(x / (1 - x)), of ``x`` held within [eps, 1 - eps] if ``eps`` is given; NaN outside [0, 1]."""
    return np.asarray(scipy.special.logit(x if eps is None else np.clip(x, eps, 1.0 - eps)))


def sinc(x: Float64s) -> Float64s:
    """sin(pi x) / (pi x): 1 at 0, and the limit 0 at the infinities."""
    if np.iscomplexobj(x):
        return np.where(x == 0, 1.0, np.sin(pi * x) / np.where(x == 0, 1.0, pi * x))
    turned = np.where(np.isfinite(x), x, 0.0)
    turned = turned - 2.0 * np.rint(turned / 2.0)
    value = np.sin(pi * turned) / (pi * np.where(x == 0, 1.0, x))
    value = np.where(turned == np.rint(turned), 0.0, value)
    return np.where(x == 0, 1.0, np.where(np.isinf(x), 0.0, np.where(np.isnan(x), np.nan, value)))


def i0(x: Float64s) -> Float64s:
    """The modified Bessel function of the first kind, order 0."""
    return np.asarray(scipy.special.i0(x))


def i0e(x: Float64s) -> Float64s:
    """exp(-|x|) i0(x)."""
    return np.asarray(scipy.special.i0e(x))


def i1(x: Float64s) -> Float64s:
    """The modified Bessel function of the first kind, order 1."""
    return np.asarray(scipy.special.i1(x))


def i1e(x: Float64s) -> Float64s:
    """exp(-|x|) i1(x)."""
    return np.asarray(scipy.special.i1e(x))


def k0(x: Float64s) -> Float64s:
    """The modified Bessel function of the second kind, order 0: inf at 0, NaN below."""
    return np.asarray(scipy.special.k0(x))


def k0e(x: Float64s) -> Float64s:
    """exp(x) k0(x)."""
    return np.asarray(scipy.special.k0e(x))


def k1(x: Float64s) -> Float64s:
    """The modified Bessel function of the second kind, order 1: inf at 0, NaN below."""
    return np.asarray(scipy.special.k1(x))


def k1e(x: Float64s) -> Float64s:
    """exp(x) k1(x)."""
    return np.asarray(scipy.special.k1e(x))


def j0(x: Float64s) -> Float64s:
    """The Bessel function of the first kind, order 0."""
    return _bessel(scipy.special.j0, np.abs(x), order=0, second_kind=False)


def j1(x: Float64s) -> Float64s:
    """The Bessel function of the first kind, order 1, which is odd."""
    return np.copysign(1.0, x) * _bessel(scipy.special.j1, np.abs(x), order=1, second_kind=False)


def y0(x: Float64s) -> Float64s:
    """The Bessel function of the second kind, order 0: -inf at 0, NaN below."""
    return _bessel(scipy.special.y0, x, order=0, second_kind=True)


def y1(x: Float64s) -> Float64s:
    """The Bessel function of the second kind, order 1: -inf at 0, NaN below."""
    return _bessel(scipy.special.y1, x, order=1, second_kind=True)


def spherical_j0(x: Float64s) -> Float64s:
    """sin(x) / x: 1 at 0, and the limit 0 at the infinities."""
    finite = np.where(np.isinf(x) | (x == 0), 1.0, x)
    return np.where(x == 0, 1.0, np.where(np.isinf(x), 0.0, np.sin(finite) / finite))


def _bessel(function: Callable[[Float64s], Float64s], x: Float64s, *, order: int, second_kind: bool) -> Float64s:
    """SciPy's function up to :data:`_LARGE`, Hankel's expansion (DLMF 10.17) beyond.

    SciPy computes cos(x - pi/4) from a rounded difference, which loses as many bits as ``x`` has before the point.
    Here the angle's cosine comes from those of ``x``, whose reduction NumPy does exactly.
    """
    small: Float64s = np.asarray(function(np.where(x < _LARGE, x, 1.0)))
    large = np.where((x >= _LARGE) & np.isfinite(x), x, _LARGE)
    mu, z = 4.0 * order**2, 8.0 * large
    p = 1.0 - (mu - 1.0) * (mu - 9.0) / (2.0 * z**2)
    q = (mu - 1.0) / z - (mu - 1.0) * (mu - 9.0) * (mu - 25.0) / (6.0 * z**3)
    sine, cosine = np.sin(large), np.cos(large)
    turned_cosine, turned_sine = (cosine + sine, sine - cosine) if order == 0 else (sine - cosine, -sine - cosine)
    wave = p * turned_sine + q * turned_cosine if second_kind else p * turned_cosine - q * turned_sine
    asymptotic = wave / sqrt(2.0) * np.sqrt(2.0 / (pi * large))
    value = np.where(x < _LARGE, small, np.where(np.isinf(x), 0.0, asymptotic))
    return np.where(np.isnan(x), np.nan, value)
