"""True values of elementwise functions of three operands, by NumPy; for ``lerp`` see :mod:`references.binary`.

Operands are arrays of float64, complex128, int64 or uint64 that broadcast. Integers are computed modulo 2**64, which
leaves the lower bits of narrower ones right.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Number = bool | int | float | complex


def addcmul(x: Array, first: Array, second: Array, value: Number = 1) -> Array:
    """X + value first second."""
    total: Array = x + _scaled(first, value) * second
    return total


def addcdiv(x: Array, first: Array, second: Array, value: Number = 1) -> Array:
    """X + value first / second."""
    total: Array = x + _scaled(first, value) / second
    return total


def _scaled(operand: Array, value: Number) -> Array:
    """The multiple; 1 makes no step, and an integer is one of the operand's type, wrapped."""
    if value == 1:
        return operand
    factor: Any = value
    if operand.dtype.kind in "iu" and isinstance(value, int):
        factor = np.uint64(value & (2**64 - 1)).astype(operand.dtype)
    multiple: Array = operand * factor
    return multiple


def clamp(x: Array, low: Array, high: Array) -> Array:
    """X held within [low, high], ``high`` where that is empty; NaN where any of them is."""
    return np.asarray(np.minimum(np.maximum(x, low), high))
