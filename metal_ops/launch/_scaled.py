"""Launching scaled products of 8-bit floats: few rows, or tiles.

The rules of aten/src/ATen/native/mps/operations/ScaledMM.mm and kernels/ScaledMM.h shortly before 2.15.0, on a Mac that
takes the library without matmul2d, as the device does. What the host checks beyond torch's own rules is refused here
too; that it checks strides after it has left a product without terms is inferred.
"""

from __future__ import annotations

from typing import Any

from conformance.dtypes import DType
from metal_ops.launch import copy, fill
from metal_ops.launch._launcher import Launcher
from metal_ops.launch._views import View

ALIGNMENT = 16
"""What is summed, columns, offsets and steps come in multiples of it."""
FEW_ROWS = 4
TILE = 32
_THREADS = 128
_COLUMNS_OF_FEW = 4
_TENSORWISE, _ROWWISE = 0, 1
_BY_ROW = {_TENSORWISE: False, _ROWWISE: True}


def scaled_mm(
    launcher: Launcher,
    left: View,
    right: View,
    scale_a: tuple[View, ...],
    recipe_a: tuple[int, ...],
    swizzle_a: tuple[int, ...],
    scale_b: tuple[View, ...],
    recipe_b: tuple[int, ...],
    swizzle_b: tuple[int, ...],
    bias: View | None,
    out_dtype: DType | None,
    contraction_dim: tuple[int, ...] = (),
    use_fast_accum: bool = False,
    *,
    out: View,
) -> None:
    """Launch ``_scaled_mm_v2.out``."""
    _check_types(left, right, bias, out)
    by_row = _check_scales(left, right, scale_a, recipe_a, scale_b, recipe_b)
    if any(swizzle_a) or any(swizzle_b):
        raise ValueError("_scaled_mm_v2: scales cannot be swizzled on the Metal backend")
    (rows, inner), columns = left.shape, right.shape[1]
    if inner % ALIGNMENT or columns % ALIGNMENT:
        raise ValueError(f"_scaled_mm_v2: {left.shape} and {right.shape} are no multiples of {ALIGNMENT}")
    if not inner:
        fill.fill(launcher, out, 0)
        return
    if not out.numel:
        return
    _check_alignment(left, right)
    added = None if bias is None else copy.contiguous(launcher, bias)
    params = {"m": rows, "n": columns, "k": inner}
    for name, view in (("a", left), ("b", right), ("out", out)):
        params |= {f"{name}_row_stride": view.strides[0], f"{name}_col_stride": view.strides[1]}
    in_bfloat = added is not None and added.dtype.name == "bfloat16"
    flags = {"rowwise": by_row, "has_bias": added is not None, "bias_bfloat16": in_bfloat}
    arguments: dict[str, Any] = {"a": left.memory, "b": right.memory, "out": out.memory}
    arguments |= {"scale_a": scale_a[0].memory, "scale_b": scale_b[0].memory}
    arguments |= {"bias": left.memory if added is None else added.memory, "p": params | flags}
    group = (_THREADS, 1, 1)
    if rows <= FEW_ROWS and left.strides[1] == 1 and right.strides[0] == 1:
        name = f"scaled_mm_few_rows_{rows}_{out.metal}"
        launcher.run(name, arguments, groups=(columns // _COLUMNS_OF_FEW, 1, 1), group=group)
        return
    launcher.run(f"scaled_mm_{out.metal}", arguments, groups=(-(-columns // TILE), -(-rows // TILE), 1), group=group)


def _check_types(left: View, right: View, bias: View | None, out: View) -> None:
    for view in (left, right):
        if view.dtype.name != "float8_e4m3fn":
            raise TypeError(f"_scaled_mm_v2: matrices must be float8_e4m3fn; given: {view.dtype.name}")
    kind = out.dtype.name
    if kind not in ("float32", "float16", "bfloat16", "float8_e4m3fn"):
        raise TypeError(f"_scaled_mm_v2: the result cannot be {kind}")
    if bias is None:
        return
    allowed = {"float16": ("float16",), "bfloat16": ("bfloat16",), "float8_e4m3fn": ("bfloat16", "float16")}
    if bias.dtype.name not in allowed.get(kind, ()):
        raise ValueError(f"_scaled_mm_v2: a {kind} result cannot have a bias of {bias.dtype.name}")


def _check_scales(
    left: View,
    right: View,
    scale_a: tuple[View, ...],
    recipe_a: tuple[int, ...],
    scale_b: tuple[View, ...],
    recipe_b: tuple[int, ...],
) -> bool:
    """Whether there is a scale for each row and column, or one for each matrix; nothing else is served."""
    recipes = {*recipe_a, *recipe_b}
    single = len(scale_a) == len(scale_b) == len(recipe_a) == len(recipe_b) == len(recipes) == 1
    if not single or not recipes <= set(_BY_ROW):
        raise ValueError(f"_scaled_mm_v2: recipes {recipe_a} and {recipe_b} are not served on the Metal backend")
    by_row = _BY_ROW[recipes.pop()]
    if by_row:
        due = ((left.shape[0], 1), (1, right.shape[1]))
        if (scale_a[0].shape, scale_b[0].shape) != due or not (scale_a[0].contiguous and scale_b[0].contiguous):
            raise ValueError(f"_scaled_mm_v2: scales must be contiguous, of shapes {due}")
    return by_row


def _check_alignment(left: View, right: View) -> None:
    for view in (left, right):
        if view.offset % ALIGNMENT or 1 not in view.strides or max(view.strides) % ALIGNMENT:
            raise ValueError(f"_scaled_mm_v2: offset {view.offset} and strides {view.strides} are not aligned")
