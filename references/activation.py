"""True values of activation functions and of ops with scalar parameters, for float64 arrays of any shape.

Integers stay exact in ``clamp``. Where a formula is indeterminate at an infinity the limit is given.
"""

from __future__ import annotations

from math import pi, sqrt
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

Array = NDArray[Any]
Float64s = NDArray[np.float64]


def gelu(x: Float64s, approximate: str = "none") -> Float64s:
    """X times the normal distribution function of x.

    Its approximation by "tanh" is x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x**3))), here written as a logistic
    function, which does not cancel.
    """
    if approximate == "tanh":
        return _times(x, scipy.special.expit(2.0 * sqrt(2.0 / pi) * (x + 0.044715 * x**3)))
    return _times(x, scipy.special.ndtr(x))


def silu(x: Float64s) -> Float64s:
    """X times sigmoid(x)."""
    return _times(x, scipy.special.expit(x))


def mish(x: Float64s) -> Float64s:
    """X times tanh(log(1 + exp(x))), with the tanh as a quotient in exp(-|x|)."""
    small = np.exp(-np.abs(x))
    positive = (1.0 + 2.0 * small) / (1.0 + 2.0 * small + 2.0 * small**2)
    negative = small * (small + 2.0) / (small * (small + 2.0) + 2.0)
    return _times(x, np.where(x > 0, positive, negative))


def logsigmoid(x: Float64s) -> Float64s:
    """log(1 / (1 + exp(-x)))."""
    return np.asarray(scipy.special.log_expit(x))


def hardsigmoid(x: Float64s) -> Float64s:
    """x / 6 + 1 / 2, held within [0, 1]."""
    return np.clip(x + 3.0, 0.0, 6.0) / 6.0


def hardswish(x: Float64s) -> Float64s:
    """0 up to -3, x from 3 on, x (x + 3) / 6 between."""
    return np.where(x <= -3.0, 0.0, np.where(x >= 3.0, x, x * (x + 3.0) / 6.0))


def elu(x: Float64s, alpha: float = 1.0) -> Float64s:
    """X above 0, alpha (exp(x) - 1) below."""
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0.0)))


def leaky_relu(x: Float64s, negative_slope: float = 0.01) -> Float64s:
    """X above 0, negative_slope x below."""
    return np.where(x > 0, x, negative_slope * x)


def hardshrink(x: Float64s, lambd: float = 0.5) -> Float64s:
    """X outside [-lambd, lambd], 0 inside."""
    return np.where(np.abs(x) <= lambd, 0.0, x)


def softshrink(x: Float64s, lambd: float = 0.5) -> Float64s:
    """X moved towards 0 by lambd, and 0 within it."""
    return np.where(np.abs(x) <= lambd, 0.0, x - np.copysign(lambd, x))


def softplus(x: Float64s, beta: float = 1.0, threshold: float = 20.0) -> Float64s:
    """log(1 + exp(beta x)) / beta, and x where beta x exceeds the threshold."""
    scaled = beta * x
    return np.where(scaled > threshold, x, np.logaddexp(0.0, scaled) / beta)


def clamp(x: Array, min: float | None = None, max: float | None = None) -> Array:
    """X held within [min, max]; NaN stays."""
    return np.clip(x, min, max)


def nan_to_num(x: Float64s, nan: float, posinf: float, neginf: float) -> Float64s:
    """X with NaN and the infinities replaced."""
    return np.nan_to_num(x, nan=nan, posinf=posinf, neginf=neginf)


def glu(x: Float64s, dim: int = -1) -> Float64s:
    """The first half along a dimension times the sigmoid of the second."""
    first, second = np.split(x, 2, axis=dim)
    return np.asarray(first * scipy.special.expit(second))


def _times(x: Float64s, factor: Float64s) -> Float64s:
    """The product, and its limit -0.0 where it is -inf times 0."""
    return np.where(np.isneginf(x), -0.0, x * factor)
