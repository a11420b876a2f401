"""True values of elementwise functions of two operands (``lerp`` has three), by NumPy and SciPy.

Operands are arrays of float64, complex128, int64, uint64 or bool that broadcast, or Python numbers; the second has the
name of torch's parameter, so that it may be one. Floats are the exact values of float32 numbers or narrower ones: then
float64 sums, products and quotients, rounded once more to float32, are correctly rounded (53 >= 2 * 24 + 2 digits,
Figueroa 1995). Integers are computed modulo 2**64, which leaves the lower bits of narrower ones right; where C and
PyTorch leave a value undefined (a quotient by zero), any stands.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import scipy
from numpy.typing import NDArray

Array = NDArray[Any]
Operand = Any
Rounding = Literal["floor", "trunc"]


def _keyed(ufunc: np.ufunc) -> Callable[[Array, Operand], Array]:
    """The function with torch's name for its second operand, which may be a number."""

    def reference(x: Array, other: Operand) -> Array:
        return np.asarray(ufunc(x, _like(other, x)))

    return reference


atan2 = np.arctan2
bitwise_and = _keyed(np.bitwise_and)
bitwise_or = _keyed(np.bitwise_or)
bitwise_xor = _keyed(np.bitwise_xor)
copysign = _keyed(np.copysign)
eq = _keyed(np.equal)
ge = _keyed(np.greater_equal)
gt = _keyed(np.greater)
le = _keyed(np.less_equal)
lt = _keyed(np.less)
ne = _keyed(np.not_equal)
fmax = np.fmax
fmin = np.fmin
hypot = np.hypot
logical_and = np.logical_and
logical_or = np.logical_or
logical_xor = np.logical_xor
maximum = np.maximum
minimum = np.minimum
nextafter = np.nextafter


def add(x: Array, other: Operand, alpha: Any = 1) -> Array:
    """X + alpha other; of bool their disjunction."""
    total: Array = x + _scaled(other, alpha, x)
    return total


def sub(x: Array, other: Operand, alpha: Any = 1) -> Array:
    """X - alpha other."""
    difference: Array = x - _scaled(other, alpha, x)
    return difference


def rsub(x: Array, other: Operand, alpha: Any = 1) -> Array:
    """Other - alpha x."""
    difference: Array = _like(other, x) - _scaled(x, alpha, x)
    return difference


def mul(x: Array, other: Operand) -> Array:
    """The product; of bool their conjunction."""
    return np.asarray(x * _like(other, x))


def div(x: Array, other: Operand, rounding_mode: Rounding | None = None) -> Array:
    """The quotient, rounded to a whole number as ``rounding_mode`` says: down, or toward zero.

    The whole number is that of the exact quotient. At infinities "floor" is Python's: -1 by inf is -1.
    """
    y = _like(other, x)
    if rounding_mode is None:
        return np.asarray(x / y)
    if x.dtype.kind in "iu":
        return _whole_quotient(x, y, rounding_mode)
    if rounding_mode == "floor":
        return _floored(x, y)
    return _truncated(x, y)


def floor_divide(x: Array, other: Operand) -> Array:
    """The quotient rounded down."""
    return div(x, other, "floor")


def _whole_quotient(x: Array, y: Array, rounding_mode: Rounding) -> Array:
    safe = np.where(y == 0, np.ones_like(y), y)
    floor = np.floor_divide(x, safe)
    if rounding_mode == "floor":
        return np.asarray(floor)
    return np.asarray(floor + ((np.remainder(x, safe) != 0) & ((x < 0) != (safe < 0))))


def _truncated(x: Array, y: Array) -> Array:
    """The whole part of the exact quotient: (x - fmod(x, y)) / y is a whole number, and fmod is exact.

    The float64 difference may round, but only where the quotient exceeds what float32 resolves.
    """
    quotient = x / y
    rest = np.fmod(x, y)
    finite = np.isfinite(quotient) & np.isfinite(y) & (quotient != 0)
    whole = np.rint((x - np.where(finite, rest, 0.0)) / y)
    return np.where(finite, np.copysign(whole, quotient), np.where(np.isinf(y), np.trunc(quotient), quotient))


