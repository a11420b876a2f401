"""True values of elementary functions, rounding, predicates and signs, by NumPy.

Each function takes an array of float64, complex128, integers or bool and gives the value of the mathematical function,
of the same shape; limits and signs of zero are those of C99 Annex F. Integers stay exact and wrap around as in C.
NumPy's float64 functions err by less than 2**-52 over the whole float32 range (``tests/references`` compares them with
mpmath), huge arguments of sin, cos and tan included.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

absolute = np.absolute
acos = np.arccos
asin = np.arcsin
atan = np.arctan
bitwise_not = np.invert
ceil = np.ceil
cos = np.cos
cosh = np.cosh
exp = np.exp
exp2 = np.exp2
expm1 = np.expm1
floor = np.floor
isneginf = np.isneginf
isposinf = np.isposinf
log = np.log
log10 = np.log10
log2 = np.log2
logical_not = np.logical_not
neg = np.negative
sin = np.sin
sinh = np.sinh
sqrt = np.sqrt
square = np.square
tan = np.tan
tanh = np.tanh
trunc = np.trunc


def angle(x: Array) -> Array:
    """The argument of a number: of a real one pi if it is negative, 0 otherwise (of -0.0 too), NaN of NaN."""
    if np.iscomplexobj(x):
        return np.asarray(np.angle(x))
    return np.where(np.isnan(x), np.nan, np.where(x < 0, np.pi, 0.0))


def log1p(x: Array) -> Array:
    """log(1 + x), by half the log1p of |1 + x|**2 - 1 for complex ``x``, which does not cancel."""
    if not np.iscomplexobj(x):
        return np.log1p(x)
    a, b = x.real, x.imag
    near = np.abs(x) < 0.5
    squared = np.where(near, a * (2 + a) + b * b, 0.0)
    modulus = np.where(near, 0.5 * np.log1p(squared), np.log(np.abs(1 + x)))
    return np.asarray(modulus + 1j * np.arctan2(b, 1 + a))


def reciprocal(x: Array) -> Array:
    """1 / x, signed infinity at signed zero."""
    return 1.0 / x


def rsqrt(x: Array) -> Array:
    """1 / sqrt(x), signed infinity at signed zero."""
    return np.asarray(1.0 / np.sqrt(x))


def round_half_even(x: Array) -> Array:
    """The nearest integer, ties to even; integers stay."""
    return np.rint(x) if x.dtype.kind == "f" else x


def round_decimals(x: Array, decimals: int) -> Array:
    """The nearest multiple of 10**-decimals, ties to even."""
    scale = 10.0 ** abs(decimals)
    return np.rint(x * scale) / scale if decimals >= 0 else np.rint(x / scale) * scale


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x)), by the exponential that does not overflow."""
    right = x.real >= 0
    small = np.exp(np.where(right, -x, x))
    return np.asarray(np.where(right, 1.0, small) / (1.0 + small))


def power(x: Array, exponent: float) -> Array:
    """x ** exponent; integer powers of integers wrap around."""
    return np.power(x, exponent)
