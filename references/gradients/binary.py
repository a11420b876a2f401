"""Vector-Jacobian products of elementwise functions of two or three operands, which broadcast.

``other`` (and what else may be a tensor or a number) is an operand if it is an array; a number gets no entry. Where the
*first* operand may be a number, the function is named for it and takes that number by keyword, as ``self``.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import scipy

from references import special
from references.gradients._common import Array, Gradients, Number, Operand, Ties, is_complex, is_number, of_operands

Rounding = Literal["floor", "trunc"]


def add(gradient: Array, result: Array, x: Array, other: Operand, alpha: Number = 1) -> Gradients:
    """1 and alpha."""
    return of_operands((x, gradient), (other, _scaled(gradient, alpha)))


def sub(gradient: Array, result: Array, x: Array, other: Operand, alpha: Number = 1) -> Gradients:
    """1 and -alpha."""
    return of_operands((x, gradient), (other, _scaled(-gradient, alpha)))


def rsub(gradient: Array, result: Array, x: Array, other: Operand, alpha: Number = 1) -> Gradients:
    """-alpha and 1."""
    return of_operands((x, _scaled(-gradient, alpha)), (other, gradient))


def _scaled(gradient: Array, alpha: Number) -> Array:
    """The product with the conjugate of a factor; 1 makes no step."""
    return gradient if alpha == 1 else gradient * np.conj(alpha)


def mul(gradient: Array, result: Array, x: Array, other: Operand) -> Gradients:
    """The other operand, each."""
    return of_operands((x, gradient * np.conj(other)), (other, gradient * np.conj(x)))


def div(gradient: Array, result: Array, x: Array, other: Operand, rounding_mode: Rounding | None = None) -> Gradients:
    """1 / other and -(x / other) / other; 0 for both with a rounding mode."""
    if rounding_mode is not None:
        constant = np.zeros_like(gradient)
        return of_operands((x, constant), (other, constant))
    return of_operands((x, gradient / np.conj(other)), (other, -gradient * np.conj((x / other) / other)))


def pow(gradient: Array, result: Array, x: Array, exponent: Operand) -> Gradients:
    """Exponent x**(exponent - 1), 0 for exponent 0; and result log(x), 0 for x = 0 with an exponent not below 0."""
    if is_number(exponent) and exponent == 0:
        return of_operands((x, np.zeros_like(gradient)))
    slope = gradient * np.conj(exponent * np.power(x, exponent - 1))
    if is_number(exponent):
        return of_operands((x, slope))
    promoted = x * (1.0 + 0.0j) if is_complex(result) and not is_complex(x) else x
    vanishing = (x == 0) & _not_negative(exponent)
    rate = np.where(vanishing, 0.0, np.conj(result * np.log(promoted)))
    return of_operands((x, np.where(exponent == 0, 0.0, slope)), (exponent, gradient * rate))


def pow_scalar_self(gradient: Array, result: Array, exponent: Array, self: Number) -> Gradients:
    """Result log(self); at base 0, 0 where the exponent is not negative."""
    base = np.complex128(self) if is_complex(exponent) or is_complex(self) else np.float64(self.real)
    rate = np.conj(result * np.log(base))
    if self == 0:
        rate = np.where(_not_negative(exponent), 0.0, rate)
    return of_operands((exponent, gradient * rate))


def _not_negative(exponent: Operand) -> Array:
    """Whether an exponent is a real number that is not below 0."""
    real: Array = np.real(exponent) >= 0
    return (np.imag(exponent) == 0) & real if is_complex(exponent) else real


def atan2(gradient: Array, result: Array, x: Array, other: Array) -> Gradients:
    """Other / (x**2 + other**2) and -x / (x**2 + other**2); 0 at the origin."""
    squared = x * x + other * other
    reciprocal = np.where(squared == 0, 0.0, 1.0 / squared)
    return of_operands((x, gradient * other * reciprocal), (other, gradient * -x * reciprocal))


def hypot(gradient: Array, result: Array, x: Array, other: Array) -> Gradients:
    """X / result and other / result; NaN at the origin."""
    return of_operands((x, gradient * x / result), (other, gradient * other / result))


def remainder(gradient: Array, result: Array, x: Array, other: Operand) -> Gradients:
    """1 and -floor(x / other)."""
    return of_operands((x, gradient), (other, -gradient * np.floor_divide(x, other)))


def fmod(gradient: Array, result: Array, x: Array, other: Operand) -> Gradients:
    """1 and -trunc(x / other)."""
    return of_operands((x, gradient), (other, -gradient * np.trunc(x / other)))


def maximum(gradient: Array, result: Array, x: Array, other: Array) -> Gradients:
    """1 for the larger and 0 for the smaller operand; half for each of a tie, 1 for both where one is NaN."""
    shared = np.where(x == other, gradient / 2.0, gradient)
    return of_operands((x, np.where(x < other, 0.0, shared)), (other, np.where(x > other, 0.0, shared)))


def minimum(gradient: Array, result: Array, x: Array, other: Array) -> Gradients:
    """1 for the smaller and 0 for the larger operand; half for each of a tie, 1 for both where one is NaN."""
    shared = np.where(x == other, gradient / 2.0, gradient)
    return of_operands((x, np.where(x > other, 0.0, shared)), (other, np.where(x < other, 0.0, shared)))


def fmax(gradient: Array, result: Array, x: Array, other: Array, *, ties: Ties = "one") -> Gradients:
    """1 for the operand that is chosen and 0 for the other; a tie is the first's, or halved with split ties."""
    return _of_chosen(gradient, x, other, (x >= other) | np.isnan(other), ties)


