"""Vector-Jacobian products of elementwise functions of three operands, which broadcast."""

from __future__ import annotations

import numpy as np

from references.gradients._common import Array, Gradients, Number, Ties, of_operands


def addcmul(gradient: Array, result: Array, x: Array, first: Array, second: Array, value: Number = 1) -> Gradients:
    """1, value second, and value first."""
    factor = 1.0 * value
    return of_operands(
        (x, gradient), (first, gradient * np.conj(second * factor)), (second, gradient * np.conj(first * factor))
    )


def addcdiv(gradient: Array, result: Array, x: Array, first: Array, second: Array, value: Number = 1) -> Gradients:
    """1, value / second, and -value first / second**2."""
    factor = 1.0 * value
    return of_operands(
        (x, gradient),
        (first, gradient * np.conj(factor / second)),
        (second, -gradient * np.conj(factor * first / (second * second))),
    )


def clamp(gradient: Array, result: Array, x: Array, low: Array, high: Array, *, ties: Ties = "one") -> Gradients:
    """1 for the operand that is chosen and 0 for the others; at NaN for none but, where it is the least, ``high``.

    At a limit the operand within has it. Where that lies below two limits that are the same, PyTorch up to 2.13 gives
    it to neither, which no subgradient answers. Split ties share it evenly, the subgradient of least norm.
    """
    if ties == "split":
        return _shared(gradient, x, low, high)
    return of_operands(
        (x, np.where((x >= low) & (x <= high), gradient, 0.0)),
        (low, np.where((x < low) & (low < high), gradient, 0.0)),
        (high, np.where((x > high) | (high < low), gradient, 0.0)),
    )


def _shared(gradient: Array, x: Array, low: Array, high: Array) -> Gradients:
    """The gradient shared among the operands of which each alone decides the result nearby."""
    of_x = (x >= low) & (x <= high)
    of_low = (x <= low) & (low <= high)
    of_high = (x >= high) | (high < low) | ((x < low) & (low == high))
    three, two = of_x & of_low & of_high, (of_x & of_low) | (of_x & of_high) | (of_low & of_high)
    share = np.where(three, gradient / 3.0, np.where(two, gradient / 2.0, gradient))
    operands = zip((x, low, high), (of_x, of_low, of_high), strict=True)
    return of_operands(*((operand, np.where(chosen, share, 0.0)) for operand, chosen in operands))
