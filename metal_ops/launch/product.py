"""Launching matrix products: which of them PyTorch gives to Metal kernels, and which to Apple's library.

The rules of 2.15.0 (aten/src/ATen/native/mps/operations/LinearAlgebra.mm and Linear.mm). Integers always take PyTorch's
kernels, and so do floats with one row or one column. Other floats go to Apple's library, whose code is not in the
wheel, unless the user sets PYTORCH_MPS_PREFER_METAL, which is honoured here as a Mac honours it. Complex products with
a long inner dimension, or with an addend, take the kernels as well. The files were read in versions shortly before the
release. It is inferred that the user's wish comes before the kernels for one row, and that a sum of a vector and a
product is still finished by MPSGraph.
"""

from __future__ import annotations

import os
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from conformance.devices.base import Unsupported
from conformance.dtypes import DType
from metal_ops.launch import binary, copy, fill, reduction
from metal_ops.launch._gemv import gemv
from metal_ops.launch._grouped import grouped_mm
from metal_ops.launch._launcher import Launch, Launcher
from metal_ops.launch._layouts import expanded, permuted
from metal_ops.launch._scaled import scaled_mm
from metal_ops.launch._views import View, empty, row_major

PREFERENCE = "PYTORCH_MPS_PREFER_METAL"
TILE = 16
MAX_COMPLEX_INNER = 2048
_GROUP = (TILE, TILE, 1)


def prefers_metal() -> bool:
    """Whether the user asks for PyTorch's own kernels for float products: the variable need only be there."""
    return PREFERENCE in os.environ


def _takes_kernel(left: View, *, long: int = MAX_COMPLEX_INNER) -> bool:
    """Whether the kernels for all types serve a product: of complex ones those that sum more than ``long`` terms."""
    long_complex = left.dtype.kind == "complex" and left.shape[-1] > long
    return left.dtype.kind in ("int", "bool") or long_complex or prefers_metal()


def _refuse(*, advise: bool = True) -> None:
    advice = f"; with {PREFERENCE} set it takes a Metal kernel" if advise else ""
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
    if not _takes_kernel(left):
        if not gemv(launcher, left, right, out):
            _refuse()
        return
    _matmul(launcher, left, right, out)


def _matmul(launcher: Launcher, left: View, right: View, out: View) -> None:
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
    bias = expanded(bias, out.shape)
    if not left.shape[1]:
        _scaled(launcher, bias, beta, out)
        return
    if not _takes_kernel(left, long=0):
        if not gemv(launcher, left, right, out, addend=bias, alpha=alpha, beta=beta):
            _refuse()
        return
    if isinstance(alpha, float) and isinstance(beta, float) and (beta, alpha) == (0.0, 1.0):
        _matmul(launcher, left, right, out)
        return
    bias, left, right = (_resolved(launcher, view) for view in (bias, left, right))
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


def _scaled(launcher: Launcher, bias: View, beta: Any, out: View) -> None:
    """What is left of a sum without products: the addend, copied and multiplied."""
    if beta == 0:
        fill.fill(launcher, out, 0)
        return
    copy.copy(launcher, bias, out)
    binary.LAUNCHES["mul.out"](launcher, out, beta, out=out)


def _bmm(launcher: Launcher, left: View, right: View, *, out: View) -> None:
    if _nothing_to_multiply(launcher, left, right, out):
        return
    if left.dtype.kind not in ("int", "bool"):
        _refuse(advise=False)
    arguments = {
        "mat1Data": left.memory,
        "mat2Data": right.memory,
        "outputData": out.memory,
        "strides": _triples(left, right, out),
        "sizes": (left.shape[1], left.shape[2], out.shape[2], out.shape[0]),
    }
    launcher.run(f"naive_bmm_{out.metal}", arguments, groups=(*_tiles(out), out.shape[0]), group=_GROUP)


def _baddbmm(
    launcher: Launcher, bias: View, left: View, right: View, *, beta: Any = 1, alpha: Any = 1, out: View
) -> None:
    if not out.numel:
        return
    bias = expanded(bias, out.shape)
    if not left.shape[2]:
        binary.LAUNCHES["mul.out"](launcher, bias, beta, out=out)
        return
    if left.dtype.kind == "float":
        _refuse(advise=False)
    bias, left, right = (_resolved(launcher, view) for view in (bias, left, right))
    arguments = {
        "mat1Data": left.memory,
        "mat2Data": right.memory,
        "outputData": out.memory,
        "biasData": bias.memory,
        "alpha_beta": _scales(alpha, beta, out.dtype),
        "strides": _triples(left, right, out, bias),
        "sizes": (left.shape[1], left.shape[2], out.shape[2], out.shape[0]),
    }
    launcher.run(f"naive_baddbmm_{out.metal}", arguments, groups=(*_tiles(out), out.shape[0]), group=_GROUP)