def _floored(x: Array, y: Array) -> Array:
    """The truncated quotient, less one where it is negative and was not whole."""
    truncated = _truncated(x, y)
    below = (np.fmod(x, y) != 0) & ((x < 0) != (y < 0)) & np.isfinite(truncated)
    return np.where(below & np.isfinite(x) & (x != 0), truncated - 1.0, truncated)


def remainder(x: Array, other: Operand) -> Array:
    """X modulo other, with the sign of ``other``, as Python's ``%``; the rest of an integer by 0 is 0."""
    return np.asarray(np.remainder(x, _like(other, x)))


def fmod(x: Array, other: Operand) -> Array:
    """The rest of the truncated quotient, with the sign of ``x``, exact; the rest of an integer by 0 is 0."""
    return np.asarray(np.fmod(x, _like(other, x)))


def pow(x: Array, exponent: Operand) -> Array:
    """X ** exponent; integers to a negative exponent are 0 unless they are 1 or -1.

    NumPy's power to one exponent of 0.5 is a square root, NaN at -inf; its float_power is a power everywhere.
    """
    y = _like(exponent, x)
    if x.dtype.kind not in "iu":
        return np.asarray(np.float_power(x, y))
    negative = y < 0
    power = np.power(x, np.where(negative, y % 2, y))
    return np.where(negative & (np.abs(x) != 1), np.zeros_like(power), power)


def bitwise_left_shift(x: Array, other: Operand) -> Array:
    """X * 2**other; bits that leave the type are lost."""
    return np.asarray(np.left_shift(x, _like(other, x)))


def bitwise_right_shift(x: Array, other: Operand) -> Array:
    """X / 2**other, rounded down."""
    return np.asarray(np.right_shift(x, _like(other, x)))


def heaviside(x: Array, other: Array) -> Array:
    """0 below 0, 1 above, ``other`` at 0; NaN at NaN."""
    if x.dtype.kind == "f":
        return np.asarray(np.heaviside(x, other))
    return np.where(x == 0, other, x > 0)


def logaddexp(x: Array, other: Array) -> Array:
    """log(exp(x) + exp(other)); of complex numbers by their sum's logarithm, with the larger exponential taken out."""
    if not np.iscomplexobj(x):
        return np.asarray(np.logaddexp(x, other))
    larger = np.where(x.real >= other.real, x, other)
    shift = np.where(np.isfinite(larger.real), larger.real, 0.0)
    return np.asarray(np.log(np.exp(x - shift) + np.exp(other - shift)) + shift)


def logaddexp2(x: Array, other: Array) -> Array:
    """log2(2**x + 2**other), by the logarithm of 1 + 2**-distance, which does not cancel."""
    larger = np.maximum(x, other)
    distance = np.where(x == other, 0.0, np.abs(x - other))
    return np.asarray(larger + np.log1p(np.exp2(-distance)) / np.log(2.0))


def xlogy(x: Array, other: Operand) -> Array:
    """X log(other), and 0 where ``x`` is 0 unless ``other`` is NaN."""
    return np.asarray(scipy.special.xlogy(x, other))


def xlog1py(x: Array, other: Operand) -> Array:
    """X log(1 + other), and 0 where ``x`` is 0 unless ``other`` is NaN."""
    return np.asarray(scipy.special.xlog1py(x, other))


def zeta(x: Array, other: Operand) -> Array:
    """The sum of (k + other)**-x over k = 0, 1, ...: inf for x = 1 and at the poles of ``other``, NaN for x < 1.

    SciPy counts up from a negative ``other`` one by one. The terms with a negative base, which have a real value for
    whole x only, are the difference of two sums with positive ones.
    """
    exponent, start = np.broadcast_arrays(*(np.asarray(operand, np.float64) for operand in (x, other)))
    whole = np.floor(start)
    fraction = start - whole
    counted = (whole < 0) & np.isfinite(start) & (fraction != 0) & (exponent > 1)
    s, rest, count = exponent[counted], fraction[counted], -whole[counted]
    with np.errstate(over="ignore", invalid="ignore"):
        value = _zeta(exponent, np.where(counted, 1.0, start))
        value[counted] = np.where(s == np.floor(s), _two_sided(s, rest, count), np.nan)
    return value


