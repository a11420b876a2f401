"""Launching unary elementwise kernels: the choice among their variants, as PyTorch's host makes it.

Variants of a function ``f`` on input type I with result type O, from aten/src/ATen/native/mps/OperationUtils.mm:
``f_dense_scalar_O_I`` (one element a thread), ``f_dense_O_I`` (four a thread, float results from 2**18 elements on),
``f_inner_contiguous_O_I`` (contiguous runs of at least 16), ``f_strided_O_I`` (the rest), and ``..._castout_I`` where
the library has no kernel for (O, I). Functions with a scalar parameter have ``f_dense_O_I_P`` and ``f_strided_O_I_P``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from conformance.devices.base import Unsupported
from conformance.dtypes import DType, dtype
from metal_ops.launch import _iterator
from metal_ops.launch._iterator import UnaryIterator
from metal_ops.launch._launcher import Launcher
from metal_ops.launch._views import METAL_NAMES, View, empty

Launch = Callable[[Launcher, View, Mapping[str, Any]], View]

ELEMENTS_PER_THREAD = 4
DENSE_THRESHOLD = 1 << 18
INNER_CONTIGUOUS_MIN = 16
# c10::ScalarType numbers, which the castout kernels switch on.
_SCALAR_TYPES = {"uint8": 0, "int8": 1, "int16": 2, "int32": 3, "int64": 4, "float16": 5, "float32": 6}
_SCALAR_TYPES |= {"complex64": 9, "bool": 11, "bfloat16": 15, "uint16": 27, "uint32": 28, "uint64": 29}


def _int64(values: tuple[int, ...]) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.array(values or (0,), np.int64)


def _outer(iterator: UnaryIterator) -> dict[str, Any]:
    return {
        "outer_sizes": _int64(iterator.shape[1:]),
        "input_outer_strides": _int64(iterator.input_strides[1:]),
        "output_outer_strides": _int64(iterator.output_strides[1:]),
    }


def _all_dims(iterator: UnaryIterator) -> dict[str, Any]:
    return {
        "sizes": _int64(iterator.shape),
        "input_strides": _int64(iterator.input_strides),
        "output_strides": _int64(iterator.output_strides),
    }


def _memory(iterator: UnaryIterator) -> dict[str, Any]:
    return {"output": iterator.output.memory, "input": iterator.input.memory}


def _prepare(source: View, result: DType) -> UnaryIterator:
    iterator = _iterator.unary(source, result)
    if not iterator.indexes_32bit:
        raise Unsupported(f"{iterator.numel} elements need more than 32-bit indexing, which is not implemented")
    return iterator


def _tiles(count: int) -> int:
    return -(-count // ELEMENTS_PER_THREAD)


def execute(launcher: Launcher, functor: str, source: View, result: DType) -> View:
    """Apply ``functor`` to every element of ``source``; the output has PyTorch's layout for it."""
    iterator = _prepare(source, result)
    count = iterator.numel
    if count == 0:
        return iterator.output
    types = f"{METAL_NAMES[result.name]}_{source.metal}"
    inner, outer = iterator.shape[0], count // iterator.shape[0]
    runs = len(iterator.shape) > 1 and iterator.contiguous_inner and inner >= INNER_CONTIGUOUS_MIN
    if iterator.contiguous:
        wide = result.kind == "float" and count >= DENSE_THRESHOLD
        variant = "dense" if wide else "dense_scalar"
    else:
        variant = "inner_contiguous" if runs else "strided"
    arguments = _memory(iterator)
    name = f"{functor}_{variant}_{types}"
    if not launcher.has(name):
        _execute_castout(launcher, functor, iterator, runs=runs)
    elif variant == "dense":
        launcher.line(name, {**arguments, "numel": count}, _tiles(count))
    elif variant == "dense_scalar":
        launcher.line(name, arguments, count)
    elif variant == "inner_contiguous":
        packed = {"ndim_outer_inner": (len(iterator.shape) - 1, inner)}
        launcher.plane(name, {**arguments, **_outer(iterator), **packed}, _tiles(inner), outer)
    else:
        launcher.plane(name, {**arguments, **_all_dims(iterator), "ndim": len(iterator.shape)}, inner, outer)
    return iterator.output


