"""Launching reductions to values: sums, products, extremes, truth and counts.

The rules of aten/src/ATen/native/ReduceOps.cpp (element types, empty inputs) and of
aten/src/ATen/native/mps/operations/ReduceOps.mm (kernels). A long reduction takes two passes, with partial results in
the type that PyTorch computes the output's type in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import nan
from typing import Any

import numpy as np

from conformance.devices.base import Unsupported
from conformance.dtypes import DType, dtype
from metal_ops.launch import _reduction_plan as planning
from metal_ops.launch import copy, fill
from metal_ops.launch._launcher import Launch, Launcher
from metal_ops.launch._layouts import fits, permuted
from metal_ops.launch._reduction_plan import Plan
from metal_ops.launch._scalars import wide
from metal_ops.launch._views import METAL_NAMES, View, empty

FLAT_GROUP = 256
MAX_NUMEL = 1 << 32
MAX_DIMS = 16

_HALF_FLOATS = ("float16", "bfloat16")


@dataclass(frozen=True)
class Reduction:
    """What is reduced: ``first`` and ``second`` name the kernels of the passes, ``partial`` the type between them.

    ``param`` divides a sum (0: not). Kernels may know the types of input and output by others of the same size.
    """

    first: str
    second: str
    partial: DType
    param: float = 0.0
    input_type: DType | None = None
    output_type: DType | None = None


def reduce(launcher: Launcher, what: Reduction, source: View, target: View) -> None:
    """Reduce to ``target``, which has as many dimensions as ``source``, with size 1 where it is reduced."""
    if not fits(source, MAX_NUMEL):
        raise Unsupported(f"a {what.first} reduction of {source.numel} elements needs 64-bit indices; there are none")
    if len(source.shape) > MAX_DIMS:
        raise Unsupported(f"a {what.first} reduction in {len(source.shape)} dimensions; the kernels take {MAX_DIMS}")
    source, target = _in_memory_order(source, target)
    input_type, output_type = what.input_type or source.dtype, what.output_type or target.dtype
    first = planning.plan(source, target)
    if first.segments == 1:
        _run(launcher, what.first, first, source, target, (input_type, output_type), what.param)
        return
    if first.kernel == "_flat":
        source = copy.contiguous(launcher, source)
    partials = empty(what.partial, (target.numel * first.segments,))
    _run(launcher, what.first, first, source, partials, (input_type, what.partial), 0.0)
    # The host describes the partial results to the generic kernel as bytes: it counts too many, and needs none.
    second = planning.second_pass(first)
    as_bytes = replace(partials, shape=(partials.storage.size,))
    types = (what.partial, output_type)
    _run(launcher, what.second, second, as_bytes, target, types, what.param, memory=partials.memory)


def _in_memory_order(source: View, target: View) -> tuple[View, View]:
    """Permute both so that the source is contiguous, if an order of its dimensions makes it so."""
    if source.contiguous:
        return source, target
    order = sorted(range(len(source.shape)), key=lambda dim: -source.strides[dim])
    ordered = permuted(source, order)
    return (ordered, permuted(target, order)) if ordered.contiguous else (source, target)


def _run(
    launcher: Launcher,
    op: str,
    plan: Plan,
    source: View,
    target: View,
    types: tuple[DType, DType],
    param: float,
    memory: Any = None,
) -> None:
    """Launch one pass."""
    name = f"{op}_reduction{plan.kernel}_{METAL_NAMES[types[0].name]}_{METAL_NAMES[types[1].name]}"
    arguments = {"input": source.memory if memory is None else memory, "output": target.memory}
    simdgroups = planning.INNERMOST_GROUP // planning.SIMDGROUP
    if plan.kernel == "":
        _run_generic(launcher, name, plan, source, target, arguments, param)
    elif plan.kernel == "_flat":
        arguments["params"] = (plan.segments, plan.dim // plan.segments)
        launcher.run(name, arguments, groups=(plan.segments, 1, 1), group=(FLAT_GROUP, 1, 1))
    elif plan.kernel == "_flat_strided" and plan.runs is not None:
        arguments |= {"sizes": (*plan.runs[:3], 0), "strides": (*plan.runs[3:], 0, 0)}
        launcher.run(name, arguments, groups=(plan.segments, 1, 1), group=(FLAT_GROUP, 1, 1))
    elif plan.kernel == "_innermost":
        arguments |= {"sizes": (plan.outer, plan.dim), "param": param}
        groups = -(-plan.outer // simdgroups)
        launcher.run(name, arguments, groups=(groups, 1, 1), group=(planning.INNERMOST_GROUP, 1, 1))
    elif plan.kernel == "_innermost_chunk":
        arguments |= {"sizes": (plan.outer, plan.dim, plan.lanes, plan.segments), "param": param}
        used = -(-plan.outer * plan.segments // (planning.SIMDGROUP // plan.lanes))
        launcher.run(name, arguments, groups=(-(-used // simdgroups), 1, 1), group=(planning.INNERMOST_GROUP, 1, 1))
    else:
        _run_columns(launcher, name, plan, arguments, param)


def _run_columns(launcher: Launcher, name: str, plan: Plan, arguments: dict[str, Any], param: float) -> None:
    """Columns of the inner dimension: a threadgroup for 32 of them, or for all if they are fewer (narrow)."""
    arguments |= {"sizes": (plan.dim, plan.inner, plan.segments, 0), "param": param}
    if plan.kernel == "_narrow":
        active = planning.NARROW_GROUP // plan.inner * plan.inner
        launcher.run(name, arguments, groups=(1, plan.segments, plan.outer), group=(active, 1, 1))
        return
    arguments["strides"] = (*plan.strides, 0)
    height = 1 if plan.kernel == "_outer_small_dim" else planning.OUTER_HEIGHT
    groups = (-(-plan.inner // planning.OUTER_WIDTH), plan.segments, plan.outer)
    launcher.run(name, arguments, groups=groups, group=(planning.OUTER_WIDTH, height, 1))


def _run_generic(
    launcher: Launcher,
    name: str,
    plan: Plan,
    source: View,
    target: View,
    arguments: dict[str, Any],
    param: float,
) -> None:
    """Any layout: a threadgroup an output."""
    dims = len(source.shape)
    arguments["params"] = {
        "p": param,
        "reduction_size": plan.dim,
        "ndim": dims,
        "input_sizes": list(source.shape),
        "input_strides": list(source.strides),
        "output_sizes": list(target.shape[:dims]),
        "output_strides": list(target.strides[:dims]),
    }
    threads = min(planning.MAX_GROUP, -(-plan.dim // planning.SIMDGROUP) * planning.SIMDGROUP)
    launcher.run(name, arguments, groups=(target.numel, 1, 1), group=(threads, 1, 1))


def _dims(dim: int | Sequence[int] | None, count: int) -> list[int]:
    """The reduced dimensions; all of them if none is named."""
    given = [dim] if isinstance(dim, int) else list(dim or range(count))
    return sorted({d % max(count, 1) for d in given} if count else set())


def _viewed(out: View, dims: Sequence[int], count: int) -> View:
    """The result with the reduced dimensions put back."""
    if len(out.shape) == count:
        return out
    shape, strides = list(out.shape), list(out.strides)
    for dim in dims:
        shape.insert(dim, 1)
        strides.insert(dim, 0)
    return replace(out, shape=tuple(shape), strides=tuple(strides))


def _result(source: View, dims: Sequence[int], keepdim: bool, type_: DType) -> View:
    """A new contiguous result."""
    shape = [1 if dim in dims else size for dim, size in enumerate(source.shape) if keepdim or dim not in dims]
    return empty(type_, shape)


def _read_as(source: DType, output: DType, *, widening: bool) -> DType:
    """The type in which the input is read: its own where kernels widen while reading, else the output's."""
    integers = source.kind in ("int", "bool") and output.name == "int64"
    halves = source.name in _HALF_FLOATS and output.name == "float32"
    return source if widening and (integers or halves) else output


