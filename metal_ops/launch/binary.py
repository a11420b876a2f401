"""Launching binary ops: which kernel serves an aten overload.

From aten/src/ATen/native/BinaryOps.cpp, Pow.cpp, Lerp.cpp and mps/operations/BinaryKernel.mm.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from conformance.devices.base import Unsupported
from conformance.dtypes import dtype
from metal_ops.launch._binary import Operand, binary, binary_with_number
from metal_ops.launch._elementwise import ILP_THRESHOLD
from metal_ops.launch._launcher import Launch, Launcher
from metal_ops.launch._promotion import result_type
from metal_ops.launch._scalars import Number
from metal_ops.launch._views import View, empty
from metal_ops.launch._walk import output_strides
from metal_ops.launch.fill import fill

_BOOL = dtype("bool")


def new_result(first: Operand, second: Operand) -> View:
    """A new tensor as PyTorch allocates it for the result of an op on two operands."""
    views = [operand for operand in (first, second) if isinstance(operand, View)]
    shape = np.broadcast_shapes(*(view.shape for view in views))
    strides = output_strides(views, shape)
    return empty(result_type((first, second)), shape, strides)


def _plain(functor: str, **options: Any) -> Launch:
    def launch(launcher: Launcher, first: Operand, second: Operand, *, out: View) -> None:
        binary(launcher, functor, out, first, second, **options)

    return launch


def _functional(functor: str) -> Launch:
    def launch(launcher: Launcher, first: Operand, second: Operand) -> View:
        out = new_result(first, second)
        binary(launcher, functor, out, first, second)
        return out

    return launch


def _in_place(functor: str) -> Launch:
    def launch(launcher: Launcher, target: View, other: Operand) -> None:
        binary(launcher, functor, target, target, other)

    return launch


def _add(launcher: Launcher, first: Operand, second: Operand, *, alpha: Number = 1, out: View) -> None:
    """A factor of 1 or -1 has a kernel without one; but bools are not subtracted."""
    if alpha == 1:
        binary(launcher, "add", out, first, second)
    elif alpha == -1 and result_type((first, second)) != _BOOL:
        binary(launcher, "sub", out, first, second)
    else:
        binary_with_number(launcher, "add_alpha", out, first, second, alpha)


def _subtract(launcher: Launcher, first: Operand, second: Operand, *, alpha: Number = 1, out: View) -> None:
    """As torch's own check of the operands, which rules for ``meta`` lack: none of them is bool."""
    if any(
        operand.dtype == _BOOL if isinstance(operand, View) else isinstance(operand, bool)
        for operand in (first, second)
    ):
        raise RuntimeError("sub: bool tensors are not subtracted; allowed: logical_not, logical_xor")
    _add(launcher, first, second, alpha=-alpha, out=out)


def _reverse_subtract(launcher: Launcher, first: Operand, second: Operand, *, alpha: Number = 1) -> View:
    out = new_result(second, first)  # a subtraction with its operands exchanged, which decides on the strides
    _subtract(launcher, second, first, alpha=alpha, out=out)
    return out


def _divide(launcher: Launcher, first: Operand, second: Operand, *, rounding_mode: str | None, out: View) -> None:
    if rounding_mode is None:
        binary(launcher, "div_true", out, first, second, floating=True)
    else:
        binary(launcher, f"div_{rounding_mode}", out, first, second)


def _extremum_of_numbers(functor: str, of_others: str) -> Launch:
    """``fmax`` and ``fmin`` have kernels for floats, where alone NaN can be passed over."""

    def launch(launcher: Launcher, first: Operand, second: Operand, *, out: View) -> None:
        floats = result_type((first, second)).kind == "float"
        binary(launcher, functor if floats else of_others, out, first, second)

    return launch


def _log_add_exp2(launcher: Launcher, first: Operand, second: Operand, *, out: View) -> None:
    common = result_type((first, second))
    if common.kind != "float":
        raise Unsupported(f"PyTorch has kernels for operands that compute in floats only, not in {common.name}")
    binary(launcher, "logaddexp2", out, first, second)


def _power_of_number(launcher: Launcher, base: Number, exponent: View, *, out: View) -> None:
    if base == 1:
        fill(launcher, out, 1)
    else:
        binary(launcher, "pow", out, base, exponent)


def _lerp(launcher: Launcher, first: Operand, end: Operand, weight: Number, *, out: View) -> None:
    """The weight rides in the type in which sums are taken."""
    binary_with_number(launcher, "lerp_alpha", out, first, end, weight, accumulated=True)


_SAME_NAME = "gcd heaviside hypot igamma igammac lcm logaddexp maximum minimum mul nextafter polar".split()
_FLOATING = ("atan2", "copysign")
_COMPARISONS = ("eq", "ge", "gt", "le", "lt", "ne")
_LOGICAL = ("logical_and", "logical_or", "logical_xor")
_BITWISE = ("and", "left_shift", "or", "right_shift", "xor")
_SHIFTS = {"lshift": "bitwise_left_shift", "rshift": "bitwise_right_shift"}
_POLYNOMIALS = (
    *(f"{shifted}chebyshev_polynomial_{kind}" for shifted in ("", "shifted_") for kind in "tuvw"),
    "hermite_polynomial_h",
    "hermite_polynomial_he",
    "laguerre_polynomial_l",
)
_TRUTH: dict[str, Any] = {"natural": _BOOL, "ilp_threshold": ILP_THRESHOLD}

LAUNCHES: dict[str, Launch] = {
    **{f"{name}.out": _plain(name) for name in _SAME_NAME},
    **{f"{name}.out": _plain(name, floating=True) for name in _FLOATING},
    **{f"{name}.{kind}_out": _plain(name, **_TRUTH) for name in _COMPARISONS for kind in ("Tensor", "Scalar")},
    **{f"{name}.out": _plain(name, **_TRUTH) for name in _LOGICAL},
    **{f"bitwise_{name}.Tensor_out": _plain(f"bitwise_{name}") for name in _BITWISE},
    **{f"__{op}__.{kind}": _functional(name) for op, name in _SHIFTS.items() for kind in ("Tensor", "Scalar")},
    **{f"__i{op}__.{kind}": _in_place(name) for op, name in _SHIFTS.items() for kind in ("Tensor", "Scalar")},
    **{f"special_{name}.out": _plain(name, floating=True) for name in (*_POLYNOMIALS, "xlog1py", "zeta")},
    "add.out": _add,
    "complex.out": _plain("make_complex"),
    "div.out": _plain("div_true", floating=True),
    "div.out_mode": _divide,
    "floor_divide": _functional("div_floor"),
    "floor_divide.out": _plain("div_floor"),
    "floor_divide_.Tensor": _in_place("div_floor"),
    "fmax.out": _extremum_of_numbers("fmax", "maximum"),
    "fmin.out": _extremum_of_numbers("fmin", "minimum"),
    "fmod.Tensor_out": _plain("fmod"),
    "lerp.Scalar_out": _lerp,
    "logaddexp2.out": _log_add_exp2,
    "pow.Scalar_out": _power_of_number,
    "pow.Tensor_Tensor_out": _plain("pow"),
    "remainder.Scalar_Tensor": _functional("remainder"),
    "remainder.Tensor_out": _plain("remainder"),
    "rsub.Tensor": _reverse_subtract,
    "sub.out": _subtract,
    "xlogy.OutTensor": _plain("xlogy", floating=True),
}