def _two_sided(s: Array, rest: Array, count: Array) -> Array:
    """The sum of (k + rest)**-s from k = -count on, for whole s and 0 < rest < 1."""
    positive = _zeta(s, rest)
    negative = _zeta(s, 1.0 - rest) - _zeta(s, count + 1.0 - rest)
    odd = s % 2 != 0
    both = odd & np.isinf(positive) & np.isinf(negative)  # the power of the smaller base is far larger
    return np.where(both, np.where(rest < 0.5, np.inf, -np.inf), positive + np.where(odd, -negative, negative))


def _zeta(s: Array, q: Array) -> Array:
    """SciPy's zeta, which is NaN for huge exponents, where the first term is the sum but for ulps."""
    value = np.asarray(scipy.special.zeta(s, q))
    return np.where(np.isnan(value) & (s > 1) & (q > 0), np.float_power(np.abs(q), -s), value)


def gcd(x: Array, other: Array) -> Array:
    """The greatest common divisor; of bool, as of 0 and 1, the disjunction."""
    return np.asarray((np.logical_or if x.dtype.kind == "b" else np.gcd)(x, other))


def lcm(x: Array, other: Array) -> Array:
    """The least common multiple; of bool the conjunction."""
    return np.asarray((np.logical_and if x.dtype.kind == "b" else np.lcm)(x, other))


def igamma(x: Array, other: Array) -> Array:
    """The regularised lower incomplete gamma function: ``x`` is its parameter, ``other`` its end; NaN below 0."""
    return np.asarray(scipy.special.gammainc(x, other))


def igammac(x: Array, other: Array) -> Array:
    """1 - igamma(x, other)."""
    return np.asarray(scipy.special.gammaincc(x, other))


def lerp(x: Array, end: Array, weight: Operand) -> Array:
    """X + weight (end - x), by the end that is nearer, so that it is met."""
    w = np.asarray(weight)
    difference = end - x
    near = np.abs(w) < 0.5
    return np.asarray(np.where(near, x + w * difference, end - difference * (1 - w)))


def polar(x: Array, angle: Array) -> Array:
    """The complex number of modulus ``x`` and argument ``angle``."""
    return complex(x * np.cos(angle), x * np.sin(angle))


def complex(real: Array, imag: Array) -> Array:
    """The complex number of two parts; neither takes part in the other's arithmetic."""
    parts = np.empty(np.broadcast_shapes(real.shape, imag.shape), np.complex128)
    parts.real, parts.imag = real, imag
    return parts


def _of_number(function: Callable[..., Array]) -> Callable[..., Array]:
    """The function of a first operand that is a number, given by keyword as ``self``, and of an array."""

    def reference(other: Array, self: Any) -> Array:
        return function(_like(self, other), other)

    return reference


pow_scalar_self = _of_number(pow)
remainder_scalar_self = _of_number(remainder)
xlogy_scalar_self = _of_number(xlogy)
xlog1py_scalar_self = _of_number(xlog1py)
zeta_scalar_self = _of_number(zeta)


def _like(operand: Operand, x: Array) -> Array:
    """A Python integer as an integer of the type of ``x``, wrapped; all else as it is."""
    if x.dtype.kind in "iu" and isinstance(operand, int):
        return np.asarray(operand & (2**64 - 1), np.uint64).astype(x.dtype)
    return np.asarray(operand) if np.isscalar(operand) else operand


def _scaled(operand: Operand, alpha: Any, x: Array) -> Array:
    """Alpha times an operand; 1 makes no step, which keeps bool what it is, and among bools any factor is one."""
    given = _like(operand, x)
    if alpha == 1:
        return given
    all_bool = x.dtype == np.bool_ == getattr(given, "dtype", None)
    multiple: Array = given & bool(alpha) if all_bool else given * _like(alpha, x)
    return multiple
