"""Ops that PyTorch's Metal backend takes over although torch could compose them of others.

Composed silently they would give numbers by a path that no Mac takes. Each of them either has a launch, which replaces
its entry here, or says that it has none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from metal_ops.backend.kernels import missing
from metal_ops.backend.views import through_cpu

_TAKEN_OVER = (
    "_fused_rms_norm",
    "addr",
    "addr.out",
    "constant_pad_nd",
    "max_pool2d",
    "mish_backward",
    "native_group_norm",
    "native_layer_norm",
    "pixel_shuffle",
    "pixel_unshuffle",
    "repeat",
)
"""With an MPS kernel and a composition in native_functions.yaml of PyTorch 2.15.0."""


def _without_launch(name: str) -> Callable[..., Any]:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        reason = "PyTorch's Metal backend has an implementation of its own, for which there is no launch yet"
        raise NotImplementedError(missing(name, (*args, *kwargs.values()), reason))

    return refuse


def scaled_dot_product_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: torch.Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> torch.Tensor:
    """Attention chooses its path above the dispatcher, by the name of the device: here as for ``mps``.

    Without dropout, and if no gradient is asked for, it is an op of the Metal backend; else it is composed of others
    (aten/src/ATen/native/transformers/attention.cpp).
    """
    wants_grad = torch.is_grad_enabled() and any(t.requires_grad for t in (query, key, value))
    aten = torch.ops.aten
    own = dropout_p == 0.0 and not wants_grad
    compute = aten._scaled_dot_product_attention_math_for_mps if own else aten._scaled_dot_product_attention_math
    result: torch.Tensor = compute(
        query, key, value, attn_mask, dropout_p, is_causal, None, scale=scale, enable_gqa=enable_gqa
    )[0]
    return result


def equal(tensor: torch.Tensor, other: torch.Tensor) -> bool:
    """As ``mps_equal``: a comparison of every element, and whether all hold."""
    return tensor.shape == other.shape and bool(tensor.eq(other).all())


_COMPOSED = ("isnan", "roll")
"""Registered for MPS too with the function that the CPU has: it only calls other ops, on whatever device."""

MIRRORED: dict[str, Callable[..., Any]] = {
    **{name: _without_launch(name) for name in _TAKEN_OVER},
    **{name: through_cpu(name) for name in _COMPOSED},
    "equal": equal,
}
"""By aten overload, for the device's dispatch key."""

ABOVE_AUTOGRAD: dict[str, Callable[..., Any]] = {"scaled_dot_product_attention": scaled_dot_product_attention}
"""By aten overload, for the device's autograd key as well: they have no derivative, for what they call has."""
