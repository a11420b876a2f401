"""Launching the gradients of activations: binary kernels on the incoming gradient and what the forward op kept.

The order of the operands is that of aten/src/ATen/native/Activation.cpp and BinaryOps.cpp.
"""

from __future__ import annotations

import math
from typing import Any

from conformance.devices.base import Unsupported
from metal_ops.launch._binary import binary, binary_with_number, binary_with_struct
from metal_ops.launch._elementwise import dimensions, refuse_64bit
from metal_ops.launch._launcher import Launch, Launcher
from metal_ops.launch._layouts import empty_like, narrowed, wrapped
from metal_ops.launch._promotion import result_type
from metal_ops.launch._scalars import Number
from metal_ops.launch._views import METAL_NAMES, View
from metal_ops.launch._walk import walk
from metal_ops.launch.activation import field, softplus_fields
from metal_ops.launch.binary import new_result
from metal_ops.launch.unary import left_to_mpsgraph


def _plain(functor: str) -> Launch:
    def launch(launcher: Launcher, grad: View, kept: View, *, grad_input: View) -> None:
        binary(launcher, functor, grad_input, grad, kept)

    return launch


def _functional(functor: str) -> Launch:
    def launch(launcher: Launcher, grad: View, kept: View) -> View:
        grad_input = new_result(grad, kept)
        binary(launcher, functor, grad_input, grad, kept)
        return grad_input

    return launch


def _shrink(launcher: Launcher, grad: View, source: View, threshold: Number, *, grad_input: View) -> None:
    binary_with_number(launcher, "shrink_backward", grad_input, grad, source, threshold)


def _leaky_relu(
    launcher: Launcher, grad: View, kept: View, slope: Number, is_result: bool, *, grad_input: View
) -> None:
    """A result has the sign of its operand, so the kernel takes either."""
    binary_with_number(launcher, "leaky_relu_backward", grad_input, kept, grad, slope)


def _logit(launcher: Launcher, grad: View, source: View, eps: float | None, *, grad_input: View) -> None:
    """No bound rides as -1."""
    binary_with_number(launcher, "logit_backward", grad_input, grad, source, -1.0 if eps is None else eps)


def _elu(
    launcher: Launcher,
    grad: View,
    alpha: Number,
    scale: Number,
    input_scale: Number,
    is_result: bool,
    kept: View,
    *,
    grad_input: View,
) -> None:
    common = result_type((grad, kept))
    given = {"alpha": alpha, "scale": scale, "input_scale": input_scale}
    fields = {**{name: field(value, common) for name, value in given.items()}, "is_result": bool(is_result)}
    name = f"ELUBackwardParams_{METAL_NAMES[common.name]}"
    binary_with_struct(launcher, "elu_backward", grad_input, grad, kept, name, fields)


def _softplus(
    launcher: Launcher, grad: View, source: View, beta: Number, threshold: Number, *, grad_input: View
) -> None:
    fields = softplus_fields(beta, threshold)
    binary_with_struct(launcher, "softplus_backward", grad_input, grad, source, "SoftplusParams", fields)


def _gelu(launcher: Launcher, grad: View, source: View, *, approximate: str = "none", grad_input: View) -> None:
    functor = "gelu_tanh_backward" if approximate == "tanh" else "gelu_backward"
    binary(launcher, functor, grad_input, grad, source)


def _silu(launcher: Launcher, grad: View, source: View, *, grad_input: View) -> None:
    if result_type((grad, source)).kind == "complex":
        raise Unsupported("PyTorch composes the gradient of complex numbers of other ops, which is not implemented")
    binary(launcher, "silu_backward", grad_input, grad, source)


def _log_sigmoid_out(launcher: Launcher, grad: View, source: View, buffer: View, *, grad_input: View) -> None:
    binary(launcher, "log_sigmoid_backward", grad_input, source, grad)


def _log_sigmoid(launcher: Launcher, grad: View, source: View, buffer: View) -> View:
    grad_input = empty_like(grad)
    _log_sigmoid_out(launcher, grad, source, buffer, grad_input=grad_input)
    return grad_input


_GLU = ("grad_input", "input", "grad_output")


def _glu_out(launcher: Launcher, grad: View, source: View, dim: int, *, grad_input: View) -> None:
    """A thread computes an element of either half; contiguous tensors have a kernel of their own."""
    if not grad.numel:
        return
    axis = wrapped(dim, len(source.shape))
    views = (grad_input, source, grad)
    arguments: dict[str, Any] = {name: view.memory for name, view in zip(_GLU, views, strict=True)}
    half = grad.shape[axis]
    if all(view.contiguous for view in views):
        inner_half = math.prod(grad.shape[axis:])
        arguments["inner_half"] = inner_half
        launcher.plane(f"glu_backward_dense_{source.metal}", arguments, inner_half, grad.numel // inner_half)
        return
    steps = walk(*(narrowed(view, axis, 0, half) for view in views[:2]), grad)
    refuse_64bit(steps)
    arguments |= {**dimensions(steps, _GLU), "ndim": len(steps.shape)}
    for name, view in zip(_GLU[:2], views, strict=False):
        arguments[f"{name}_byte_offset"] = half * view.strides[axis] * view.dtype.itemsize
    launcher.line(f"glu_backward_{source.metal}", arguments, grad.numel)


def _glu(launcher: Launcher, grad: View, source: View, dim: int) -> View:
    grad_input = empty_like(source)
    _glu_out(launcher, grad, source, dim, grad_input=grad_input)
    return grad_input


LAUNCHES: dict[str, Launch] = {
    **{f"{name}_backward.grad_input": _plain(f"{name}_backward") for name in ("hardsigmoid", "sigmoid", "tanh")},
    **{name: _functional(name) for name in ("hardswish_backward", "mish_backward")},
    **{f"{name}_backward.grad_input": _shrink for name in ("hardshrink", "softshrink")},
    "elu_backward.grad_input": _elu,
    "gelu_backward.grad_input": _gelu,
    "glu_backward": _glu,
    "glu_backward.grad_input": _glu_out,
    "hardtanh_backward": left_to_mpsgraph,
    "hardtanh_backward.grad_input": left_to_mpsgraph,
    "leaky_relu_backward.grad_input": _leaky_relu,
    "log_sigmoid_backward": _log_sigmoid,
    "log_sigmoid_backward.grad_input": _log_sigmoid_out,
    "logit_backward.grad_input": _logit,
    "silu_backward.grad_input": _silu,
    "softplus_backward.grad_input": _softplus,
    "threshold_backward.grad_input": left_to_mpsgraph,
}
