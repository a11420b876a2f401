"""Launching what selects elements: where, masked_fill and cat.

The rules of aten/src/ATen/native/TensorCompare.cpp and of the files TensorCompare.mm, Indexing.mm and Shape.mm in
aten/src/ATen/native/mps/operations.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from conformance.devices.base import Unsupported
from conformance.dtypes import DType, dtype
from metal_ops.launch import copy
from metal_ops.launch._launcher import MAX_EXTENT, Launch, Launcher
from metal_ops.launch._layouts import channels_last, expanded, wrapped
from metal_ops.launch._promotion import result_type
from metal_ops.launch._scalars import Number, item, packed
from metal_ops.launch._views import METAL_NAMES, View, empty
from metal_ops.launch._walk import output_strides
from metal_ops.launch.ternary import ternary

_BOOL = dtype("bool")
BYTES_PER_THREAD = 16
MAX_CHUNK = 1 << 31
MAX_DIMS = 16
INT32_LIMIT = 2**31 - 1


def _as_tensor(value: View | Number, type_: DType) -> View:
    """A number that torch has wrapped, as the tensor without dimensions that it is to the op."""
    return value if isinstance(value, View) else View(type_, (), (), 0, packed(value, type_).copy())


def _cast(launcher: Launcher, source: View, type_: DType) -> View:
    """The operand in another type: on the host if it is a number's type that the device has not."""
    if source.dtype != type_ and source.dtype.name not in METAL_NAMES:
        return View(type_, (), (), 0, packed(item(source), type_).copy())
    return copy.cast(launcher, source, type_)


def _where(
    launcher: Launcher, condition: View, source: View | Number, other: View | Number, *, out: View | None = None
) -> View | None:
    """Elements of ``source`` where ``condition`` holds, else of ``other``, in the type that both are promoted to."""
    if condition.dtype.name not in ("bool", "uint8"):
        raise RuntimeError(f"where: condition must be bool (or uint8), given {condition.dtype.name}")
    common = result_type((source, other))
    flags = _cast(launcher, condition, _BOOL)
    first, second = (_cast(launcher, _as_tensor(value, common), common) for value in (source, other))
    shapes = {flags.shape, first.shape, second.shape}
    shape = shapes.pop() if len(shapes) == 1 else np.broadcast_shapes(*shapes)
    if out is None:
        result = empty(common, shape, output_strides((flags, first, second), shape))
    elif out.shape != shape or out.dtype != common:
        raise Unsupported(f"out is {out.dtype.name} {out.shape} and would have to be made {common.name} {shape}")
    else:
        result = out
    ternary(launcher, "where", result, (flags, first, second), common)
    return result if out is None else None


def _masked_fill(launcher: Launcher, target: View, mask: View, value: Number) -> None:
    """Elements are bit patterns here: there is a kernel for each size, not type."""
    if target.numel == 0 or mask.numel == 0:
        return
    if mask.dtype.kind != "bool":
        raise RuntimeError(f"masked_fill_: mask must be bool, given {mask.dtype.name}")
    if target.numel > MAX_EXTENT:
        raise RuntimeError(f"masked_fill_: tensors of at most 2**32 - 1 elements, given {target.numel}")
    spread = expanded(mask, target.shape)
    bits = f"{8 * target.dtype.itemsize}bit"
    arguments: dict[str, Any] = {"input": target.memory, "val": packed(value, target.dtype)}
    if target.contiguous and spread.contiguous:
        name, arguments["mask"] = f"masked_fill_scalar_dense_{bits}", spread.memory
    elif _repeats(mask, target):
        name, arguments["mask"] = f"masked_fill_scalar_broadcast_{bits}", mask.memory
        arguments["mask_numel"] = mask.numel
    else:
        name, arguments["mask"] = f"masked_fill_scalar_strided_{bits}", spread.memory
        arguments["sizes"] = np.array(target.shape, np.int64)
        arguments["input_strides"] = np.array(target.strides, np.int64)
        arguments["mask_strides"] = np.array(spread.strides, np.int64)
        arguments["ndim"] = np.array([len(target.shape)], np.uint32)
    launcher.line(name, arguments, target.numel)