def fmin(gradient: Array, result: Array, x: Array, other: Array, *, ties: Ties = "one") -> Gradients:
    """1 for the operand that is chosen and 0 for the other; a tie is the first's, or halved with split ties."""
    return _of_chosen(gradient, x, other, (x <= other) | np.isnan(other), ties)


def _of_chosen(gradient: Array, x: Array, other: Array, first: Array, ties: Ties) -> Gradients:
    """The gradient to the first operand where it is chosen, else to the second."""
    of_first, of_second = np.where(first, gradient, 0.0), np.where(first, 0.0, gradient)
    if ties == "split":
        half = gradient / 2.0
        of_first, of_second = np.where(x == other, half, of_first), np.where(x == other, half, of_second)
    return of_operands((x, of_first), (other, of_second))


def copysign(gradient: Array, result: Array, x: Array, other: Operand) -> Gradients:
    """Result / x, 0 at 0; and 0."""
    ratio = np.where(x == 0, 0.0, result / x)
    return of_operands((x, gradient * ratio), (other, np.zeros_like(gradient)))


def nextafter(gradient: Array, result: Array, x: Array, other: Array) -> Gradients:
    """1 where there is a way to go, else 0; and 0."""
    return of_operands((x, np.where(x != other, gradient, 0.0)), (other, np.zeros_like(gradient)))


def logaddexp(gradient: Array, result: Array, x: Array, other: Array) -> Gradients:
    """1 / (1 + exp(other - x)) and the like."""
    return of_operands(
        (x, gradient / np.conj(1.0 + np.exp(other - x))), (other, gradient / np.conj(1.0 + np.exp(x - other)))
    )


def logaddexp2(gradient: Array, result: Array, x: Array, other: Array) -> Gradients:
    """1 / (1 + 2**(other - x)) and the like."""
    return of_operands((x, gradient / (1.0 + np.exp2(other - x))), (other, gradient / (1.0 + np.exp2(x - other))))


def xlogy(gradient: Array, result: Array, x: Array, other: Operand) -> Gradients:
    """log(other), 0 where x is 0 and the logarithm is not defined; and x / other."""
    slope = np.where((x == 0) & _undefined(other, 0.0), 0.0, scipy.special.xlogy(gradient, other))
    return of_operands((x, slope), (other, gradient * x / other))


def xlogy_scalar_self(gradient: Array, result: Array, other: Array, self: float) -> Gradients:
    """Self / other."""
    return of_operands((other, gradient * self / other))


def xlog1py(gradient: Array, result: Array, x: Array, other: Operand) -> Gradients:
    """log1p(other), 0 where x is 0 and the logarithm is not defined; and x / (other + 1)."""
    slope = np.where((x == 0) & _undefined(other, -1.0), 0.0, scipy.special.xlog1py(gradient, other))
    return of_operands((x, slope), (other, gradient * x / (other + 1.0)))


def xlog1py_scalar_self(gradient: Array, result: Array, other: Array, self: float) -> Gradients:
    """Self / (other + 1)."""
    return of_operands((other, gradient * self / (other + 1.0)))


def _undefined(other: Operand, end: float) -> Array:
    """Whether the operand is not above the end of the domain; NaN counts if it is a number, not if in an array."""
    answer: Array = np.logical_not(np.greater(other, end)) if is_number(other) else np.less_equal(other, end)
    return answer


def zeta(gradient: Array, result: Array, x: Array, other: Operand) -> Gradients:
    """Not implemented for the exponent; -x zeta(x + 1, other) for the offset."""
    if is_number(other):
        return of_operands((x, None))
    return of_operands((x, None), (other, gradient * -x * scipy.special.zeta(x + 1.0, other)))


def zeta_scalar_self(gradient: Array, result: Array, other: Array, self: float) -> Gradients:
    """-self zeta(self + 1, other)."""
    return of_operands((other, gradient * -self * scipy.special.zeta(self + 1.0, other)))


def igamma(gradient: Array, result: Array, x: Array, other: Array) -> Gradients:
    """Not implemented for the first operand; other**(x - 1) exp(-other) / gamma(x) for the second."""
    return of_operands((x, None), (other, gradient * _gamma_density(x, other)))


def igammac(gradient: Array, result: Array, x: Array, other: Array) -> Gradients:
    """Not implemented for the first operand; minus that of igamma for the second."""
    return of_operands((x, None), (other, -gradient * _gamma_density(x, other)))


def _gamma_density(x: Array, other: Array) -> Array:
    density: Array = np.exp((x - 1.0) * np.log(other) - other - special.lgamma(x))
    return density


def lerp(gradient: Array, result: Array, x: Array, end: Array, weight: Operand) -> Gradients:
    """1 - weight, weight, and end - x."""
    return of_operands(
        (x, gradient * np.conj(1.0 - weight)),
        (end, gradient * np.conj(weight)),
        (weight, gradient * np.conj(end - x)),
    )


def polar(gradient: Array, result: Array, x: Array, angle: Array) -> Gradients:
    """The gradient's parts along the direction of the result and across it."""
    conjugate = np.conj(gradient)
    direction = np.where(result == 0, 0.0, result / np.where(result == 0, 1.0, np.abs(result)))
    return of_operands((x, np.real(conjugate * direction)), (angle, np.real(conjugate * (result * 1j))))


def complex(gradient: Array, result: Array, real: Array, imag: Array) -> Gradients:
    """The gradient's real and imaginary part."""
    return of_operands((real, np.real(gradient)), (imag, np.imag(gradient)))
