"""Launching unary elementwise kernels: the choice among their variants, as PyTorch's host makes it.

Variants of a function ``f`` on input type I with result type O, from aten/src/ATen/native/mps/OperationUtils.mm:
``f_dense_scalar_O_I`` (one element a thread), ``f_dense_O_I`` (four a thread), ``f_inner_contiguous_O_I`` (contiguous
runs of at least 16), ``f_strided_O_I`` (the rest), and ``..._castout_I`` where the library has no kernel for (O, I).
Functions with a parameter of type P have ``f_dense_O_I_P``, ``f_dense_ilp_O_I_P`` (four a thread),
``f_inner_contiguous_O_I_P`` and ``f_strided_O_I_P``.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from conformance.dtypes import DType
from metal_ops.launch._elementwise import (
    ILP_THRESHOLD,
    INNER_CONTIGUOUS_MIN,
    Layout,
    Plan,
    bare,
    dimensions,
    flavor,
    inner_contiguous,
    layout,
    refuse_64bit,
    spans,
    tiles,
)
from metal_ops.launch._launcher import Launcher
from metal_ops.launch._scalars import SCALAR_TYPES, Number, packed
from metal_ops.launch._views import METAL_NAMES, View
from metal_ops.launch._walk import Walk, walk

_OPERANDS = ("output", "input")


def unary(launcher: Launcher, functor: str, out: View, source: View, *, ilp_threshold: int | None = None) -> None:
    """Apply ``functor`` to every element of ``source``.

    ``ilp_threshold`` is the number of elements from which a thread computes four; given, it holds for every type of
    result, else :data:`~metal_ops.launch._elementwise.ILP_THRESHOLD` for floats.
    """
    plan, cast = _plans(functor, layout(out), layout(source), ilp_threshold, flavor("UNARY"))
    if plan is not None and cast is not None:
        (plan if launcher.has(plan.kernel) else cast).run(launcher, (out, source))


@lru_cache(maxsize=4096)
def _plans(
    functor: str, out: Layout, source: Layout, ilp_threshold: int | None, forced: str | None
) -> tuple[Plan, Plan] | tuple[None, None]:
    """The kernel for the two types, and the one that casts where there is none for them; nothing for no elements."""
    views = bare(out), bare(source)
    steps = walk(*views)
    if not steps.numel:
        return None, None
    refuse_64bit(steps)
    runs = _walks_runs(steps, forced)
    eligible = views[0].dtype.kind == "float" or ilp_threshold is not None
    wide = eligible and steps.numel >= (ILP_THRESHOLD if ilp_threshold is None else ilp_threshold)
    if forced in ("ilp", "scalar"):
        wide = forced == "ilp"
    cast_wide = ilp_threshold is not None and steps.numel >= ilp_threshold
    return (
        _direct(functor, steps, views, runs=runs, wide=wide),
        _castout(functor, steps, views, runs=runs, wide=cast_wide),
    )


def _direct(functor: str, steps: Walk, views: tuple[View, View], *, runs: bool, wide: bool) -> Plan:
    inner, outer, count = steps.shape[0], steps.numel // steps.shape[0], steps.numel
    arguments: dict[str, Any] = {}
    if steps.contiguous and wide:
        variant, grid, arguments = "dense", (tiles(count), 1), {"numel": count}
    elif steps.contiguous:
        variant, grid = "dense_scalar", (count, 1)
    elif runs:
        variant, grid, arguments = "inner_contiguous", (tiles(inner), outer), _outer_arguments(steps)
    else:
        variant, grid = "strided", (inner, outer)
        arguments = {**dimensions(steps, _OPERANDS), "ndim": len(steps.shape)}
    name = f"{functor}_{variant}_{views[0].metal}_{views[1].metal}"
    return Plan(name, grid, _OPERANDS, spans(views), arguments)


def _castout(functor: str, steps: Walk, views: tuple[View, View], *, runs: bool, wide: bool) -> Plan:
    """The fallback: computes in the input's type and casts to the result's when storing."""
    inner, outer, count = steps.shape[0], steps.numel // steps.shape[0], steps.numel
    arguments: dict[str, Any]
    size, code = views[0].dtype.itemsize, SCALAR_TYPES[views[0].dtype.name]
    if steps.contiguous and wide:
        variant, grid, arguments = "dense_castout_ilp", (tiles(count), 1), {"size_outtype_numel": (size, code, count)}
    elif steps.contiguous:
        variant, grid, arguments = "dense_castout", (count, 1), {"size_outtype": (size, code)}
    elif runs:
        variant, grid = "inner_contiguous_castout", (tiles(inner), outer)
        arguments = dimensions(steps, _OPERANDS, outer=True)
        arguments["ndimO_inner_elem_outtype"] = (len(steps.shape) - 1, inner, size, code)
    else:
        variant, grid = "strided_castout", (inner, outer)
        arguments = {**dimensions(steps, _OPERANDS), "ndim_outtype": (len(steps.shape), code)}
    return Plan(f"{functor}_{variant}_{views[1].metal}", grid, _OPERANDS, spans(views), arguments)


def unary_with_number(
    launcher: Launcher, functor: str, out: View, source: View, number: Number, type_: DType | None = None
) -> None:
    """Apply a functor with a number, which the host converts to ``type_``: by way of float to smaller floats.

    The source's type if none is given. Raises RuntimeError if the number lies outside the type's range.
    """
    type_ = type_ or source.dtype
    name = METAL_NAMES[type_.name]
    plan = _plan_with_parameter(functor, layout(out), layout(source), name, None, True, flavor("UNARY"))
    if plan is not None:
        plan.run(launcher, (out, source), packed(number, type_))


def unary_with_struct(
    launcher: Launcher,
    functor: str,
    out: View,
    source: View,
    type_name: str,
    fields: dict[str, Any],
    *,
    ilp_threshold: int | None = None,
) -> None:
    """Apply a functor with parameters in a struct: dense or strided, whatever else the layouts would allow.

    From ``ilp_threshold`` elements on, if it is given, a thread computes four.
    """
    plan = _plan_with_parameter(functor, layout(out), layout(source), type_name, ilp_threshold, False, None)
    if plan is not None:
        plan.run(launcher, (out, source), fields)


@lru_cache(maxsize=1024)
def _plan_with_parameter(
    functor: str,
    out: Layout,
    source: Layout,
    parameter_type: str,
    ilp_threshold: int | None,
    allow_runs: bool,
    forced: str | None,
) -> Plan | None:
    views = bare(out), bare(source)
    steps = walk(*views)
    if not steps.numel:
        return None
    refuse_64bit(steps)
    inner, count = steps.shape[0], steps.numel
    arguments: dict[str, Any] = {}
    if steps.contiguous and ilp_threshold is not None and count >= ilp_threshold:
        variant, grid, arguments = "dense_ilp", (tiles(count), 1), {"numel": count}
    elif steps.contiguous:
        variant, grid = "dense", (count, 1)
    elif allow_runs and _walks_runs(steps, forced):
        variant, grid, arguments = "inner_contiguous", (tiles(inner), count // inner), _outer_arguments(steps)
    else:
        variant, grid = "strided", (inner, count // inner)
        arguments = {**dimensions(steps, _OPERANDS), "ndim": len(steps.shape)}
    name = f"{functor}_{variant}_{views[0].metal}_{views[1].metal}_{parameter_type}"
    return Plan(name, grid, _OPERANDS, spans(views), arguments)


def _walks_runs(steps: Walk, forced: str | None) -> bool:
    """Whether the kernel for contiguous runs is chosen."""
    if not inner_contiguous(steps):
        return False
    if forced in ("strided", "inner_contiguous"):
        return forced == "inner_contiguous"
    return steps.shape[0] >= INNER_CONTIGUOUS_MIN


def _outer_arguments(steps: Walk) -> dict[str, Any]:
    packed_sizes = {"ndim_outer_inner": (len(steps.shape) - 1, steps.shape[0])}
    return {**dimensions(steps, _OPERANDS, outer=True), **packed_sizes}
