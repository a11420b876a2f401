"""Vector-Jacobian products of matrix products: again products, with the other factor conjugated and transposed."""

from __future__ import annotations

import numpy as np

from references.gradients._common import Array, Gradients, Number, unbroadcast
from references.product import groups


def mm(gradient: Array, result: Array, a: Array, b: Array) -> Gradients:
    """G b^H and a^H G, for operands that broadcast as batches, each of one dimension or more."""
    return _factors(gradient, a, b)


def addmm(
    gradient: Array, result: Array, x: Array, a: Array, b: Array, beta: Number = 1, alpha: Number = 1
) -> Gradients:
    """beta G, summed over what was broadcast; alpha G b^H and alpha a^H G."""
    return beta * unbroadcast(gradient, x.shape), *(alpha * factor for factor in _factors(gradient, a, b))


def linear(gradient: Array, result: Array, x: Array, weight: Array, bias: Array | None = None) -> Gradients:
    """G weight and G^T x, with all leading dimensions as rows; and the sum of the rows of G."""
    features = weight.shape[:-1]
    of_x, of_weight = _factors(gradient, x, np.swapaxes(weight, 0, -1) if features else weight)
    found = (of_x, np.swapaxes(of_weight, 0, -1) if features else of_weight)
    return found if bias is None else (*found, unbroadcast(gradient, bias.shape))


def grouped_mm(
    gradient: Array, result: Array, a: Array, b: Array, offs: Array | None = None
) -> tuple[Array | None, ...]:
    """For each group as for a product of its own; no gradient of the offsets, and NaN for what is in no group."""
    if offs is None:
        return _factors(gradient, a, b)
    of_a, of_b = np.full(a.shape, np.nan), np.full(b.shape, np.nan)
    for place, in_a, in_b in groups(a, b, offs):
        of_a[in_a], of_b[in_b] = _factors(gradient[place], a[in_a], b[in_b])
    return of_a, of_b, None


def _factors(gradient: Array, a: Array, b: Array) -> tuple[Array, Array]:
    """The gradients of both factors of ``np.matmul``; a vector on the left is a row, on the right a column."""
    left = a.reshape((1, *a.shape)) if a.ndim == 1 else a
    right = b.reshape((*b.shape, 1)) if b.ndim == 1 else b
    batch = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    incoming = gradient.reshape((*batch, left.shape[-2], right.shape[-1]))
    of_left = np.matmul(incoming, np.conj(np.swapaxes(right, -1, -2)))
    of_right = np.matmul(np.conj(np.swapaxes(left, -1, -2)), incoming)
    return unbroadcast(of_left, left.shape).reshape(a.shape), unbroadcast(of_right, right.shape).reshape(b.shape)
