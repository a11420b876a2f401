"""Vector-Jacobian products of activation functions and of ops with scalar parameters, for real operands."""

from __future__ import annotations

from math import pi, sqrt

import numpy as np
import scipy

from references.gradients._common import Array, Gradients, Ties, along, product


def gelu(gradient: Array, result: Array, x: Array, approximate: str = "none") -> Gradients:
    """The normal distribution function plus x times its density; or the derivative of the formula with tanh."""
    if approximate == "tanh":
        return (gradient * _gelu_tanh_slope(x),)
    density = 1.0 / sqrt(2.0 * pi) * np.exp(-0.5 * (x * x))
    return (gradient * (scipy.special.ndtr(x) + x * density),)


def _gelu_tanh_slope(x: Array) -> Array:
    """The derivative of x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x**3))), by the product rule."""
    scale, cubic = sqrt(2.0 / pi), 0.044715
    squared = x * x
    tanh = np.tanh(scale * (x + cubic * (squared * x)))
    inner = scale * (1.0 + 3.0 * cubic * squared)
    slope: Array = 0.5 * (1.0 + tanh) + 0.5 * x * ((1.0 - tanh * tanh) * inner)
    return slope


def silu(gradient: Array, result: Array, x: Array) -> Gradients:
    """sigmoid(x) (1 + x (1 - sigmoid(x)))."""
    sigmoid = scipy.special.expit(x)
    return (gradient * sigmoid * (1.0 + x * (1.0 - sigmoid)),)


def mish(gradient: Array, result: Array, x: Array) -> Gradients:
    """Tanh(softplus(x)) plus x sigmoid(x) times what its square lacks to 1."""
    sigmoid = scipy.special.expit(x)
    tanh = np.tanh(np.log1p(np.exp(x)))
    return (gradient * (tanh + x * sigmoid * (1.0 - tanh * tanh)),)


def logsigmoid(gradient: Array, result: Array, x: Array) -> Gradients:
    """sigmoid(-x), by exp(-abs(x))."""
    small = np.exp(-np.abs(x))
    negative = x < 0
    slope = np.where(negative, 1.0, 0.0) - np.where(negative, 1.0, -1.0) * (small / (1.0 + small))
    return (gradient * slope,)


def hardsigmoid(gradient: Array, result: Array, x: Array) -> Gradients:
    """1 / 6 within (-3, 3), 0 outside."""
    return (np.where((x > -3.0) & (x < 3.0), gradient * (1.0 / 6.0), 0.0),)


def hardswish(gradient: Array, result: Array, x: Array) -> Gradients:
    """0 up to -3, 1 from 3 on and at NaN, x / 3 + 1 / 2 between."""
    inner = gradient * (x / 3.0 + 0.5)
    return (np.where(x <= -3.0, 0.0, np.where(x < 3.0, inner, gradient)),)


def elu(gradient: Array, result: Array, x: Array, alpha: float = 1.0) -> Gradients:
    """1 above 0 and at NaN, alpha exp(x) up to 0."""
    return (np.where(x <= 0, gradient * alpha * np.exp(x), gradient),)


def leaky_relu(gradient: Array, result: Array, x: Array, negative_slope: float = 0.01) -> Gradients:
    """1 above 0, the negative slope up to it."""
    return (np.where(x > 0, gradient, gradient * negative_slope),)


def hardshrink(gradient: Array, result: Array, x: Array, lambd: float = 0.5) -> Gradients:
    """1 outside [-lambd, lambd] and at NaN, 0 inside."""
    return (np.where((x >= -lambd) & (x <= lambd), 0.0, gradient),)


softshrink = hardshrink


def softplus(gradient: Array, result: Array, x: Array, beta: float = 1.0, threshold: float = 20.0) -> Gradients:
    """exp(beta x) / (exp(beta x) + 1), and 1 where beta x exceeds the threshold."""
    exponential = np.exp(x * beta)
    return (np.where(x * beta > threshold, gradient, gradient * exponential / (exponential + 1.0)),)


def clamp(
    gradient: Array,
    result: Array,
    x: Array,
    min: float | None = None,
    max: float | None = None,
    *,
    ties: Ties = "one",
) -> Gradients:
    """1 within the limits, 0 outside and at NaN; at a limit itself 1 or, with split ties, 0."""
    inside = np.ones(x.shape, bool)
    if min is not None:
        inside = inside & (x >= min if ties == "one" else x > min)
    if max is not None:
        inside = inside & (x <= max if ties == "one" else x < max)
    return (np.where(inside, gradient, 0.0),)


def nan_to_num(
    gradient: Array,
    result: Array,
    x: Array,
    nan: float | None = 0.0,
    posinf: float | None = None,
    neginf: float | None = None,
) -> Gradients:
    """1 where the operand is finite, else 0."""
    return (gradient * np.where(np.isfinite(x), 1.0, 0.0),)


def glu(gradient: Array, result: Array, x: Array, dim: int = -1) -> Gradients:
    """Of the first half sigmoid(b), of the second a (1 - sigmoid(b)) sigmoid(b)."""
    dimensions = len(x.shape)
    axis = dim % dimensions
    half = x.shape[axis] // 2
    first = x[along(axis, slice(0, half), dimensions)]
    sigmoid = scipy.special.expit(x[along(axis, slice(half, None), dimensions)])
    second = product((1.0 - sigmoid) * sigmoid, gradient, first)
    return (np.concatenate([sigmoid * gradient, second], axis),)