def _linear(launcher: Launcher, x: View, weight: View, bias: View | None) -> View:
    if x.dtype.kind not in ("float", "complex"):
        raise Unsupported("PyTorch's Metal backend has no linear for integers")
    matrix = (
        replace(weight, shape=(1, *weight.shape), strides=(0, *weight.strides)) if len(weight.shape) == 1 else weight
    )
    if x.shape[-1] != matrix.shape[1]:
        raise RuntimeError(f"linear: input {x.shape} and weight {weight.shape} cannot be multiplied")
    shape = (*x.shape[:-1], matrix.shape[0])
    out = empty(x.dtype, shape)
    if out.numel:
        _fill_linear(launcher, x, matrix, bias, out)
    return replace(out, shape=shape[:-1], strides=row_major(shape[:-1])) if len(weight.shape) == 1 else out


def _as_matrix(weight: View) -> View:
    """A weight of one dimension as a matrix of one row."""
    if len(weight.shape) != 1:
        return weight
    (size,), (step,) = weight.shape, weight.strides
    return replace(weight, shape=(1, size), strides=(size * step, step))


def _fill_linear(launcher: Launcher, x: View, matrix: View, bias: View | None, out: View) -> None:
    """Only one row of floats takes kernels of PyTorch's: as ``addmm``, or with a bias of several rows as ``mm``."""
    if not x.shape[-1]:
        if bias is None:
            fill.fill(launcher, out, 0)
        else:
            copy.copy(launcher, expanded(bias, out.shape), out)
        return
    if x.dtype.kind == "complex" or prod(x.shape[:-1]) != 1:
        _refuse(advise=False)
    line, result = _rows(launcher, x), _rows(launcher, out)
    transposed = permuted(matrix, (1, 0))
    if bias is not None and len(bias.shape) <= 1:
        _addmm(launcher, bias, line, transposed, out=result)
        return
    _mm(launcher, line, transposed, out=result)
    if bias is not None:
        binary.LAUNCHES["add.out"](launcher, out, bias, alpha=1, out=out)


def _rows(launcher: Launcher, view: View) -> View:
    """The tensor with all its leading dimensions as one of rows: a view if it can be."""
    if len(view.shape) == 2:
        return view
    count = prod(view.shape[:-1])
    if count == 1:
        return replace(view, shape=(1, view.shape[-1]), strides=(view.shape[-1], view.strides[-1] if view.shape else 1))
    view = copy.contiguous(launcher, view)
    return replace(view, shape=(count, view.shape[-1]), strides=(view.shape[-1], 1))


def _linear_backward(
    launcher: Launcher, x: View, gradient: View, weight: View, mask: tuple[bool, ...]
) -> tuple[View | None, ...]:
    """Products of their own, and a sum for the bias."""
    nothing = not x.numel or not gradient.numel
    of_x = of_weight = of_bias = None
    if mask[0]:
        of_x = empty(gradient.dtype, x.shape)
        if not gradient.numel or not of_x.numel:
            _zero(launcher, of_x)
        else:
            _mm(launcher, _rows(launcher, gradient), copy.contiguous(launcher, weight), out=_rows(launcher, of_x))
    if mask[1] or mask[2]:
        of_weight = empty(gradient.dtype, (gradient.shape[-1], x.shape[-1]))
        if nothing:
            _zero(launcher, of_weight)
        else:
            lines = permuted(_rows(launcher, gradient), (1, 0))
            _mm(launcher, lines, copy.contiguous(launcher, _rows(launcher, x)), out=of_weight)
    if mask[2]:
        of_bias = empty(gradient.dtype, gradient.shape[-1:])
        if not gradient.numel:
            _zero(launcher, of_bias)
        else:
            reduction.LAUNCHES["sum.IntList_out"](
                launcher, _rows(launcher, gradient), (0,), False, dtype=None, out=of_bias
            )
    return of_x, of_weight, of_bias


def _zero(launcher: Launcher, out: View) -> None:
    if out.numel:
        fill.fill(launcher, out, 0)


def _by_graph(what: str) -> Launch:
    def launch(launcher: Launcher, *arguments: Any, **keywords: Any) -> None:
        raise Unsupported(f"PyTorch 2.15.0 computes {what} by MPSGraph: its library has no kernel for it")

    return launch


LAUNCHES: dict[str, Launch] = {
    "mm.out": _mm,
    "addmm.out": _addmm,
    "bmm.out": _bmm,
    "baddbmm.out": _baddbmm,
    "addmv.out": _by_graph("the sum of a vector and a product with one"),
    "dot": _by_graph("the product of two vectors"),
    "linear": _linear,
    "linear_backward": _linear_backward,
    "_grouped_mm": grouped_mm(_bmm),
    "_scaled_mm_v2.out": scaled_mm,
}
"""By aten overload."""
