"""Vector-Jacobian products of softmax and log_softmax, from the saved result."""

from __future__ import annotations

import numpy as np

from references.gradients._common import Array, Gradients, normalized


def softmax(gradient: Array, result: Array, x: Array, dim: int) -> Gradients:
    """The gradient minus its mean in the weights of the result, times the result."""
    axis = normalized(dim, len(x.shape))
    return ((gradient - np.sum(gradient * result, axis=axis, keepdims=True)) * result,)


def log_softmax(gradient: Array, result: Array, x: Array, dim: int) -> Gradients:
    """The gradient minus exp(result) times its sum."""
    axis = normalized(dim, len(x.shape))
    return (gradient - np.exp(result) * np.sum(gradient, axis=axis, keepdims=True),)
