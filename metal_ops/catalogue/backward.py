"""Gradients that are kernels of two operands, called by themselves: what comes in, and what the forward kept.

Differentiation calls them with two tensors of one shape and type only; a caller may broadcast and mix. To add an op,
add one block.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conformance.op import Op, Reference, VectorJacobianProduct
from conformance.oracle import Rules
from metal_ops.catalogue._blocks import FLOATS, binary
from metal_ops.catalogue._gradients import one_kernel
from references.gradients import activation, special, unary
from references.gradients._common import Array


def _backward(
    name: str,
    vjp: VectorJacobianProduct,
    *,
    variant: str = "",
    functor: str | None = None,
    dtypes: tuple[str, ...] = FLOATS,
    kept: tuple[float, float] | None = None,
    range: tuple[float, float] | None = None,
    mixed: bool = True,
    params: Mapping[str, Any] | None = None,
    passed: Mapping[str, Any] | None = None,
) -> Op:
    """The aten overload ``<name>_backward``: ``params`` are the formula's, ``passed`` the overload's.

    A ``variant`` is an op of its own with other parameters. ``kept`` is the interval of what the forward kept,
    ``range`` the forward's own if that is its result. Where types may not be ``mixed`` its result's type has no rule.
    """

    def reference(gradient: Array, saved: Array, **given: Any) -> Array:
        own = {key: value for key, value in given.items() if key not in (passed or {})}
        (true,) = vjp(gradient, saved, saved, **own)
        assert true is not None
        return true

    op = binary(
        f"{name}_backward{variant and '.'}{variant}",
        family="backward",
        function=f"ops.aten.{name}_backward",
        functor=functor or f"{name}_backward",
        reference=Reference(reference, "scipy"),
        bound=one_kernel(vjp, None if range is None else Rules(undefined=partial(_outside, range))).bound,
        dtypes=dtypes,
        others=None if mixed else (),
        number=None,
        domains=(None, kept or range),
        fixed={**(params or {}), **(passed or {})},
    )
    return replace(op, properties=("forward", "variants"))


def _outside(range: tuple[float, float], dtype: str, gradient: Array, saved: Array) -> NDArray[np.bool_]:
    """What is no result of the forward has no gradient."""
    return np.asarray((saved < range[0]) | (saved > range[1]))


OPS: tuple[Op, ...] = (
    _backward("sigmoid", unary.sigmoid, dtypes=(*FLOATS, "complex64"), range=(0, 1)),
    _backward("tanh", unary.tanh, dtypes=(*FLOATS, "complex64"), range=(-1, 1)),
    _backward("gelu", activation.gelu, params={"approximate": "none"}),
    _backward("gelu", activation.gelu, variant="tanh", functor="gelu_tanh_backward", params={"approximate": "tanh"}),
    _backward("silu", activation.silu),
    _backward("mish", activation.mish, mixed=False),
    _backward("hardsigmoid", activation.hardsigmoid),
    _backward("hardswish", activation.hardswish),
    _backward("hardshrink", activation.hardshrink, functor="shrink_backward", params={"lambd": 0.5}),
    _backward("leaky_relu", activation.leaky_relu, params={"negative_slope": 0.25}, passed={"self_is_result": False}),
    _backward("logit", special.logit, kept=(0, 1), params={"eps": 0.125}),
)
