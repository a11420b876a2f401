"""True values of matrix products, by NumPy in float64, complex128 or integers that wrap around modulo 2**64.

Each is linear in every operand and subtracts nothing, which is what their bounds follow from. A sum in float64 errs by
less than 2**-50 of the sum of the sizes of its terms.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Number = int | float


def mm(a: Array, b: Array) -> Array:
    """The product of two matrices, or of batches of matrices (``bmm``), or of a matrix and a vector (``mv``)."""
    return np.asarray(np.matmul(a, b))


def addmm(x: Array, a: Array, b: Array, beta: Number = 1, alpha: Number = 1) -> Array:
    """beta x + alpha (a b), with x broadcast; where beta is 0 nothing of x is in it, no NaN either."""
    product = np.asarray(alpha * np.matmul(a, b))
    return product if beta == 0 else np.asarray(product + beta * x)


def linear(x: Array, weight: Array, bias: Array | None = None) -> Array:
    """x weight^T + bias along the last dimension of x; a weight of one dimension gives a result of one fewer."""
    product = np.matmul(x, np.swapaxes(weight, 0, -1) if weight.ndim > 1 else weight)
    return np.asarray(product if bias is None else product + bias)


def grouped_mm(a: Array, b: Array, offs: Array | None = None) -> Array:
    """A product for each group: ``offs`` has where each ends along the dimension that the groups share.

    Of a and b, those with two dimensions are split: both of them along what is summed, so that each group is a matrix
    of the result; else rows of a, or columns of b, with a matrix of the other for each. Without ``offs`` a batch. NaN
    stands for what belongs to no group, of which nobody says what it is.
    """
    if offs is None:
        return mm(a, b)
    shape = (a.shape[-2], b.shape[-1])
    result = np.full((offs.size, *shape) if a.ndim == b.ndim else shape, np.nan)
    for place, in_a, in_b in groups(a, b, offs):
        result[place] = np.matmul(a[in_a], b[in_b])
    return result


def groups(a: Array, b: Array, offs: Array) -> Iterator[tuple[Any, Any, Any]]:
    """Where each group lies: in the result, in a, and in b."""
    start = 0
    for number, end in enumerate(offs.tolist()):
        part, start = slice(start, end), end
        if a.ndim == b.ndim:
            yield number, np.s_[:, part], part
        elif a.ndim == 2:
            yield part, part, number
        else:
            yield np.s_[:, part], number, np.s_[:, part]


def scaled_mm(a: Array, b: Array, scale_a: Array, scale_b: Array, bias: Array | None = None, **recipe: Any) -> Array:
    """scale_a scale_b (a b) + bias, with a scale for each row of a and column of b, or one for all of each.

    How it is scaled follows from the shapes of the scales; ``recipe`` has what else the call says about it.
    """
    product = np.matmul(a, b) * scale_a * scale_b
    return np.asarray(product if bias is None else product + bias)
