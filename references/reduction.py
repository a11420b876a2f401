"""True values of reductions, by NumPy in float64, complex128 or exact integers.

``dim`` is one dimension, several, or None or none for all. A sum in float64 errs by less than 2**-50 of the sum of the
sizes of its terms, which is what the bounds of sums count in.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Dim = int | Sequence[int] | None


def sum(x: Array, dim: Dim = None, keepdim: bool = False, dtype: Any = None) -> Array:
    """The sum; of integers and bool modulo 2**64.

    With a ``dtype``, torch's name of a type, the terms are converted to it first. Where floats become integers the sum
    is NaN if C does not define a term's value, or float64 does not hold the sum of the sizes exactly.
    """
    terms, axes = _number(_converted(x, dtype)), _axes(dim, x)
    total = np.asarray(np.sum(terms, axis=axes, keepdims=keepdim))
    if not _truncates(x, dtype):
        return total
    sizes = np.sum(np.abs(terms), axis=axes, keepdims=keepdim)
    return np.where(sizes < _EXACT, total, np.nan)


def nansum(x: Array, dim: Dim = None, keepdim: bool = False, dtype: Any = None) -> Array:
    """The sum of what is not NaN."""
    return sum(np.where(np.isnan(x), 0.0, x), dim, keepdim)


def mean(x: Array, dim: Dim = None, keepdim: bool = False, dtype: Any = None) -> Array:
    """The sum over the number of terms; NaN of nothing."""
    total = sum(x, dim, keepdim)
    count = np.float64(x.size // max(total.size, 1))
    if total.dtype.kind != "c":
        return np.asarray(total / count)
    parts = np.empty_like(total)
    parts.real, parts.imag = total.real / count, total.imag / count  # as one quotient an infinity would be NaN
    return parts


def prod(x: Array, dim: int | None = None, keepdim: bool = False, dtype: Any = None) -> Array:
    """The product; of integers and bool modulo 2**64."""
    return np.asarray(np.prod(_number(x), axis=_axes(dim, x), keepdims=keepdim))


def amax(x: Array, dim: Dim = None, keepdim: bool = False) -> Array:
    """The largest element; NaN if one is."""
    return np.asarray(np.max(x, axis=_axes(dim, x), keepdims=keepdim))


def amin(x: Array, dim: Dim = None, keepdim: bool = False) -> Array:
    """The smallest element; NaN if one is."""
    return np.asarray(np.min(x, axis=_axes(dim, x), keepdims=keepdim))


def any(x: Array, dim: Dim = None, keepdim: bool = False) -> Array:
    """Whether some element is not zero; NaN is not."""
    return np.asarray(np.any(x != 0, axis=_axes(dim, x), keepdims=keepdim))


def all(x: Array, dim: Dim = None, keepdim: bool = False) -> Array:
    """Whether no element is zero; NaN is not."""
    return np.asarray(np.all(x != 0, axis=_axes(dim, x), keepdims=keepdim))


def count_nonzero(x: Array, dim: Dim = None) -> Array:
    """How many elements are not zero; NaN is not."""
    return np.asarray(np.count_nonzero(x, axis=_axes(dim, x)))


def _axes(dim: Dim, x: Array) -> int | tuple[int, ...] | None:
    if dim is None or (isinstance(dim, Sequence) and not dim) or x.ndim == 0:
        return None
    return tuple(dim) if isinstance(dim, Sequence) else dim


def _number(x: Array) -> Array:
    """A number for a condition."""
    return x.astype(np.int64) if x.dtype == np.bool_ else x


_EXACT = 2.0**53
"""Below it float64 has all integers."""


def _converted(x: Array, dtype: str | None) -> Array:
    """The terms in the type that torch calls ``dtype``, upcast again."""
    name = (dtype or "").removeprefix("torch.")
    if not name or name.startswith("complex"):
        return x
    if x.dtype.kind == "c":
        x = x.real
    if name.startswith("float"):
        return x.astype(name).astype(np.float64)
    if not _truncates(x, dtype):
        return x
    whole, limits = np.trunc(x), np.iinfo(name)
    return np.where((whole >= limits.min) & (whole <= limits.max), whole, np.nan)


def _truncates(x: Array, dtype: str | None) -> bool:
    """Whether floats become integers."""
    return x.dtype.kind == "f" and (dtype or "").removeprefix("torch.").startswith(("int", "uint"))
