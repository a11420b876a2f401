"""Launching binary elementwise kernels: the choice among their variants, as PyTorch's host makes it.

Variants of a function ``f`` that computes in type T with result type O, from
aten/src/ATen/native/mps/OperationUtils.mm: ``f_dense_O_T`` (``f_dense_ilp4_O_T``: four elements a thread),
``f_dense_scalar_O_T`` and ``f_dense_scalar_lhs_O_T`` (one operand is one number), ``f_dense_broadcast_O_T`` and
``f_dense_broadcast_rhs_O_T`` (one operand repeats; ``rhs`` where it is the first), ``f_inner_contiguous_O_T``,
``f_strided_O_T``. Where the operands' types differ, ``_cast`` follows the variant, and the kernel converts when it
loads. Where the result's type is none that the function gives, ``f_strided_castout_O_T`` also converts when it stores.
Functions with a number or a struct of type P end in ``_P``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np

from conformance.dtypes import DType, dtype
from metal_ops.launch._elementwise import (
    ELEMENTS_PER_THREAD,
    ILP_THRESHOLD,
    INNER_CONTIGUOUS_MIN,
    Layout,
    Plan,
    bare,
    dimensions,
    flavor,
    inner_contiguous,
    layout,
    on_device,
    refuse_64bit,
    spans,
    tiles,
)
from metal_ops.launch._launcher import Launcher
from metal_ops.launch._layouts import expanded
from metal_ops.launch._promotion import real_of, result_type
from metal_ops.launch._scalars import SCALAR_TYPES, Number, packed, wide
from metal_ops.launch._views import METAL_NAMES, View
from metal_ops.launch._walk import Walk, walk

Operand = View | Number
Views = tuple[View, View, View]
"""Output, first and second operand, each in its own shape."""

_DENSE = ("out", "input", "other")
_STRIDED = ("output", "input", "other")
_FLOAT = dtype("float32")


@dataclass(frozen=True, slots=True)
class Choice:
    """What decides on the kernel beside the operands' layouts.

    ``common`` is the type in which the op computes, by PyTorch's promotion. ``natural`` is the one type of result that
    the function has; by default it has any. ``number`` says whether the function takes a number, of the type in which
    it computes (``own``) or of the wider one in which such a type is accumulated (``wide``).
    """

    functor: str
    common: DType
    natural: DType | None = None
    ilp_threshold: int | None = None
    number: Literal["own", "wide"] | None = None
    forced: str | None = None

    def number_type(self, out: View, *, cast: bool) -> DType | None:
        """The type to which the host converts the number."""
        if self.number == "wide":
            return wide(self.common)
        if self.number == "own":
            return out.dtype if cast else self.common
        return None


def binary(
    launcher: Launcher,
    functor: str,
    out: View,
    first: Operand,
    second: Operand,
    *,
    floating: bool = False,
    natural: DType | None = None,
    ilp_threshold: int | None = None,
) -> None:
    """Apply ``functor`` to pairs of elements, broadcast to the shape of ``out``.

    With ``floating``, integers compute in PyTorch's default type; ``natural`` is as in :class:`Choice`. From
    ``ilp_threshold`` elements on a thread computes four: by default 2**18 for floats, and never for other results.
    """
    common = result_type((first, second), floating=floating)
    _run(launcher, Choice(functor, common, natural, ilp_threshold, None, flavor("BINARY")), (out, first, second))


def binary_with_number(
    launcher: Launcher,
    functor: str,
    out: View,
    first: Operand,
    second: Operand,
    number: Number,
    *,
    accumulated: bool = False,
) -> None:
    """Apply a functor with a number, which the host converts to the type in which the op computes.

    With ``accumulated``, to the one in which sums of it are taken; else to the result's where the operands' types
    differ. Raises RuntimeError if the number lies outside the type's range.
    """
    choice = Choice(functor, result_type((first, second)), number="wide" if accumulated else "own")
    _run(launcher, choice, (out, first, second), number)


def binary_with_struct(
    launcher: Launcher, functor: str, out: View, first: View, second: View, type_name: str, fields: dict[str, Any]
) -> None:
    """Apply a functor with parameters in a struct: dense or strided, whatever else the layouts would allow."""
    plan = _plan_with_struct(functor, layout(out), layout(first), layout(second), type_name)
    if plan is not None:
        plan.run(launcher, (out, first, second), fields)


def _run(
    launcher: Launcher, choice: Choice, operands: tuple[View, Operand, Operand], number: Number | None = None
) -> None:
    bound = (operands[0], _bound(operands[1]), _bound(operands[2]))
    plan = _plan(choice, layout(bound[0]), layout(bound[1]), layout(bound[2]))
    if plan is not None:
        parameter = None if number is None or plan.number is None else packed(number, plan.number)
        plan.run(launcher, bound, parameter)


def _bound(operand: Operand) -> View:
    """An operand as the host binds it: numbers as tensors of one element, double rounded to float."""
    if isinstance(operand, View):
        return on_device(operand)
    if isinstance(operand, bool):
        return _one(np.bool_(operand), "bool")
    if isinstance(operand, int):
        return _one(np.int64(operand), "int64")
    with np.errstate(over="ignore"):  # beyond the range becomes infinity, as a C cast does
        if isinstance(operand, float):
            return _one(np.float32(operand), "float32")
        return _one(np.complex64(operand), "complex64")


def _one(value: np.generic, name: str) -> View:
    return View(dtype(name), (), (), 0, np.frombuffer(value.tobytes(), np.uint8))


@lru_cache(maxsize=4096)
def _plan(choice: Choice, out: Layout, first: Layout, second: Layout) -> Plan | None:
    """The launch for these layouts; None if there is no element."""
    views = bare(out), bare(first), bare(second)
    if not views[0].numel:
        return None
    steps = _walk(views)
    if choice.natural is not None and choice.natural != views[0].dtype:
        return _casting_on_store(choice, choice.natural, views, steps)
    place = _repeating(views)
    if place is not None:
        return _dense_with_repeated(choice, views, place)
    return _whole(choice, views, steps)


def _walk(views: Views) -> Walk:
    shape = views[0].shape
    steps = walk(views[0], *(view if view.shape == shape else expanded(view, shape) for view in views[1:]))
    refuse_64bit(steps)
    return steps


def _repeating(views: Views) -> int | None:
    """The operand of which a dense kernel takes the same numbers again and again, by position, if there is one."""
    out, first, second = views
    if not out.contiguous:
        return None
    for place, part, whole in ((1, first, second), (2, second, first)):
        if part.numel != out.numel == whole.numel and whole.contiguous and _repeats(part, out):
            return place
    return None


def _repeats(part: View, whole: View) -> bool:
    """Whether ``part`` holds the numbers of the fastest dimensions of ``whole``, with no other dimension but of one."""
    if not part.contiguous:
        return False
    sizes = list(zip(reversed(part.shape), reversed(whole.shape), strict=False))
    same = next((place for place, (own, full) in enumerate(sizes) if own != full), len(sizes))
    return all(own == 1 for own, _ in sizes[same + 1 :])


def _name(choice: Choice, variant: str, out: View, computed: DType, *, cast: bool) -> str:
    """A kernel's name; for one that casts, only comparisons tell the type in which they compute."""
    if cast:
        computed = choice.common if out.dtype.kind == "bool" else out.dtype
    number = choice.number_type(out, cast=cast)
    suffix = "" if number is None else f"_{METAL_NAMES[number.name]}"
    return f"{choice.functor}_{variant}{'_cast' if cast else ''}_{out.metal}_{METAL_NAMES[computed.name]}{suffix}"


