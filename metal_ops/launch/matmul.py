"""Launching matrix products: which of them PyTorch gives to Metal kernels, and which to Apple's library.

The rules of aten/src/ATen/native/mps/operations/LinearAlgebra.mm. Integers always take PyTorch's kernels. Floats go to
Apple's library, whose code is not in the wheel, unless the user sets PYTORCH_MPS_PREFER_METAL, which is honoured here
as a Mac honours it; complex products with a long inner dimension take the kernels as well.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from conformance.devices.base import Unsupported
from conformance.dtypes import DType
from metal_ops.launch import copy, fill
from metal_ops.launch._launcher import Launch, Launcher
from metal_ops.launch._layouts import expanded
from metal_ops.launch._views import View

PREFERENCE = "PYTORCH_MPS_PREFER_METAL"
TILE = 16
MAX_COMPLEX_INNER = 2048
_GROUP = (TILE, TILE, 1)


def prefers_metal() -> bool:
    """Whether the user asks for PyTorch's own kernels for float products: the variable need only be there."""
    return PREFERENCE in os.environ


def _require_kernel(left: View, *, preferable: bool = True) -> None:
    """Refuse a product that PyTorch gives to Apple's library."""
    integral = left.dtype.kind in ("int", "bool")
    long_complex = left.dtype.kind == "complex" and left.shape[-1] > MAX_COMPLEX_INNER
    if integral or (preferable and (long_complex or prefers_metal())):
        return
    advice = f"; with {PREFERENCE} set it takes a Metal kernel" if preferable else ""
    raise Unsupported(f"PyTorch leaves this product to Apple's MPSGraph, which is not in the wheel{advice}")


def _resolved(launcher: Launcher, view: View) -> View:
    """The view without torch's lazy conjugation, which reaches matrix products unresolved."""
    return copy.clone(launcher, view) if view.conj or view.neg else view


def _tiles(out: View) -> tuple[int, int]:
    return -(-out.shape[-1] // TILE), -(-out.shape[-2] // TILE)


def _pairs(*views: View) -> Any:
    """Row and column strides of matrices."""
    return np.array([view.strides for view in views], np.int64)


def _triples(*views: View) -> Any:
    """Column, row and batch strides of batches of matrices."""
    return np.array([view.strides[::-1] for view in views], np.int64).reshape(-1)


def _scales(alpha: Any, beta: Any, dtype: DType) -> Any:
    """Both scalars in the type in which the kernel takes them."""
    if dtype.kind == "complex":
        return np.array([alpha, beta], np.complex64).view(np.float32)
    if dtype.kind == "float":
        return np.array([alpha, beta], np.float32)
    return np.array([alpha, beta], np.int64 if dtype.name == "int64" else np.int32)


def _mm(launcher: Launcher, left: View, right: View, *, out: View) -> None:
    if _nothing_to_multiply(launcher, left, right, out):
        return
    _require_kernel(left)
    left, right = _resolved(launcher, left), _resolved(launcher, right)
    arguments = {
        "mat1Data": left.memory,
        "mat2Data": right.memory,
        "outputData": out.memory,
        "strides": _pairs(left, right, out),
        "sizes": (left.shape[0], left.shape[1], out.shape[1]),
    }
    launcher.run(f"matmul_{out.metal}", arguments, groups=(*_tiles(out), 1), group=_GROUP)


def _nothing_to_multiply(launcher: Launcher, left: View, right: View, out: View) -> bool:
    """Whether there are no elements, or no products to sum; then the result is zero."""
    if out.numel and left.numel and right.numel:
        return False
    if out.numel:
        fill.fill(launcher, out, 0)
    return True


def _addmm(
    launcher: Launcher, bias: View, left: View, right: View, *, beta: Any = 1, alpha: Any = 1, out: View
) -> None:
    if not out.numel:
        return
    if not left.shape[1]:
        raise Unsupported("a product without inner dimension scales the bias, a composition that is not launched here")
    _require_kernel(left)
    if isinstance(alpha, float) and isinstance(beta, float) and (beta, alpha) == (0.0, 1.0):
        _mm(launcher, left, right, out=out)
        return
    bias, left, right = (_resolved(launcher, view) for view in (expanded(bias, out.shape), left, right))
    arguments = {
        "mat1Data": left.memory,
        "mat2Data": right.memory,
        "outputData": out.memory,
        "biasData": bias.memory,
        "alpha_beta": _scales(alpha, beta, out.dtype),
        "strides": _pairs(left, right, out, bias),
        "sizes": (left.shape[0], left.shape[1], out.shape[1]),
    }
    launcher.run(f"addmm_{out.metal}", arguments, groups=(*_tiles(out), 1), group=_GROUP)


def _bmm(launcher: Launcher, left: View, right: View, *, out: View) -> None:
    if _nothing_to_multiply(launcher, left, right, out):
        return
    _require_kernel(left, preferable=False)
    arguments = {
        "mat1Data": left.memory,
        "mat2Data": right.memory,
        "outputData": out.memory,
        "strides": _triples(left, right, out),
        "sizes": (left.shape[1], left.shape[2], out.shape[2], out.shape[0]),
    }
    launcher.run(f"naive_bmm_{out.metal}", arguments, groups=(*_tiles(out), out.shape[0]), group=_GROUP)


LAUNCHES: dict[str, Launch] = {"mm.out": _mm, "addmm.out": _addmm, "bmm.out": _bmm}
"""By aten overload."""