def _accumulate(launcher: Launcher, op: str, source: View, out: View, dims: Sequence[int], empty_value: float) -> None:
    """A sum or product; ``empty_value`` is what one of nothing gives."""
    if source.numel == 0:
        fill.fill(launcher, out, empty_value)
        return
    source = copy.cast(launcher, source, _read_as(source.dtype, out.dtype, widening=op != "nansum"))
    target = _viewed(out, dims, len(source.shape))
    divisor = float(np.float32(source.numel // target.numel)) if op == "mean" else 0.0
    kernel = "sum" if op == "mean" or (op == "nansum" and source.dtype.kind in ("int", "bool")) else op
    second = "prod" if op == "prod" else "sum"
    uchar = dtype("uint8") if op == "prod" else None  # products have no kernels for bool: its bytes serve
    types = [uchar if view.dtype.kind == "bool" else None for view in (source, out)]
    reduce(launcher, Reduction(kernel, second, wide(out.dtype), divisor, *types), source, target)


def _sum(
    launcher: Launcher, source: View, dim: Any, keepdim: bool = False, *, dtype: DType | None = None, out: View
) -> None:
    _accumulate(launcher, "sum", source, out, _dims(dim, len(source.shape)), 0)


def _mean(
    launcher: Launcher, source: View, dim: Any, keepdim: bool = False, *, dtype: DType | None = None, out: View
) -> None:
    _accumulate(launcher, "mean", source, out, _dims(dim, len(source.shape)), nan)


def _nansum(
    launcher: Launcher,
    source: View,
    dim: Any = None,
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
    out: View | None = None,
) -> View | None:
    if source.dtype.kind == "complex":
        raise RuntimeError("nansum does not support complex inputs")
    dims = _dims(dim, len(source.shape))
    result = out or _result(source, dims, keepdim, dtype or _promoted(source.dtype))
    _accumulate(launcher, "nansum" if source.dtype.kind == "float" else "sum", source, result, dims, 0)
    return result if out is None else None


def _promoted(type_: DType) -> DType:
    """The type of a sum without a given one: 64-bit integers for integers and bool."""
    return dtype("int64") if type_.kind in ("int", "bool") else type_


def _prod(launcher: Launcher, source: View, *, dtype: DType | None = None) -> View:
    result = empty(dtype or _promoted(source.dtype), ())
    _accumulate(launcher, "prod", source, result, _dims(None, len(source.shape)), 1)
    return result


def _prod_dim(
    launcher: Launcher, source: View, dim: int, keepdim: bool = False, *, dtype: DType | None = None, out: View
) -> None:
    _accumulate(launcher, "prod", source, out, _dims(dim, len(source.shape)), 1)


def _count_nonzero(launcher: Launcher, source: View, dim: Any) -> View:
    dims = _dims(dim, len(source.shape))
    result = _result(source, dims, False, dtype("int64"))
    if source.numel == 0:
        fill.fill(launcher, result, 0)
        return result
    what = Reduction("count_nonzero", "sum", dtype("int64"))
    reduce(launcher, what, source, _viewed(result, dims, len(source.shape)))
    return result


def _extreme(op: str) -> Launch:
    """The largest or smallest element; bool is compared as the bytes it is."""

    def launch(launcher: Launcher, source: View, dim: Any = (), keepdim: bool = False, *, out: View) -> None:
        if source.numel == 0 or out.numel == 0:
            return
        char = dtype("int8") if source.dtype.kind == "bool" else None
        what = Reduction(op, op, char or out.dtype, input_type=char, output_type=char)
        reduce(launcher, what, source, _viewed(out, _dims(dim, len(source.shape)), len(source.shape)))

    return launch


def _truth(op: str, second: str, empty_value: bool) -> Launch:
    """Whether all or any elements differ from zero; the results are bytes, folded as numbers."""

    def launch(launcher: Launcher, source: View, dim: Any = None, keepdim: bool = False, *, out: View) -> None:
        if source.numel == 0:
            fill.fill(launcher, out, empty_value)
            return
        if source.numel == 1:
            flag = copy.cast(launcher, replace(source, shape=out.shape, strides=(1,) * len(out.shape)), dtype("bool"))
            copy.copy(launcher, flag, out)
            return
        byte = dtype("uint8")
        what = Reduction(op, second, byte, output_type=byte)
        reduce(launcher, what, source, _viewed(out, _dims(dim, len(source.shape)), len(source.shape)))

    return launch


_ALL, _ANY = _truth("all", "min", empty_value=True), _truth("any", "max", empty_value=False)

LAUNCHES: dict[str, Launch] = {
    "sum.IntList_out": _sum,
    "mean.out": _mean,
    "nansum": _nansum,
    "nansum.out": _nansum,
    "prod": _prod,
    "prod.int_out": _prod_dim,
    "count_nonzero.dim_IntList": _count_nonzero,
    "amax.out": _extreme("max"),
    "amin.out": _extreme("min"),
    "all.out": _ALL,
    "all.all_out": _ALL,
    "any.out": _ANY,
    "any.all_out": _ANY,
}
