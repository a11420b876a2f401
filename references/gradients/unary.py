"""Vector-Jacobian products of elementary functions, rounding and signs; predicates have none."""

from __future__ import annotations

from math import log as logarithm

import numpy as np

from references.gradients._common import Array, Gradients, is_complex, sign

_LN2, _LN10 = logarithm(2.0), logarithm(10.0)


def absolute(gradient: Array, result: Array, x: Array) -> Gradients:
    """The gradient times the sign; 0 at 0."""
    return (gradient * sign(x),)


def acos(gradient: Array, result: Array, x: Array) -> Gradients:
    """-1 / sqrt(1 - x**2)."""
    return (gradient * -np.conj(1.0 / np.sqrt(-x * x + 1.0)),)


def angle(gradient: Array, result: Array, x: Array) -> Gradients:
    """0 for real operands; for complex ones i x / abs(x)**2, and 0 at 0."""
    if not is_complex(x):
        return (np.zeros_like(gradient),)
    modulus = np.abs(x)
    return (np.where(x == 0, 0.0, gradient * x / np.where(x == 0, 1.0, modulus * modulus) * 1j),)


def asin(gradient: Array, result: Array, x: Array) -> Gradients:
    """1 / sqrt(1 - x**2)."""
    return (gradient * np.conj(1.0 / np.sqrt(-x * x + 1.0)),)


def atan(gradient: Array, result: Array, x: Array) -> Gradients:
    """1 / (x**2 + 1)."""
    return (gradient / np.conj(x * x + 1.0),)


def cos(gradient: Array, result: Array, x: Array) -> Gradients:
    """-sin(x)."""
    return (gradient * np.conj(-np.sin(x)),)


def cosh(gradient: Array, result: Array, x: Array) -> Gradients:
    """sinh(x)."""
    return (gradient * np.conj(np.sinh(x)),)


def exp(gradient: Array, result: Array, x: Array) -> Gradients:
    """The result."""
    return (gradient * np.conj(result),)


def exp2(gradient: Array, result: Array, x: Array) -> Gradients:
    """The result times log(2)."""
    return (gradient * np.conj(result) * _LN2,)


def expm1(gradient: Array, result: Array, x: Array) -> Gradients:
    """The result plus 1."""
    return (gradient * (np.conj(result) + 1.0),)


def log(gradient: Array, result: Array, x: Array) -> Gradients:
    """1 / x."""
    return (gradient / np.conj(x),)


def log10(gradient: Array, result: Array, x: Array) -> Gradients:
    """1 / (x log(10))."""
    return (gradient / (np.conj(x) * _LN10),)


def log1p(gradient: Array, result: Array, x: Array) -> Gradients:
    """1 / (x + 1)."""
    return (gradient / np.conj(x + 1.0),)


def log2(gradient: Array, result: Array, x: Array) -> Gradients:
    """1 / (x log(2))."""
    return (gradient / (np.conj(x) * _LN2),)


def neg(gradient: Array, result: Array, x: Array) -> Gradients:
    """-1."""
    return (-gradient,)


def reciprocal(gradient: Array, result: Array, x: Array) -> Gradients:
    """Minus the squared result."""
    return (-gradient * np.conj(result * result),)


def rsqrt(gradient: Array, result: Array, x: Array) -> Gradients:
    """Minus half the cubed result."""
    return (-0.5 * gradient * np.conj(result * result * result),)


def sigmoid(gradient: Array, result: Array, x: Array) -> Gradients:
    """The result times what it lacks to 1."""
    return (gradient * np.conj((1.0 - result) * result),)


def sin(gradient: Array, result: Array, x: Array) -> Gradients:
    """cos(x)."""
    return (gradient * np.conj(np.cos(x)),)


def sinh(gradient: Array, result: Array, x: Array) -> Gradients:
    """cosh(x)."""
    return (gradient * np.conj(np.cosh(x)),)


def sqrt(gradient: Array, result: Array, x: Array) -> Gradients:
    """1 / (2 result)."""
    return (gradient / (2.0 * np.conj(result)),)


def square(gradient: Array, result: Array, x: Array) -> Gradients:
    """2 x."""
    return (gradient * np.conj(2.0 * x),)


def tan(gradient: Array, result: Array, x: Array) -> Gradients:
    """1 plus the squared result."""
    return (gradient * np.conj(1.0 + result * result),)


def tanh(gradient: Array, result: Array, x: Array) -> Gradients:
    """1 minus the squared result."""
    return (gradient * np.conj(1.0 - result * result),)


def round_decimals(gradient: Array, result: Array, x: Array, decimals: int) -> Gradients:
    """0, at the steps too."""
    return (np.zeros_like(gradient),)


def _constant(gradient: Array, result: Array, x: Array) -> Gradients:
    """0, at the steps too."""
    return (np.zeros_like(gradient),)


ceil = floor = round_half_even = trunc = signum = _constant
