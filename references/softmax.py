"""True values of softmax and log_softmax."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Float64s = NDArray[np.float64]


def softmax(x: Float64s, dim: int) -> Float64s:
    """exp(x) / sum(exp(x)) along ``dim``, stable; the result has the shape of ``x``.

    A row with a NaN or +inf, and a row that is all -inf, is NaN: inf - inf has no value. A scalar counts as one row.
    """
    exponentials, total, _ = _exponentials(x, dim)
    return (exponentials / total).reshape(x.shape)


def log_softmax(x: Float64s, dim: int) -> Float64s:
    """x - log(sum(exp(x))) along ``dim``, stable; exceptional rows as in :func:`softmax`."""
    _, total, shifted = _exponentials(x, dim)
    return (shifted - np.log(total)).reshape(x.shape)


def _exponentials(x: Float64s, dim: int) -> tuple[Float64s, Float64s, Float64s]:
    """exp(x - max), its sum along ``dim``, and x - max."""
    rows = np.atleast_1d(x)
    if rows.size == 0:
        return rows, rows, rows
    with np.errstate(invalid="ignore"):
        shifted = rows - rows.max(axis=dim, keepdims=True)
    exponentials = np.exp(shifted)
    return exponentials, exponentials.sum(axis=dim, keepdims=True), shifted
