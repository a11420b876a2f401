"""How PyTorch's host code launches its Metal kernels, a file an op family: the way from an aten overload to kernels."""

from __future__ import annotations

from metal_ops.launch import (
    activation,
    activation_backward,
    binary,
    fill,
    pad,
    product,
    reduction,
    select,
    softmax,
    special,
    ternary,
    unary,
)
from metal_ops.launch._launcher import Launch, Launcher

__all__ = ["LAUNCHES", "Launch", "Launcher"]

LAUNCHES: dict[str, Launch] = {
    **activation.LAUNCHES,
    **activation_backward.LAUNCHES,
    **binary.LAUNCHES,
    **fill.LAUNCHES,
    **product.LAUNCHES,
    **pad.LAUNCHES,
    **reduction.LAUNCHES,
    **select.LAUNCHES,
    **softmax.LAUNCHES,
    **special.LAUNCHES,
    **ternary.LAUNCHES,
    **unary.LAUNCHES,
}
"""Every launch, by aten overload."""
