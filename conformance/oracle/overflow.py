"""Where a step of a formula may overflow, or divide by zero for a flushed number: operands that remember it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import NDArray

from conformance.dtypes import DType
from conformance.dtypes import dtype as dtype_of
from conformance.op import Computation
from conformance.oracle.operands import compute_type, operands, parameters

Bools = NDArray[np.bool_]

_MOVING = frozenset(
    "reshape broadcast_to transpose moveaxis swapaxes expand_dims squeeze flip roll ravel take repeat tile concatenate "
    "stack pad diagonal copy".split()
)
"""Functions that move the elements, and what they remember along with them."""


def may_overflow(computation: Computation) -> Bools:
    """The elements on whose way a step may be beyond the largest number of the computation's type.

    A quotient by a subnormal number is one: flushed, it is a quotient by zero.
    In arithmetic of complex numbers a step is a product or a quotient as a whole: the sums of products it is made of
    are up to |a| |b|, and up to sqrt(2) |a| in Smith's quotient (Communications of the ACM 5, 1962).
    """
    computed = dtype_of(compute_type(computation.dtype))
    with np.errstate(all="ignore"):
        watched = [Watched(x, np.zeros(x.shape, bool), computed) for x in operands(computation)]
        result = computation.reference(*watched, **parameters(computation))
    return np.asarray(result.beyond if isinstance(result, Watched) else np.zeros(np.shape(result), bool))


class Watched(NDArrayOperatorsMixin):
    """An array with a mask, ``beyond``, of the elements on whose way a step may have left the range of ``format``."""

    def __init__(self, value: NDArray[Any], beyond: Bools, format: DType) -> None:
        self.value, self.format = np.asarray(value), format
        self.beyond = np.broadcast_to(beyond, self.value.shape)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the array."""
        return self.value.shape

    @property
    def ndim(self) -> int:
        """The number of its dimensions."""
        return self.value.ndim

    @property
    def size(self) -> int:
        """The number of its elements."""
        return int(self.value.size)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of its elements."""
        return self.value.dtype

    @property
    def real(self) -> Watched:
        """The real parts."""
        return Watched(self.value.real, self.beyond, self.format)

    @property
    def imag(self) -> Watched:
        """The imaginary parts."""
        return Watched(self.value.imag, self.beyond, self.format)

    def __getitem__(self, key: Any) -> Watched:
        return Watched(self.value[key], self.beyond[key], self.format)

    def sum(self, axis: Any = None, keepdims: bool = False) -> Watched:
        """As ``np.sum``."""
        return self._sum(self, axis=axis, keepdims=keepdims)

    def reshape(self, *shape: Any) -> Watched:
        """As ``np.reshape``."""
        return Watched(self.value.reshape(*shape), self.beyond.reshape(*shape), self.format)

    def elementwise(self, function: Callable[[NDArray[Any]], NDArray[Any]]) -> Watched:
        """A function that is no ufunc."""
        return self._of(function(self.value), self.beyond, np.False_)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if method == "reduce" and ufunc is np.add:
            return self._sum(*inputs, **kwargs)
        given = [_value(x) for x in inputs]
        value = getattr(ufunc, method)(*given, **kwargs)
        if value.dtype.kind == "b":
            return value
        within = np.False_
        if ufunc is np.multiply:
            within = np.abs(given[0]) * np.abs(given[1]) > self.format.max
        elif ufunc is np.power:
            within = ~np.isfinite(value) & (given[0] != 0)  # beyond float64 as well
        elif ufunc in (np.divide, np.reciprocal):
            divisor = np.abs(given[-1])
            within = (divisor != 0) & (divisor < self.format.tiny)
            if ufunc is np.divide and any(map(np.iscomplexobj, given)):
                within = within | (math.sqrt(2.0) * np.abs(given[0]) > self.format.max)
        return self._of(value, _any(*map(_beyond, inputs)), within & _finite(given))

    def __array_function__(self, function: Any, types: object, args: Any, kwargs: Any) -> Any:
        if function is np.sum:
            return self._sum(*args, **kwargs)
        plain, options = [_value(x) for x in args], {key: _value(x) for key, x in kwargs.items()}
        value = function(*plain, **options)
        if not isinstance(value, np.ndarray):
            return value
        if function in (np.where, np.real, np.imag, np.conj):
            chosen = [_beyond(x) for x in args[1:]] if function is np.where else [_beyond(args[0])]
            beyond = np.where(plain[0], *chosen) if function is np.where else chosen[0]
        elif function.__name__ in _MOVING:
            beyond = function(*map(_beyond, args[:1]), *plain[1:], **options)
        else:
            beyond = _any(*(np.any(_beyond(x)) for x in args))
        return Watched(value, beyond, self.format)

    def _sum(self, x: Any, axis: Any = None, keepdims: bool = False) -> Watched:
        value = np.sum(_value(x), axis=axis, keepdims=keepdims)
        sizes = np.sum(np.abs(_value(x)), axis=axis, keepdims=keepdims)
        beyond = np.any(_beyond(x), axis=axis, keepdims=keepdims)
        return self._of(value, beyond, np.isfinite(sizes) & (sizes > self.format.max))

    def _of(self, value: NDArray[Any], beyond: Bools, within: Any) -> Watched:
        """A step's value: beyond if an operand was, a part of the step may be, or the value is."""
        parts = np.maximum(np.abs(value.real), np.abs(value.imag))
        return Watched(value, beyond | within | (np.isfinite(parts) & (parts > self.format.max)), self.format)


def _value(x: Any) -> Any:
    if isinstance(x, (list, tuple)):
        return type(x)(_value(item) for item in x)
    return x.value if isinstance(x, Watched) else x


def _beyond(x: Any) -> Any:
    if isinstance(x, (list, tuple)):
        return [_beyond(item) for item in x]
    return x.beyond if isinstance(x, Watched) else np.zeros(np.shape(x), bool)


def _finite(given: list[Any]) -> Any:
    return np.logical_and.reduce(np.broadcast_arrays(*map(np.isfinite, given)))


def _any(*masks: Any) -> Any:
    return np.logical_or.reduce(np.broadcast_arrays(*masks))
