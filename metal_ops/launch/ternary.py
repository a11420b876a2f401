"""Launching pointwise kernels of three operands: clamp between tensors, addcmul, addcdiv and lerp.

Variants of a function ``f`` with result type O on a first operand of type I, from ``exec_ternary_kernel`` of
aten/src/ATen/native/mps/OperationUtils.mm: ``f_dense_O_I`` and ``f_strided_O_I``, and ``f_dense_cast_T`` and
``f_strided_cast_T``, which convert every operand to T while reading and the result while storing. Functions with a
number of type P end in ``_P``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from conformance.dtypes import DType
from metal_ops.launch._binary import binary
from metal_ops.launch._elementwise import Layout, bare, dimensions, layout, on_device, refuse_64bit
from metal_ops.launch._launcher import Launch, Launcher
from metal_ops.launch._layouts import expanded
from metal_ops.launch._promotion import result_type
from metal_ops.launch._scalars import SCALAR_TYPES, Number, packed, wide
from metal_ops.launch._views import METAL_NAMES, View
from metal_ops.launch._walk import walk

_DENSE = ("out", "input", "other1", "other2")
_STRIDED = ("output", "input", "other1", "other2")


@dataclass(frozen=True, slots=True)
class _Plan:
    """A launch but for its memory: the kernel for the operands' types, the one that casts, and what both take."""

    kernel: str
    cast: str
    alike: bool
    grid: tuple[int, int, int]
    buffers: tuple[str, ...]
    arguments: dict[str, Any]
    cast_arguments: dict[str, Any]


def ternary(
    launcher: Launcher,
    functor: str,
    out: View,
    inputs: Sequence[View],
    common: DType,
    alpha: tuple[Number, DType] | None = None,
) -> None:
    """Apply ``functor`` to every element of the three ``inputs``, broadcast to the shape of ``out``.

    ``common`` is the type that PyTorch promotes the operands to; ``alpha`` is a number with the type it is passed in.
    """
    if out.numel == 0:
        return
    operands = (out, *(expanded(on_device(operand), out.shape) for operand in inputs))
    suffix = "" if alpha is None else f"_{METAL_NAMES[alpha[1].name]}"
    plan = _plan(functor, tuple(map(layout, operands)), common, suffix)
    direct = plan.alike or (out.dtype == operands[2].dtype == operands[3].dtype and launcher.has(plan.kernel))
    arguments = dict(plan.arguments if direct else plan.cast_arguments)
    for name, operand in zip(plan.buffers, operands, strict=True):
        arguments[name] = operand.memory
    if alpha is not None:
        arguments["alpha"] = packed(*alpha)
    launcher.volume(plan.kernel if direct else plan.cast, arguments, plan.grid)


@lru_cache(maxsize=1024)
def _plan(functor: str, layouts: tuple[Layout, ...], common: DType, suffix: str) -> _Plan:
    operands = tuple(map(bare, layouts))
    out, *inputs = operands
    steps = walk(*operands)
    refuse_64bit(steps)
    types = tuple(SCALAR_TYPES[operand.dtype.name] for operand in (*inputs, out))
    arguments: dict[str, Any] = {}
    cast_arguments: dict[str, Any] = {"types": types}
    if steps.contiguous:
        variant, grid, buffers = "dense", (steps.numel, 1, 1), _DENSE
        cast_arguments["sizes"] = tuple(operand.dtype.itemsize for operand in (*inputs, out))
    else:
        height = steps.shape[1] if len(steps.shape) > 1 else 1
        variant, buffers = "strided", _STRIDED
        grid = (steps.shape[0], height, steps.numel // (steps.shape[0] * height))
        arguments = {**dimensions(steps, _STRIDED), "ndim": len(steps.shape)}
        cast_arguments |= arguments
    kernel = f"{functor}_{variant}_{out.metal}_{inputs[0].metal}{suffix}"
    cast = f"{functor}_{variant}_cast_{METAL_NAMES[common.name]}{suffix}"
    alike = all(operand.dtype == out.dtype for operand in inputs)
    return _Plan(kernel, cast, alike, grid, buffers, arguments, cast_arguments)


def _clamp(
    launcher: Launcher, source: View, minimum: View | None = None, maximum: View | None = None, *, out: View
) -> None:
    """Between two tensors; with one bound missing it is a binary op."""
    if minimum is None or maximum is None:
        functor, bound = ("minimum", maximum) if minimum is None else ("maximum", minimum)
        if bound is None:
            raise RuntimeError("clamp: min or max must be given, both are None")
        binary(launcher, functor, out, source, bound)
        return
    ternary(launcher, "clamp", out, (source, minimum, maximum), result_type((source, minimum, maximum)))


def _multiplied(functor: str) -> Launch:
    """``value`` is passed in the type that PyTorch computes in."""

    def launch(launcher: Launcher, source: View, first: View, second: View, *, value: Number = 1, out: View) -> None:
        common = result_type((source, first, second))
        if common.kind == "bool":
            raise NotImplementedError(f"{functor} is not implemented for bool")
        alpha = value, wide(common)
        ternary(launcher, functor, out, (source, first, second), common, alpha)

    return launch


def _lerp(launcher: Launcher, source: View, end: View, weight: View, *, out: View) -> None:
    ternary(launcher, "lerp", out, (source, end, weight), result_type((source, end, weight)))


LAUNCHES: dict[str, Launch] = {
    "clamp.Tensor_out": _clamp,
    "addcmul.out": _multiplied("addcmul"),
    "addcdiv.out": _multiplied("addcdiv"),
    "lerp.Tensor_out": _lerp,
}