def _operand_types(views: Views) -> tuple[int, int, int, int]:
    """Bytes and type numbers of the operands, for dense kernels that convert when they load."""
    sizes = (views[1].dtype.itemsize, views[2].dtype.itemsize)
    return (*sizes, SCALAR_TYPES[views[1].dtype.name], SCALAR_TYPES[views[2].dtype.name])


def _all_types(views: Views, steps: Walk) -> tuple[int, int, int, int]:
    """Number of dimensions and type numbers of the operands and the output, for strided kernels that convert."""
    out, first, second = (SCALAR_TYPES[view.dtype.name] for view in views)
    return len(steps.shape), first, second, out


def _casting_on_store(choice: Choice, natural: DType, views: Views, steps: Walk) -> Plan:
    arguments = {**dimensions(steps, _STRIDED), "ndim_types": _all_types(views, steps)}
    name = f"{choice.functor}_strided_castout_{METAL_NAMES[natural.name]}_{METAL_NAMES[choice.common.name]}"
    return Plan(name, (steps.numel, 1), _STRIDED, spans(views), arguments)


def _dense_with_repeated(choice: Choice, views: Views, place: int) -> Plan:
    repeated, whole = views[place], views[3 - place]
    cast, narrowed = repeated.dtype != whole.dtype, None
    if cast and repeated.numel == 1 and _promoted_by_host(choice, repeated, whole):
        cast, narrowed = False, (place, choice.common)
    arguments = _dense_arguments(views, cast=cast)
    if repeated.numel == 1:
        variant, own = "dense_scalar_lhs" if place == 1 else "dense_scalar", "scalar"
    else:
        variant, own = "dense_broadcast_rhs" if place == 1 else "dense_broadcast", "broadcast"
        arguments["broadcast_numel"] = repeated.numel
    buffers = ("out", own, "input") if place == 1 else ("out", "input", own)
    sizes = list(spans(views))
    if narrowed is not None:
        sizes[place] = choice.common.itemsize
    name = _name(choice, variant, views[0], whole.dtype, cast=cast)
    number = choice.number_type(views[0], cast=cast)
    return Plan(name, (views[0].numel, 1), buffers, tuple(sizes), arguments, narrowed, number)