def _repeats(part: View, whole: View) -> bool:
    """Whether a contiguous tensor is ``part`` over and over: equal trailing dimensions, and none before them."""
    if not (part.contiguous and whole.contiguous):
        return False
    sizes = list(part.shape)
    for wanted in reversed(whole.shape[len(whole.shape) - len(sizes) :]):
        if sizes[-1] != wanted:
            break
        sizes.pop()
    return all(size == 1 for size in sizes)


def _masked_fill_tensor(launcher: Launcher, target: View, mask: View, value: View) -> None:
    if value.shape:
        raise RuntimeError(f"masked_fill_: value must have no dimensions, given shape {value.shape}")
    _masked_fill(launcher, target, mask, item(value))


def _skipped(view: View) -> bool:
    """An empty tensor of one dimension takes no part in a concatenation, whatever the others' shapes."""
    return view.shape == (0,)


def _cat(launcher: Launcher, tensors: Sequence[View], dim: int = 0, *, out: View) -> None:
    """One launch a tensor: of runs of bytes if all are contiguous and of one type, else of elements."""
    if out.numel == 0:
        return
    dim = wrapped(dim, len(out.shape))
    used = [view for view in tensors if not _skipped(view)]
    alike = all(view.contiguous and view.dtype == out.dtype for view in (*tensors, out))
    large = any(_too_large(view) for view in (out, *used))
    in_runs = alike and not all(channels_last(view) for view in tensors)
    if len(out.shape) > MAX_DIMS and not in_runs:
        raise Unsupported(f"cat in {len(out.shape)} dimensions; the kernels take {MAX_DIMS}")
    start = 0
    for view in used:
        if view.numel and in_runs:
            _scatter(launcher, view, out, dim, start)
        elif view.numel:
            _cat_elements(launcher, view, out, dim, start, large=large)
        start += view.shape[dim]


def _too_large(view: View) -> bool:
    """Whether positions of the tensor need 64 bits, as the host sees it."""
    behind = view.storage.size // view.dtype.itemsize - view.offset
    return view.numel > INT32_LIMIT or ((view.offset > 0 or not view.contiguous) and behind > INT32_LIMIT)


def _scatter(launcher: Launcher, source: View, out: View, dim: int, start: int) -> None:
    """A contiguous tensor goes to runs at regular distances."""
    row = prod(out.shape[dim + 1 :]) * out.dtype.itemsize
    run, distance, first = source.shape[dim] * row, out.shape[dim] * row, start * row
    memory = source.memory
    runs = -(-memory.size // run)
    last = max(memory.size, first + (runs - 1) * distance + run)
    name = f"inner_contiguous_scatter_{'u32' if last <= MAX_EXTENT else 'u64'}"
    for base in range(0, memory.size, MAX_CHUNK):
        count = min(MAX_CHUNK, memory.size - base)
        params = {
            "chunk_base": base,
            "slice_bytes": run,
            "out_stride_bytes": distance,
            "off_bytes": first,
            "nbytes": count,
        }
        arguments = {"input": memory, "output": out.memory, "params": params}
        launcher.line(name, arguments, -(-count // BYTES_PER_THREAD))


def _cat_elements(launcher: Launcher, source: View, out: View, dim: int, start: int, *, large: bool) -> None:
    """Any layout and pair of types: a thread an element."""
    name = f"cat_int{64 if large else 32}_t_{source.metal}_{out.metal}"
    shared = {
        "ndim": len(out.shape),
        "cat_dim": dim,
        "output_strides": list(out.strides),
        "output_sizes": list(out.shape),
    }
    for done in range(0, source.numel, INT32_LIMIT):
        own = {
            "cat_dim_offset": start,
            "input_element_offset": done,
            "input_strides": list(source.strides),
            "input_sizes": list(source.shape),
        }
        arguments = {"input": source.memory, "output": out.memory, "shared_params": shared, "input_params": own}
        launcher.line(name, arguments, min(INT32_LIMIT, source.numel - done))


LAUNCHES: dict[str, Launch] = {
    "where.self": _where,
    "where.self_out": _where,
    "masked_fill_.Scalar": _masked_fill,
    "masked_fill_.Tensor": _masked_fill_tensor,
    "cat.out": _cat,
}
