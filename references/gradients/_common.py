"""What every vector-Jacobian product needs: types, and a gradient brought to the shape and kind of its operand."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import mul as multiply
from typing import Any, Literal, TypeAlias, TypeGuard

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
Number: TypeAlias = float | complex
Operand: TypeAlias = Any
"""What may be an array or a number."""

Gradients: TypeAlias = tuple[Array | None, ...]

Ties: TypeAlias = Literal["one", "split"]
"""Who gets the gradient where a selection ties, which any subgradient answers.

PyTorch up to 2.13 gives all of it to one operand ("one"); from 2.14 on it is split as among the arguments ("split"),
of which a limit that is a number takes its share away with it.
"""


def is_number(operand: object) -> TypeGuard[Number]:
    """Whether an operand is a number, to which no gradient goes."""
    return isinstance(operand, (int, float, complex))


def is_complex(x: Any) -> bool:
    """Whether ``x`` is a complex array or number."""
    return bool(np.iscomplexobj(x))


def differentiable(operand: object) -> bool:
    """Whether gradients reach an operand: integers and conditions have none."""
    return not isinstance(operand, np.ndarray) or operand.dtype.kind in "fc"


def unbroadcast(array: Array, shape: tuple[int, ...]) -> Array:
    """The sum of ``array`` over the dimensions that broadcasting ``shape`` to its shape added or stretched."""
    if array.shape == shape:
        return array
    added = len(array.shape) - len(shape)
    stretched = tuple(
        axis for axis in range(len(array.shape)) if axis < added or (shape[axis - added] == 1 != array.shape[axis])
    )
    return np.sum(array, axis=stretched, keepdims=True).reshape(shape) if stretched else array.reshape(shape)


def of_operands(*pairs: tuple[Operand, Array | None]) -> Gradients:
    """The gradients of operands that were broadcast together, given those in the result's shape.

    A number is no operand and gets no entry, an operand without a gradient gets None. The gradient of a real operand
    of a complex result is the real part.
    """
    return tuple(_of_operand(operand, array) for operand, array in pairs if not is_number(operand))


def _of_operand(operand: Any, array: Array | None) -> Array | None:
    if array is None or not differentiable(operand):
        return None
    if is_complex(array) and not is_complex(operand):
        array = np.real(array)
    return unbroadcast(array, operand.shape)


def sign(x: Array) -> Array:
    """x / abs(x), and 0 at 0; of a real NaN 0 as well, as two comparisons give it."""
    if is_complex(x):
        return np.where(x == 0, 0.0, x / np.where(x == 0, 1.0, np.abs(x)))
    return np.where(x > 0, 1.0, np.where(x < 0, -1.0, 0.0))


def elementwise(function: Callable[[Array], Array], x: Array) -> Array:
    """``function(x)``, for a function that is no ufunc: what is no array applies it by its method of this name."""
    own: Callable[[Callable[[Array], Array]], Array] | None = getattr(x, "elementwise", None)
    return function(x) if own is None else own(function)


def product(x: Array, *factors: Operand) -> Array:
    """The product of factors that a kernel may take in any order; what is no array does so by its own ``product``."""
    own: Callable[..., Array] | None = getattr(x, "product", None)
    return reduce(multiply, factors, x) if own is None else own(*factors)


def normalized(axis: int | tuple[int, ...] | list[int] | None, dimensions: int) -> tuple[int, ...]:
    """The axes as nonnegative numbers; None and an empty list are all of them, and a scalar has none."""
    if dimensions == 0:
        return ()
    if axis is None or (isinstance(axis, (tuple, list)) and not axis):
        return tuple(range(dimensions))
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    return tuple(sorted(each % dimensions for each in axes))


def along(axis: int, part: slice, dimensions: int) -> tuple[slice, ...]:
    """The index that takes ``part`` of one axis and all of the others."""
    return tuple(part if each == axis else slice(None) for each in range(dimensions))
