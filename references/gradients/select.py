"""Vector-Jacobian products of ops that choose elements: where, masked_fill, cat."""

from __future__ import annotations

import numpy as np

from references.gradients._common import Array, Gradients, Operand, along, is_number, of_operands


def where(gradient: Array, result: Array, condition: Array, x: Array, other: Operand) -> Gradients:
    """1 for the operand that is chosen, 0 for the other."""
    return of_operands(
        (condition, None), (x, np.where(condition, gradient, 0.0)), (other, np.where(condition, 0.0, gradient))
    )


def where_scalar_self(gradient: Array, result: Array, condition: Array, other: Array, self: float) -> Gradients:
    """1 where the operand is chosen over the number, else 0."""
    return of_operands((condition, None), (other, np.where(condition, 0.0, gradient)))


def masked_fill(gradient: Array, result: Array, x: Array, mask: Array, value: Operand) -> Gradients:
    """1 outside the mask, 0 within; for a value that is a tensor the sum within the mask."""
    filled = None if is_number(value) else np.where(mask, gradient, 0.0)
    return of_operands((x, np.where(mask, 0.0, gradient)), (mask, None), (value, filled))


def cat(gradient: Array, result: Array, *tensors: Array, dim: int = 0) -> Gradients:
    """To each tensor its part; a tensor of shape (0,) may be in any list and gets a gradient of shape (0,)."""
    dimensions = len(gradient.shape)
    axis, start = dim % dimensions, 0
    pairs: list[tuple[Operand, Array | None]] = []
    for tensor in tensors:
        if tensor.shape == (0,):
            pairs.append((tensor, np.zeros((0,))))
            continue
        stop = start + tensor.shape[axis]
        pairs.append((tensor, gradient[along(axis, slice(start, stop), dimensions)]))
        start = stop
    return of_operands(*pairs)
