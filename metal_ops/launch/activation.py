"""Launching activations and clamps, and how the host rounds their parameters.

From aten/src/ATen/native/Activation.cpp, TensorCompare.cpp and mps/operations/ActivationKernel.mm, TensorCompare.mm.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from conformance.dtypes import DType, dtype
from metal_ops.launch._binary import binary
from metal_ops.launch._launcher import Launch, Launcher
from metal_ops.launch._layouts import empty_like, narrowed, wrapped
from metal_ops.launch._scalars import Number, packed
from metal_ops.launch._unary import unary, unary_with_number, unary_with_struct
from metal_ops.launch._views import View, empty
from metal_ops.launch.copy import copy
from metal_ops.launch.fill import fill
from metal_ops.launch.unary import converted_copy, left_to_mpsgraph, new_like, plain


def field(value: Number, type_: DType) -> Any:
    """A number as the field of a parameter struct: rounded to its type as the host does, by way of float."""
    element = packed(value, type_).view(type_.numpy)[0]
    return float(element) if type_.kind == "float" else element


def softplus_fields(beta: Number, threshold: Number) -> dict[str, Any]:
    """Both ride at float precision, whatever the tensor's type."""
    return {"beta": field(beta, dtype("float32")), "threshold": field(threshold, dtype("float32"))}


def _with_number(functor: str) -> Launch:
    """One number, in the tensor's own type."""

    def launch(launcher: Launcher, source: View, number: Number, *, out: View) -> None:
        unary_with_number(launcher, functor, out, source, number)

    return launch


def _is_nan(value: Number | None) -> bool:
    return value is not None and math.isnan(value.real)


def _within(bound: Number | None, type_: DType, *, lower: bool) -> Number | None:
    """The bound, or None if no integer of the type lies beyond it; RuntimeError if all of them do."""
    if bound is None or type_.kind != "int":
        return bound
    limits, value = np.iinfo(type_.numpy), int(bound.real)
    if limits.min <= value <= limits.max:
        return value
    if (value < limits.min) != lower:
        side = "min" if lower else "max"
        raise RuntimeError(f"Clamp {side} value {value} is outside the representable range of {type_.name}")
    return None


def clamp(launcher: Launcher, source: View, low: Number | None, high: Number | None, *, out: View) -> None:
    """``clamp.out``: integers with a bound that is a float are converted first; a bound that is NaN gives NaN."""
    if _is_nan(low) or _is_nan(high):
        fill(launcher, out, math.nan)
        return
    source = converted_copy(launcher, source, *(bound for bound in (low, high) if bound is not None))
    low, high = _within(low, source.dtype, lower=True), _within(high, source.dtype, lower=False)
    if low is not None and high is not None:
        fields = {"min": field(low, source.dtype), "max": field(high, source.dtype)}
        name = f"ClampScalarParams_{source.metal}"
        unary_with_struct(launcher, "clamp_scalar", out, source, name, fields)
    elif low is not None:
        unary_with_number(launcher, "clamp_min_scalar", out, source, low)
    elif high is not None:
        unary_with_number(launcher, "clamp_max_scalar", out, source, high)
    else:
        copy(launcher, source, out)


def _clamp_min(launcher: Launcher, source: View, low: Number, *, out: View) -> None:
    clamp(launcher, source, low, None, out=out)


def _clamp_max(launcher: Launcher, source: View, high: Number, *, out: View) -> None:
    clamp(launcher, source, None, high, out=out)


def _relu(launcher: Launcher, source: View) -> View:
    out = new_like(source)
    clamp(launcher, source, 0, None, out=out)
    return out


def _relu_in_place(launcher: Launcher, source: View) -> None:
    clamp(launcher, source, 0, None, out=source)


def _hardtanh_out(launcher: Launcher, source: View, low: Number, high: Number, *, out: View) -> None:
    """Bounds of integers are cut to integers, not promoted to floats."""
    if source.dtype.kind == "bool":
        raise RuntimeError("Bool inputs not supported for hardtanh")
    if source.dtype.kind == "int":
        low, high = int(low.real), int(high.real)
    clamp(launcher, source, low, high, out=out)


