"""Python numbers on their way to a kernel, and elements on their way back, by the rules of c10/core/Scalar.h."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from conformance.dtypes import DType, dtype
from metal_ops.launch._views import View

Number = bool | int | float | complex

SCALAR_TYPES = {"uint8": 0, "int8": 1, "int16": 2, "int32": 3, "int64": 4, "float16": 5, "float32": 6, "complex32": 8}
SCALAR_TYPES |= {"complex64": 9, "bool": 11, "bfloat16": 15, "float8_e4m3fn": 24, "uint16": 27, "uint32": 28}
SCALAR_TYPES |= {"uint64": 29}
"""Numbers of c10::ScalarType, which kernels that cast switch on."""

_WIDE = {"float16": dtype("float32"), "bfloat16": dtype("float32"), "complex32": dtype("complex64")}
_SMALL_FLOATS = {"float16", "bfloat16", "float8_e4m3fn"}
"""Made from double by way of float, with two roundings (c10/util/Half.h and its likes)."""
_INTEGER_BITS = 64


def wide(type_: DType) -> DType:
    """The type that PyTorch computes in for ``type_`` (at::toOpMathType)."""
    return _WIDE.get(type_.name, type_)


def packed(value: Number, type_: DType) -> NDArray[np.uint8]:
    """The bytes of ``value`` as an element of ``type_``.

    Raises
    ------
    RuntimeError
        If the number lies outside the type's range, as PyTorch's checked conversion says. Infinity and NaN fit every
        floating type that has them; a negative integer fits an unsigned type, where it wraps.
    """
    if type_.kind == "bool":
        return np.array([bool(value)], np.uint8)
    if type_.kind == "complex":
        return _packed_complex(complex(value), type_)
    if isinstance(value, complex):
        if value.imag != 0:
            raise _overflow(value, type_)
        value = value.real
    if type_.kind == "int":
        return _packed_integer(value, type_)
    return _packed_float(float(value), type_)


def _packed_integer(value: bool | int | float, type_: DType) -> NDArray[np.uint8]:
    bounds = np.iinfo(type_.numpy)
    if value != value or value in (float("inf"), float("-inf")):
        raise _overflow(value, type_)
    wraps = bounds.min == 0 and isinstance(value, int)
    if not (-bounds.max if wraps else bounds.min) <= value <= bounds.max:
        raise _overflow(value, type_)
    whole = int(value) % (1 << (8 * type_.itemsize))
    return np.frombuffer(whole.to_bytes(type_.itemsize, "little"), np.uint8)


def _packed_float(value: float, type_: DType) -> NDArray[np.uint8]:
    infinite = value in (float("inf"), float("-inf"))
    if abs(value) > type_.max and not (infinite and type_.has_infinity):
        raise _overflow(value, type_)
    source = np.array([value], np.float64)
    if type_.name in _SMALL_FLOATS:
        source = source.astype(np.float32)
    return source.astype(type_.numpy).view(np.uint8)


def _packed_complex(value: complex, type_: DType) -> NDArray[np.uint8]:
    for part in (value.real, value.imag):
        if abs(part) > type_.max and part not in (float("inf"), float("-inf")):
            raise _overflow(value, type_)
    narrow = np.float16 if type_.name == "complex32" else np.float32
    return np.array([value.real, value.imag], np.float32).astype(narrow).view(np.uint8)


def _overflow(value: Number, type_: DType) -> RuntimeError:
    return RuntimeError(f"value {value!r} cannot be converted to type {type_.name} without overflow")


def item(view: View) -> Number:
    """The one element of a tensor as a Python number, with its lazy bits resolved."""
    element: Any = view.array().reshape(())[()]
    if view.dtype.numpy.names is not None:
        element = complex(element["real"], element["imag"])
    number: Number = element.item() if isinstance(element, np.generic) else element
    if view.dtype.name in _SMALL_FLOATS:
        number = float(element)
    if view.conj and isinstance(number, complex):
        number = number.conjugate()
    return -number if view.neg else number
