"""Launching unary ops: which kernel serves an aten overload.

From aten/src/ATen/native/UnaryOps.cpp, Pow.cpp and mps/operations/UnaryKernel.mm.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from conformance.devices.base import Unsupported
from conformance.dtypes import dtype
from metal_ops.launch._elementwise import ILP_THRESHOLD, dimensions, refuse_64bit
from metal_ops.launch._launcher import Launch, Launcher
from metal_ops.launch._promotion import real_of, result_type
from metal_ops.launch._scalars import Number
from metal_ops.launch._unary import unary, unary_with_number, unary_with_struct
from metal_ops.launch._views import View, empty
from metal_ops.launch._walk import output_strides, walk
from metal_ops.launch.copy import copy
from metal_ops.launch.fill import fill


def plain(functor: str, *, ilp_threshold: int | None = None) -> Launch:
    """A launch of a functor without parameters."""

    def launch(launcher: Launcher, source: View, *, out: View) -> None:
        unary(launcher, functor, out, source, ilp_threshold=ilp_threshold)

    return launch


def left_to_mpsgraph(launcher: Launcher, *arguments: Any, **keywords: Any) -> None:
    """An op for which PyTorch has no kernel: raises :class:`Unsupported`."""
    raise Unsupported("PyTorch leaves it to Apple's MPSGraph, so the build has no kernel for it")


def new_like(source: View) -> View:
    """A new tensor as PyTorch allocates it for an elementwise result of ``source``."""
    return empty(source.dtype, source.shape, output_strides([source], source.shape))


def converted_copy(launcher: Launcher, source: View, *numbers: Number) -> View:
    """``source`` in the type that it promotes to with ``numbers``; itself if that is its own."""
    common = result_type((source, *numbers))
    if common == source.dtype:
        return source
    result = replace(new_like(source), dtype=common, storage=empty(common, source.shape).storage)
    copy(launcher, source, result)
    return result


def _rounding(functor: str) -> Launch:
    """Integers are whole: they are copied."""

    def launch(launcher: Launcher, source: View, *, out: View) -> None:
        if source.dtype.kind == "int":
            copy(launcher, source, out)
        else:
            unary(launcher, functor, out, source)

    return launch


def _with_real_result(functor: str) -> Launch:
    """The kernel gives complex results for complex numbers, of which the host copies the real parts."""

    def launch(launcher: Launcher, source: View, *, out: View) -> None:
        if source.dtype.kind != "complex" or out.dtype.kind == "complex":
            unary(launcher, functor, out, source)
            return
        result = new_like(source)
        unary(launcher, functor, result, source)
        copy(launcher, _real(result), out)

    return launch


def _real(view: View) -> View:
    """The real parts of a complex tensor, on the same memory."""
    strides = tuple(2 * stride for stride in view.strides)
    return replace(view, dtype=real_of(view.dtype), strides=strides, offset=2 * view.offset)


_angle_out = _with_real_result("angle")


def _angle(launcher: Launcher, source: View) -> View:
    real = real_of(result_type((source,), floating=True))
    strides = None if source.dtype.kind == "complex" else output_strides([source], source.shape)
    out = empty(real, source.shape, strides)
    _angle_out(launcher, source, out=out)
    return out


def _round_decimals(launcher: Launcher, source: View, *, decimals: int, out: View) -> None:
    if decimals:
        unary_with_number(launcher, "round_decimals", out, source, decimals, dtype("int64"))
    else:
        unary(launcher, "round", out, source)


_POWERS = {-1.0: "reciprocal", -0.5: "rsqrt", 0.5: "sqrt"}
"""Exponents with a kernel of their own, beside the square, which integers have as well."""


def _power(launcher: Launcher, base: View, exponent: Number, *, out: View) -> None:
    """Exponents are compared after rounding to float, so that those close to 2 square."""
    if exponent == 0:
        fill(launcher, out, 1)
    elif exponent == 1:
        copy(launcher, base, out)
    else:
        _power_kernel(launcher, converted_copy(launcher, base, exponent), exponent, out)


def _power_kernel(launcher: Launcher, base: View, exponent: Number, out: View) -> None:
    rounded = None if isinstance(exponent, complex) else float(np.float32(exponent))
    if rounded == 2:
        unary(launcher, "sqr", out, base)
    elif base.dtype.kind in ("int", "bool"):
        unary_with_number(launcher, "pow_scalar", out, base, exponent, dtype("int32"))
    elif rounded in _POWERS:
        unary(launcher, _POWERS[rounded], out, base)
    else:
        number = dtype("float32" if rounded is not None else "complex64")
        unary_with_number(launcher, "pow_scalar", out, base, exponent, number)


def _nan_to_num(
    launcher: Launcher, source: View, nan: float | None, posinf: float | None, neginf: float | None, *, out: View
) -> None:
    """The defaults are the limits of the input's type; all ride at float precision. Integers are copied."""
    if source.dtype.kind in ("int", "bool"):
        copy(launcher, source, out)
        return
    given = {"nan": nan, "posinf": posinf, "neginf": neginf}
    limit = source.dtype.max
    default = {"nan": 0.0, "posinf": limit, "neginf": -limit}
    with np.errstate(over="ignore"):  # a double beyond float's range becomes infinity
        fields = {name: np.float32(default[name] if value is None else value) for name, value in given.items()}
    name = "NanToNumParams_float"
    unary_with_struct(launcher, "nan_to_num", out, source, name, fields, ilp_threshold=ILP_THRESHOLD)


_FREXP = ("mantissa", "exponent", "input")


def _frexp(launcher: Launcher, source: View, *, mantissa: View, exponent: View) -> None:
    steps = walk(mantissa, exponent, source)
    if not steps.numel:
        return
    refuse_64bit(steps)
    memory = dict(zip(_FREXP, (mantissa.memory, exponent.memory, source.memory), strict=True))
    if steps.contiguous:
        launcher.line(f"frexp_dense_{source.metal}", memory, steps.numel)
    else:
        arguments = {**memory, **dimensions(steps, _FREXP), "ndim": len(steps.shape)}
        launcher.line(f"frexp_strided_{source.metal}", arguments, steps.numel)


_SAME_NAME = (
    "acos asin atan bitwise_not cos cosh digamma erf erfc erfinv exp exp2 expm1 i0 lgamma log log10 log1p log2 neg "
    "reciprocal rsqrt sigmoid sin sinc sinh sqrt tan tanh"
).split()
_ROUNDING = ("ceil", "floor", "round", "trunc")
_TESTS = ("isneginf", "isposinf", "logical_not")
_MPSGRAPH = ("acosh", "asinh", "atanh", "frac", "logit", "sgn", "sign", "signbit")

LAUNCHES: dict[str, Launch] = {
    **{f"{name}.out": plain(name) for name in _SAME_NAME},
    **{f"{name}.out": _rounding(name) for name in _ROUNDING},
    **{f"{name}.out": plain(name, ilp_threshold=ILP_THRESHOLD) for name in _TESTS},
    **{f"{name}.out": left_to_mpsgraph for name in _MPSGRAPH},
    "logit": left_to_mpsgraph,
    "abs.out": _with_real_result("abs"),
    "angle": _angle,
    "angle.out": _angle_out,
    "conj_physical.out": plain("copy_conj"),
    "frexp.Tensor_out": _frexp,
    "nan_to_num.out": _nan_to_num,
    "pow.Tensor_Scalar_out": _power,
    "round.decimals_out": _round_decimals,
}