def _hardtanh(launcher: Launcher, source: View, low: Number, high: Number) -> View:
    out = new_like(source)
    _hardtanh_out(launcher, source, low, high, out=out)
    return out


def _hardtanh_in_place(launcher: Launcher, source: View, low: Number, high: Number) -> None:
    _hardtanh_out(launcher, source, low, high, out=source)


def _hardswish(launcher: Launcher, source: View) -> View:
    out = new_like(source)
    unary(launcher, "hardswish", out, source)
    return out


def _hardswish_in_place(launcher: Launcher, source: View) -> None:
    unary(launcher, "hardswish", source, source)


def _elu(launcher: Launcher, source: View, alpha: Number, scale: Number, input_scale: Number, *, out: View) -> None:
    given = {"alpha": alpha, "scale": scale, "input_scale": input_scale}
    fields = {name: field(value, source.dtype) for name, value in given.items()}
    unary_with_struct(launcher, "elu", out, source, f"ELUParams_{source.metal}", fields)


def _softplus(launcher: Launcher, source: View, beta: Number, threshold: Number, *, out: View) -> None:
    unary_with_struct(launcher, "softplus", out, source, "SoftplusParams", softplus_fields(beta, threshold))


def _gelu(launcher: Launcher, source: View, approximate: str = "none", *, out: View) -> None:
    unary(launcher, "gelu_tanh" if approximate == "tanh" else "gelu", out, source)


def _silu(launcher: Launcher, source: View, *, out: View) -> None:
    """Complex numbers have no kernel: they are multiplied by their sigmoid."""
    if source.dtype.kind == "complex":
        sigmoid = new_like(source)
        unary(launcher, "sigmoid", sigmoid, source)
        binary(launcher, "mul", out, source, sigmoid)
    else:
        unary(launcher, "silu", out, source)


def _log_sigmoid_out(launcher: Launcher, source: View, *, output: View, buffer: View) -> None:
    """The buffer serves the CPU's implementation only."""
    unary(launcher, "log_sigmoid_forward", output, source)


def _log_sigmoid(launcher: Launcher, source: View) -> tuple[View, View]:
    output, buffer = empty_like(source), empty(source.dtype, (0,))
    _log_sigmoid_out(launcher, source, output=output, buffer=buffer)
    return output, buffer


def _glu(launcher: Launcher, source: View, dim: int, *, out: View) -> None:
    """Contiguous tensors have a kernel of their own; others are cut into halves, which a binary kernel takes."""
    if not out.numel:
        return
    axis = wrapped(dim, len(source.shape))
    if source.contiguous and out.contiguous:
        inner_half = math.prod(out.shape[axis:])
        arguments = {"out": out.memory, "input": source.memory, "inner_half": inner_half}
        launcher.plane(f"glu_dense_{source.metal}", arguments, inner_half, out.numel // inner_half)
        return
    half = out.shape[axis]
    binary(launcher, "glu", out, narrowed(source, axis, 0, half), narrowed(source, axis, half, half))


LAUNCHES: dict[str, Launch] = {
    **{f"{name}.out": plain(name) for name in ("hardsigmoid", "hardswish", "mish")},
    **{f"{name}.out": _with_number(name) for name in ("hardshrink", "leaky_relu", "softshrink")},
    "clamp.out": clamp,
    "clamp_max.out": _clamp_max,
    "clamp_min.out": _clamp_min,
    "elu.out": _elu,
    "gelu.out": _gelu,
    "glu.out": _glu,
    "hardswish": _hardswish,
    "hardswish_": _hardswish_in_place,
    "hardtanh": _hardtanh,
    "hardtanh.out": _hardtanh_out,
    "hardtanh_": _hardtanh_in_place,
    "log_sigmoid_forward": _log_sigmoid,
    "log_sigmoid_forward.output": _log_sigmoid_out,
    "relu": _relu,
    "relu_": _relu_in_place,
    "silu.out": _silu,
    "softplus.out": _softplus,
    "threshold.out": left_to_mpsgraph,
}
