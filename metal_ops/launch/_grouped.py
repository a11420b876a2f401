"""Launching products in groups: few rows, tiles of rows, or tiles of each group's sum.

The rules of 2.15.0 (aten/src/ATen/native/mps/operations/GroupedMM.mm and aten/src/ATen/native/GroupedMMUtils.h) on a
Mac that takes the library without matmul2d, as the device does. Where each group ends is read by the kernel alone.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from conformance.dtypes import DType
from metal_ops.launch._launcher import Launch, Launcher
from metal_ops.launch._layouts import fits, permuted
from metal_ops.launch._views import View

INT32_LIMIT = 2**31 - 1
ALIGNMENT = 16
"""Bytes to which data and steps are aligned."""
TILE_COLUMNS = 64
FEW_ROWS = 32
_COLUMNS_OF_FEW = 16
"""Results, and SIMD groups, of a group of the kernel for few rows."""


def grouped_mm(batched: Callable[..., None]) -> Launch:
    """The launch of ``_grouped_mm``, given that of a plain batch of products."""

    def launch(
        launcher: Launcher, left: View, right: View, offs: View | None, bias: View | None, out_dtype: DType | None
    ) -> View:
        _check(left, right, offs, bias, out_dtype)
        out = _result(left, right, offs)
        if offs is None:
            batched(launcher, left, right, out=out)
        elif offs.numel and out.numel:
            _run(launcher, left, right, offs, out)
        return out

    return launch


def _check(left: View, right: View, offs: View | None, bias: View | None, out_dtype: DType | None) -> None:
    """What the host refuses; what it says is not repeated word for word."""
    flat = [len(view.shape) == 2 for view in (left, right)]
    for view in (left, right):
        if view.dtype.name not in ("float32", "float16", "bfloat16"):
            raise RuntimeError(f"_grouped_mm: matrices must be float32, bfloat16 or float16; given: {view.dtype.name}")
        if len(view.shape) not in (2, 3):
            raise RuntimeError(f"_grouped_mm: matrices must have 2 or 3 dimensions; given: {view.shape}")
    if not all(flat) and left.shape[-1] != right.shape[-2]:
        raise RuntimeError(f"_grouped_mm: {left.shape} and {right.shape} differ in the dimension that is summed")
    for view in (left, right):
        _check_steps(view)
    if (offs is not None) != any(flat):
        raise RuntimeError("_grouped_mm: offsets are given exactly if a matrix has 2 dimensions")
    if offs is not None and (len(offs.shape) != 1 or offs.dtype.name != "int32"):
        raise RuntimeError(f"_grouped_mm: offsets must be int32 with one dimension; given: {offs.dtype.name}")
    if bias is not None:
        raise RuntimeError("_grouped_mm: a bias is not supported")
    if out_dtype is not None and out_dtype != left.dtype:
        raise RuntimeError(f"_grouped_mm: the result has the type of the first matrix; asked for: {out_dtype.name}")
    batches = [view.shape[0] for view, is_flat in zip((left, right), flat, strict=True) if not is_flat]
    groups = batches[0] if offs is None else offs.shape[0]
    if any(batch != groups for batch in batches):
        raise RuntimeError(f"_grouped_mm: {groups} groups, but matrices {left.shape} and {right.shape}")


def _check_steps(view: View) -> None:
    """Rows, or columns, must be dense, and everything else aligned."""
    (rows, columns), (row_step, column_step) = view.shape[-2:], view.strides[-2:]
    size = view.dtype.itemsize
    if row_step == 1 and column_step >= max(1, rows):
        step = column_step
    elif column_step == 1 and row_step >= max(1, columns):
        step = row_step
    else:
        raise RuntimeError(f"_grouped_mm: strides {view.strides} of {view.shape} are neither of rows nor of columns")
    if step * size % ALIGNMENT or view.offset * size % ALIGNMENT:
        raise RuntimeError(f"_grouped_mm: data and strides must be multiples of {ALIGNMENT} bytes")


def _result(left: View, right: View, offs: View | None) -> View:
    """A new tensor whose rows begin at multiples of 16 bytes; all its bytes are 0xFF."""
    shape: tuple[int, ...] = (left.shape[-2], right.shape[-1])
    if len(left.shape) == len(right.shape):
        shape = (left.shape[0] if offs is None else offs.shape[0], *shape)
    unit = ALIGNMENT // left.dtype.itemsize
    row = -(-shape[-1] // unit) * unit
    strides = (row, 1) if len(shape) == 2 else (shape[1] * row, row, 1)
    storage = np.full(prod(shape[:-1]) * row * left.dtype.itemsize, 0xFF, np.uint8)
    return View(left.dtype, shape, strides, 0, storage)


def _run(launcher: Launcher, left: View, right: View, offs: View, out: View) -> None:
    if len(left.shape) == 3:  # groups of columns are groups of rows of the transposed product
        left, right, out = permuted(right, (1, 0)), permuted(left, (0, 2, 1)), permuted(out, (1, 0))
    by_rows = len(right.shape) == 3
    groups, rows, columns = offs.shape[0], left.shape[-2], right.shape[-1]
    narrow = all(fits(view, INT32_LIMIT) for view in (left, right, out))
    suffix = "u32" if narrow else "u64"
    batched = right if by_rows else out
    params = {"m": rows, "n": columns, "k": min(left.shape[-1], right.shape[-2]), "groups": groups}
    params |= dict(zip(("a_stride_m", "a_stride_k"), left.strides, strict=True))
    params |= dict(zip(("b_stride_k", "b_stride_n"), right.strides[-2:], strict=True))
    params |= dict(zip(("out_stride_m", "out_stride_n"), out.strides[-2:], strict=True))
    params |= {"batch_stride": batched.strides[0]}
    arguments: dict[str, Any] = {"mat_a": left.memory, "mat_b": right.memory, "offsets": offs.memory}
    arguments |= {"output": out.memory, "params": params}
    if by_rows and rows <= min(FEW_ROWS, groups) and left.strides[1] == 1 and right.strides[1] == 1:
        grid = (-(-columns // _COLUMNS_OF_FEW), rows, 1)
        name = f"grouped_mm_few_rows_{out.metal}_{suffix}"
        launcher.run(name, arguments, groups=grid, group=(32 * _COLUMNS_OF_FEW, 1, 1))
        return
    height = _tile_rows(rows // groups if by_rows else rows)
    tiles = -(-columns // TILE_COLUMNS), -(-rows // height) + (groups if by_rows else 0)
    name = f"grouped_mm_{'rows' if by_rows else 'k'}_{out.metal}_bm{height}_{suffix}"
    group = (32 * (4 if height == 64 else 2), 1, 1)
    launcher.run(name, arguments, groups=(*tiles, 1 if by_rows else groups), group=group)


def _tile_rows(rows: int) -> int:
    """Rows of a tile, for groups of about so many."""
    return 64 if rows > 48 else 32 if rows > 24 else 16
