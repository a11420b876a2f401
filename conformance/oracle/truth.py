"""Conditions on intervals: true, false, or undecided because a device may have either."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from conformance.oracle.steps import Steps

Bools = NDArray[np.bool_]

_MULTIPLY: Any = np.multiply


@dataclass(frozen=True, eq=False)
class Truth:
    """Elementwise condition: certain where ``surely`` holds, impossible where ``maybe`` does not, else undecided.

    It takes the place of a boolean array in ``np.where``, in the logical operators, and as a factor of 0 or 1.
    """

    surely: Bools
    maybe: Bools
    steps: Steps

    @classmethod
    def coerced(cls, value: object, steps: Steps) -> Truth:
        """A condition as it is, a boolean array (or a number, compared with zero) as a certain one."""
        if isinstance(value, Truth):
            return value
        certain = np.asarray(value) != 0
        return cls(certain, certain, steps)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the array it stands for."""
        return np.shape(self.surely)

    def __and__(self, other: object) -> Truth:
        given = Truth.coerced(other, self.steps)
        return Truth(self.surely & given.surely, self.maybe & given.maybe, self.steps)

    def __or__(self, other: object) -> Truth:
        given = Truth.coerced(other, self.steps)
        return Truth(self.surely | given.surely, self.maybe | given.maybe, self.steps)

    def __xor__(self, other: object) -> Truth:
        given = Truth.coerced(other, self.steps)
        return (self & ~given) | (~self & given)

    def __invert__(self) -> Truth:
        return Truth(~self.maybe, ~self.surely, self.steps)

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__

    def __mul__(self, other: object) -> Any:
        return _MULTIPLY(self, other)

    def __rmul__(self, other: object) -> Any:
        return _MULTIPLY(other, self)

    def __getitem__(self, key: Any) -> Truth:
        return Truth(self.surely[key], self.maybe[key], self.steps)

    def astype(self, dtype: object) -> Any:
        """As a factor of 0 or 1."""
        return _MULTIPLY(self, 1.0)

    def __bool__(self) -> bool:
        raise TypeError("a condition on intervals has no one truth; use np.where")

    def __array__(self, dtype: object = None, copy: object = None) -> NDArray[Any]:
        raise TypeError("a formula made an array of a condition on intervals; allowed: np.where, &, |, ~ and *")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: object, **kwargs: object) -> Any:
        if method == "__call__" and not kwargs and ufunc in _LOGICAL:
            return _LOGICAL[ufunc](*(Truth.coerced(operand, self.steps) for operand in inputs))
        from conformance.oracle.intervals import Interval

        return Interval.coerced(self, self.steps).__array_ufunc__(ufunc, method, *inputs, **kwargs)

    def __array_function__(self, function: Any, types: object, args: Any, kwargs: Any) -> Any:
        from conformance.oracle.intervals import Interval

        return Interval.coerced(self, self.steps).__array_function__(function, types, args, kwargs)


_LOGICAL: dict[Any, Callable[..., Truth]] = {
    np.bitwise_and: Truth.__and__,
    np.logical_and: Truth.__and__,
    np.bitwise_or: Truth.__or__,
    np.logical_or: Truth.__or__,
    np.bitwise_xor: Truth.__xor__,
    np.logical_xor: Truth.__xor__,
    np.invert: Truth.__invert__,
    np.logical_not: Truth.__invert__,
}