def _promoted_by_host(choice: Choice, repeated: View, whole: View) -> bool:
    """Whether the host converts the one number itself: an integer, where the op computes in float or complex float."""
    exact = repeated.dtype.kind in ("int", "bool") and real_of(choice.common) == _FLOAT
    return exact and whole.dtype == choice.common


def _whole(choice: Choice, views: Views, steps: Walk) -> Plan:
    """All operands are walked alike."""
    cast = views[1].dtype != views[2].dtype
    plain = not cast and choice.number is None
    inner, count = steps.shape[0], steps.numel
    if steps.contiguous and plain and _four_a_thread(choice, views[0], count):
        variant, arguments, grid = f"dense_ilp{ELEMENTS_PER_THREAD}", {"numel": count}, (tiles(count), 1)
    elif steps.contiguous:
        variant, arguments, grid = "dense", _dense_arguments(views, cast=cast), (count, 1)
    elif plain and _walks_runs(choice, steps):
        variant, arguments, grid = "inner_contiguous", _outer_arguments(steps), (tiles(inner), count // inner)
    else:
        variant, arguments, grid = "strided", _strided_arguments(views, steps, cast=cast), (count, 1)
    name = _name(choice, variant, views[0], views[1].dtype, cast=cast)
    buffers = _DENSE if steps.contiguous else _STRIDED
    return Plan(name, grid, buffers, spans(views), arguments, None, choice.number_type(views[0], cast=cast))


def _dense_arguments(views: Views, *, cast: bool) -> dict[str, Any]:
    return {"sizes_types": _operand_types(views)} if cast else {}


def _outer_arguments(steps: Walk) -> dict[str, Any]:
    return {**dimensions(steps, _STRIDED, outer=True), "ndim_outer_inner": (len(steps.shape) - 1, steps.shape[0])}


def _strided_arguments(views: Views, steps: Walk, *, cast: bool) -> dict[str, Any]:
    types = _all_types(views, steps)
    return {**dimensions(steps, _STRIDED), **({"ndim_types": types} if cast else {"ndim": types[:3]})}


def _four_a_thread(choice: Choice, out: View, count: int) -> bool:
    if choice.forced in ("ilp", "scalar"):
        return choice.forced == "ilp"
    threshold = choice.ilp_threshold
    if threshold is None:
        return out.dtype.kind == "float" and count >= ILP_THRESHOLD
    return count >= threshold


def _walks_runs(choice: Choice, steps: Walk) -> bool:
    if not inner_contiguous(steps):
        return False
    if choice.forced in ("strided", "inner_contiguous"):
        return choice.forced == "inner_contiguous"
    return steps.shape[0] >= INNER_CONTIGUOUS_MIN


@lru_cache(maxsize=1024)
def _plan_with_struct(functor: str, out: Layout, first: Layout, second: Layout, type_name: str) -> Plan | None:
    views = bare(out), bare(first), bare(second)
    if not views[0].numel:
        return None
    steps = _walk(views)
    cast = views[1].dtype != views[2].dtype
    if steps.contiguous:
        variant, buffers, arguments = "dense", _DENSE, _dense_arguments(views, cast=cast)
    else:
        variant, buffers, arguments = "strided", _STRIDED, _strided_arguments(views, steps, cast=cast)
    # For operands of different types PyTorch asks for a name with one type, which no library has.
    types = f"cast_{views[0].metal}" if cast else f"{views[0].metal}_{views[1].metal}"
    return Plan(f"{functor}_{variant}_{types}_{type_name}", (steps.numel, 1), buffers, spans(views), arguments)
