"""Launching activations and ops with scalar parameters: which kernel, and how the host rounds the parameters.

From aten/src/ATen/native/mps/operations/ActivationKernel.mm, TensorCompare.mm and UnaryKernel.mm.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from conformance.devices.base import Unsupported
from metal_ops.launch._launcher import Launcher
from metal_ops.launch._views import View
from metal_ops.launch.unary import Launch, execute_with_parameter, plain


def _scalar(functor: str, parameter: str, default: float | None = None) -> Launch:
    """One scalar, passed in the tensor's own type."""

    def launch(launcher: Launcher, source: View, params: Mapping[str, Any]) -> View:
        value = params.get(parameter, default)
        return execute_with_parameter(launcher, functor, source, source.metal, value)

    return launch


def _clamp(launcher: Launcher, source: View, params: Mapping[str, Any]) -> View:
    low, high = params.get("min"), params.get("max")
    if source.dtype.kind == "int" and any(isinstance(limit, float) for limit in (low, high)):
        raise Unsupported("integers clamped to a float, which give floats: their launch is not implemented")
    if low is None or high is None:
        functor, value = ("clamp_max_scalar", high) if low is None else ("clamp_min_scalar", low)
        return execute_with_parameter(launcher, functor, source, source.metal, value)
    bounds = {"min": low, "max": high}
    return execute_with_parameter(launcher, "clamp_scalar", source, f"ClampScalarParams_{source.metal}", bounds)


def _elu(launcher: Launcher, source: View, params: Mapping[str, Any]) -> View:
    fields = {"alpha": params.get("alpha", 1.0), "scale": 1.0, "input_scale": 1.0}
    return execute_with_parameter(launcher, "elu", source, f"ELUParams_{source.metal}", fields)


def _softplus(launcher: Launcher, source: View, params: Mapping[str, Any]) -> View:
    fields = {"beta": params.get("beta", 1.0), "threshold": params.get("threshold", 20.0)}
    return execute_with_parameter(launcher, "softplus", source, "SoftplusParams", fields)


def _nan_to_num(launcher: Launcher, source: View, params: Mapping[str, Any]) -> View:
    """The defaults are the largest numbers of the input's type; they ride at float precision."""
    if source.dtype.kind != "float":
        raise Unsupported(f"nan_to_num on {source.dtype.name}: its launch is not implemented")
    given = {"nan": params.get("nan"), "posinf": params.get("posinf"), "neginf": params.get("neginf")}
    default = {"nan": 0.0, "posinf": source.dtype.max, "neginf": -source.dtype.max}
    fields = {name: default[name] if value is None else value for name, value in given.items()}
    return execute_with_parameter(launcher, "nan_to_num", source, "NanToNumParams_float", fields)


# Exponents with a kernel of their own; the square also for integers.
_POWERS = {2.0: ("sqr", "same"), -1.0: ("reciprocal", "same"), -0.5: ("rsqrt", "same"), 0.5: ("sqrt", "same")}


def _pow(launcher: Launcher, source: View, params: Mapping[str, Any]) -> View:
    exponent = params["exponent"]
    integer = source.dtype.kind == "int"
    if exponent in (0, 1):
        raise Unsupported(f"pow with exponent {exponent} is a fill or a copy; their launches are not implemented")
    if exponent in _POWERS and (not integer or exponent == 2):
        return plain(*_POWERS[exponent])(launcher, source, params)
    return execute_with_parameter(launcher, "pow_scalar", source, "int" if integer else "float", exponent)


def _round_decimals(launcher: Launcher, source: View, params: Mapping[str, Any]) -> View:
    return execute_with_parameter(launcher, "round_decimals", source, "long", params["decimals"])


_PLAIN = ("gelu", "silu", "mish", "hardsigmoid", "hardswish")

LAUNCHES: dict[str, Launch] = {
    **{name: plain(name, "same") for name in _PLAIN},
    "gelu.tanh": plain("gelu_tanh", "same"),
    "logsigmoid": plain("log_sigmoid_forward", "same"),
    "elu": _elu,
    "leaky_relu": _scalar("leaky_relu", "negative_slope", 0.01),
    "hardshrink": _scalar("hardshrink", "lambd", 0.5),
    "softshrink": _scalar("softshrink", "lambd", 0.5),
    "softplus": _softplus,
    "clamp": _clamp,
    "clamp.min": _clamp,
    "clamp.max": _clamp,
    "nan_to_num": _nan_to_num,
    "pow.scalar": _pow,
    "round.decimals": _round_decimals,
}
