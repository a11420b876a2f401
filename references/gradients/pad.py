"""Vector-Jacobian products of pads, one axis after another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from references.gradients._common import Array, Gradients, along, of_operands

Placed = tuple[Array, int]
"""A part of the gradient, and the element of the operand's axis where it begins."""


@dataclass(frozen=True)
class _Axis:
    """An axis of the operand: its number and size, and the elements padded before and after it."""

    number: int
    size: int
    before: int
    after: int

    @property
    def kept(self) -> range:
        """The elements that negative pads leave."""
        return range(min(max(-self.before, 0), self.size), max(self.size - max(-self.after, 0), 0))


def pad(
    gradient: Array,
    result: Array,
    x: Array,
    pad: Sequence[int],
    mode: str = "constant",
    value: float | complex | None = None,
) -> Gradients:
    """The sum of the elements that each element was copied to.

    ``pad`` lists what is added before and after, last dimension first; a negative number crops.
    """
    if mode not in _OUTSIDE:
        raise ValueError(f"mode is {mode!r}; allowed: {', '.join(_OUTSIDE)}")
    for i in range(len(pad) // 2):
        axis = len(x.shape) - 1 - i
        gradient = _folded(gradient, _Axis(axis, x.shape[axis], pad[2 * i], pad[2 * i + 1]), mode)
    return of_operands((x, gradient))


def _folded(gradient: Array, axis: _Axis, mode: str) -> Array:
    """The gradient along one axis: what came from within, and what ``mode`` copied outside."""
    length = gradient.shape[axis.number]
    left, right = min(max(axis.before, 0), length), min(max(axis.after, 0), length)

    def part(start: int, stop: int) -> Array:
        return gradient[along(axis.number, slice(start, stop), len(gradient.shape))]

    folded = _spread((part(left, length - right), axis.kept.start), axis)
    for piece, start in _OUTSIDE[mode](part(0, left), part(length - right, length), axis):
        if piece.shape[axis.number]:
            folded = folded + _spread((piece, start), axis)
    return folded


def _spread(placed: Placed, axis: _Axis) -> Array:
    """The part with zeros around it, as many elements as the operand has."""
    piece, start = placed

    def zeros(count: int) -> Array:
        return np.zeros(tuple(count if each == axis.number else size for each, size in enumerate(piece.shape)))

    stop = start + piece.shape[axis.number]
    return np.concatenate([zeros(start), piece, zeros(axis.size - stop)], axis.number)


def _constant(left: Array, right: Array, axis: _Axis) -> list[Placed]:
    return []


def _reflect(left: Array, right: Array, axis: _Axis) -> list[Placed]:
    cropped = axis.before - left.shape[axis.number]
    return [(np.flip(left, axis.number), 1 + cropped), (np.flip(right, axis.number), axis.size - 1 - axis.after)]


def _replicate(left: Array, right: Array, axis: _Axis) -> list[Placed]:
    sides = ((left, 0), (right, axis.size - 1))
    return [(np.sum(side, axis=axis.number, keepdims=True), end) for side, end in sides if side.shape[axis.number]]


def _circular(left: Array, right: Array, axis: _Axis) -> list[Placed]:
    """A negative pad crops first: the other side repeats what is kept."""
    return [(left, axis.kept.stop - left.shape[axis.number]), (right, axis.kept.start)]


_OUTSIDE: dict[str, Callable[[Array, Array, _Axis], list[Placed]]] = {
    "constant": _constant,
    "reflect": _reflect,
    "replicate": _replicate,
    "circular": _circular,
}
