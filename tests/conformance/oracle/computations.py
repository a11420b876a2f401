"""Computations for the oracle's tests: every half, float32 numbers of all exponents, and what kernels make of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from conformance.dtypes import BY_NAME
from conformance.dtypes import dtype as dtype_of
from conformance.formats import widened
from conformance.op import Bound, Computation, ReferenceFunction
from conformance.oracle import Judgement, judge


def operands(dtype: str) -> NDArray[Any]:
    """All bit patterns of a 16-bit type, or float32 numbers of every exponent, sign and special kind."""
    described = dtype_of(dtype)
    if described.itemsize == 2:
        return np.arange(1 << 16, dtype=np.uint32).astype(np.uint16).view(described.numpy)
    random = np.random.default_rng(0).integers(0, 1 << 32, 1 << 15, dtype=np.uint32)
    about_one = (0x3F800000 + np.arange(-4096, 4096)).astype(np.uint32)
    return np.concatenate([random, about_one, about_one | 0x80000000]).view(np.float32)


def computation(x: NDArray[Any], dtype: str, reference: ReferenceFunction, **params: Any) -> Computation:
    """The computation of ``reference`` at ``x``, with a result of the operand's type."""
    with np.errstate(invalid="ignore"):
        return Computation((x.astype(np.float64),), (dtype,), params, dtype, reference)


def broadcast(
    reference: ReferenceFunction,
    *given: NDArray[Any],
    common: str | None = None,
    result: str | None = None,
    **params: Any,
) -> Computation:
    """The computation of ``reference`` at operands of several types; the result has the common type unless given."""
    names = [next(name for name, dtype in BY_NAME.items() if dtype.numpy == x.dtype) for x in given]
    inputs = tuple(widened(x, dtype_of(name)) for x, name in zip(given, names, strict=True))
    common = common or names[0]
    return Computation(inputs, tuple(names), params, result or common, reference, common)


def rounded(value: NDArray[Any], dtype: str) -> NDArray[Any]:
    """``value`` as a kernel that computes in float32 stores it."""
    with np.errstate(all="ignore"):
        return value.astype(np.float32).astype(dtype_of(dtype).numpy)


def judged(reference: ReferenceFunction, bound: Bound, got: NDArray[Any], x: NDArray[Any], dtype: str) -> Judgement:
    """The judgement on a result of an op without parameters."""
    return judge(computation(x, dtype, reference), got, bound)
