"""Vector-Jacobian products of reductions. ``dim`` is one dimension, several, or None for all."""

from __future__ import annotations

from math import prod as product
from typing import Any

import numpy as np

from references.gradients._common import Array, Gradients, along, normalized, of_operands

Dim = int | tuple[int, ...] | list[int] | None


def sum(
    gradient: Array, result: Array, x: Array, dim: Dim = None, keepdim: bool = False, dtype: Any = None
) -> Gradients:
    """1 for each term."""
    return of_operands((x, _expanded(gradient, x, dim)))


def nansum(
    gradient: Array, result: Array, x: Array, dim: Dim = None, keepdim: bool = False, dtype: Any = None
) -> Gradients:
    """1 for each term that is not NaN, else 0."""
    return of_operands((x, _expanded(gradient, x, dim) * np.where(np.isnan(x), 0.0, 1.0)))


def mean(
    gradient: Array, result: Array, x: Array, dim: Dim = None, keepdim: bool = False, dtype: Any = None
) -> Gradients:
    """1 over the number of terms."""
    count = product(x.shape[axis] for axis in normalized(dim, len(x.shape)))
    return of_operands((x, _expanded(gradient, x, dim) / count))


def amax(gradient: Array, result: Array, x: Array, dim: Dim = (), keepdim: bool = False) -> Gradients:
    """1 for the elements equal to the result, in equal parts; NaN where the result is."""
    axes = normalized(dim, len(x.shape))
    chosen = np.where(_restored(result, x, dim) == x, 1.0, 0.0)
    return of_operands((x, _restored(gradient, x, dim) / np.sum(chosen, axis=axes, keepdims=True) * chosen))


amin = amax


def prod(
    gradient: Array, result: Array, x: Array, dim: int | None = None, keepdim: bool = False, dtype: Any = None
) -> Gradients:
    """The product of the other factors: result / x, or where there are zeros among all factors a product without x.

    Without ``dim`` and with two zeros or more all is 0.
    """
    if x.shape == ():
        return of_operands((x, gradient))
    axis = normalized(dim, len(x.shape))[0]
    factors = x.reshape((-1,)) if dim is None else x
    incoming = _restored(gradient, factors, axis)
    quotient = _restored(result, factors, axis) / np.where(factors == 0, 1.0, factors)
    zeros = np.sum(np.where(factors == 0, 1.0, 0.0), axis=None)
    slope = incoming * np.conj(np.where(zeros == 0, quotient, _of_others(factors, axis)))
    if dim is None:
        slope = np.where(zeros > 1, 0.0, slope)
    return of_operands((x, slope.reshape(x.shape)))


def _of_others(factors: Array, axis: int) -> Array:
    """The product of all elements but one along an axis, for each."""
    if factors.shape[axis] <= 1:
        return np.ones(factors.shape)
    dimensions = len(factors.shape)
    one = np.ones(tuple(1 if each == axis else size for each, size in enumerate(factors.shape)))
    before = factors[along(axis, slice(None, -1), dimensions)]
    after = factors[along(axis, slice(None, 0, -1), dimensions)]
    left, right = (_running(np.concatenate([one, part], axis), axis) for part in (before, after))
    others: Array = left * right[along(axis, slice(None, None, -1), dimensions)]
    return others


def _running(factors: Array, axis: int) -> Array:
    """The running product along an axis, by doubling (Hillis and Steele 1986): as many products as one by one."""
    dimensions, distance = len(factors.shape), 1
    while distance < factors.shape[axis]:
        head = factors[along(axis, slice(None, distance), dimensions)]
        tail = factors[along(axis, slice(distance, None), dimensions)]
        factors = np.concatenate([head, tail * factors[along(axis, slice(None, -distance), dimensions)]], axis)
        distance *= 2
    return factors


def _restored(array: Array, x: Array, dim: Dim) -> Array:
    """A reduction's result or gradient with its reduced dimensions as 1."""
    axes = normalized(dim, len(x.shape))
    return array.reshape(tuple(1 if axis in axes else size for axis, size in enumerate(x.shape)))


def _expanded(gradient: Array, x: Array, dim: Dim) -> Array:
    return np.broadcast_to(_restored(gradient, x, dim), x.shape)