def _execute_castout(launcher: Launcher, functor: str, iterator: UnaryIterator, *, runs: bool) -> None:
    """The fallback: computes in the input's type and casts to the result's when storing."""
    result, count = iterator.output.dtype, iterator.numel
    code, inner = _SCALAR_TYPES[result.name], iterator.shape[0]
    arguments, ndim = _memory(iterator), len(iterator.shape)
    if iterator.contiguous:
        name = f"{functor}_dense_castout_{iterator.input.metal}"
        launcher.line(name, {**arguments, "size_outtype": (result.itemsize, code)}, count)
    elif runs:
        name = f"{functor}_inner_contiguous_castout_{iterator.input.metal}"
        arguments |= _outer(iterator)
        arguments["ndimO_inner_elem_outtype"] = (ndim - 1, inner, result.itemsize, code)
        launcher.plane(name, arguments, _tiles(inner), count // inner)
    else:
        name = f"{functor}_strided_castout_{iterator.input.metal}"
        arguments |= _all_dims(iterator)
        arguments["ndim_outtype"] = (ndim, code)
        launcher.plane(name, arguments, inner, count // inner)


def execute_with_parameter(launcher: Launcher, functor: str, source: View, parameter_type: str, parameter: Any) -> View:
    """Apply a functor with a parameter (a scalar, or a struct as a mapping); the kernel's name ends in its type."""
    iterator = _prepare(source, source.dtype)
    count = iterator.numel
    if count == 0:
        return iterator.output
    variant = "dense" if iterator.contiguous else "strided"
    name = f"{functor}_{variant}_{source.metal}_{source.metal}_{parameter_type}"
    arguments = {**_memory(iterator), "alpha": parameter}
    if iterator.contiguous:
        launcher.line(name, arguments, count)
    else:
        inner = iterator.shape[0]
        arguments |= {**_all_dims(iterator), "ndim": len(iterator.shape)}
        launcher.plane(name, arguments, inner, count // inner)
    return iterator.output


def _result(source: View, rule: str) -> DType:
    if rule == "bool":
        return dtype("bool")
    if "float" in rule and source.dtype.kind in ("int", "bool"):
        return dtype("float32")
    return source.dtype


def plain(functor: str, rule: str) -> Launch:
    """A launch without parameters.

    ``rule`` says the result's type: ``float`` (for integers; else the input's), ``same``, ``bool``; with ``real`` a
    complex input gives the real part of what the kernel computes.
    """

    def launch(launcher: Launcher, source: View, params: Mapping[str, Any]) -> View:
        result = _result(source, rule)
        if "real" in rule and source.dtype.kind == "complex":
            return _real_part(execute(launcher, functor, source, source.dtype))
        return execute(launcher, functor, source, result)

    return launch


def _real_part(view: View) -> View:
    """The host copies the real part out of the complex result (a move), to a tensor that is empty_like the operand."""
    out = empty(dtype("float32"), view.shape, view.strides)
    out.array()[...] = view.array().real
    return out


_FLOAT = (
    "acos asin atan cos cosh exp exp2 expm1 log log10 log1p log2 reciprocal rsqrt sigmoid sin sinh sqrt tan tanh"
).split()
_SAME = ("bitwise_not", "ceil", "floor", "neg", "round", "trunc")
_BOOL = ("isneginf", "isposinf", "logical_not")

LAUNCHES: dict[str, Launch] = {
    **{name: plain(name, "float") for name in _FLOAT},
    **{name: plain(name, "same") for name in _SAME},
    **{name: plain(name, "bool") for name in _BOOL},
    "abs": plain("abs", "real"),
    "angle": plain("angle", "real float"),
    "square": plain("sqr", "same"),
}
