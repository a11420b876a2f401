"""Launching pads: by a constant, by reflection and by replication, with the gradients of the last two.

The rules of aten/src/ATen/native/mps/operations/Pad.mm and aten/src/ATen/native/Padding.h. The gradient of a constant
pad is a constant pad with negated widths. Circular padding is composed of copies by PyTorch.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod
from typing import Any, Literal

import numpy as np

from conformance.devices.base import Unsupported
from metal_ops.launch import copy, fill
from metal_ops.launch._launcher import MAX_EXTENT, Launch, Launcher
from metal_ops.launch._layouts import channels_last, empty_in_format, empty_like, fits, narrowed
from metal_ops.launch._scalars import Number, packed
from metal_ops.launch._views import View, empty

Mode = Literal["reflection", "replication"]

ELEMENTS_PER_THREAD = 4
MAX_DIMS = 16
MAX_DENSE_DIMS = 3
INDEX_LIMIT = 1 << 29
"""Below it, kernels with 32-bit indices may form the left pad plus twice a size."""


def _tiles(count: int) -> int:
    return -(-count // ELEMENTS_PER_THREAD)


def _constant(launcher: Launcher, source: View, pad: Sequence[int], value: Number = 0) -> View:
    """Negative widths crop first; what is left is padded by the dense kernel or by the one for any layout."""
    if len(pad) % 2 or len(pad) > 2 * len(source.shape):
        raise RuntimeError(
            f"constant_pad_nd: pad must have an even number of widths, at most two a dimension of {source.shape}; "
            f"given {tuple(pad)}"
        )
    cropped = _cropped(source, pad)
    only_crops = all(width <= 0 for width in pad)
    if only_crops and cropped.contiguous:
        return copy.clone(launcher, cropped)
    output = empty_like(cropped) if only_crops else _padded(source, pad)
    if output.numel == 0:
        return output
    if cropped.numel == 0:
        fill.fill(launcher, output, value)
        return output
    filler = packed(0 if only_crops else value, source.dtype)
    if len(pad) <= 2 * MAX_DENSE_DIMS and cropped.contiguous and output.contiguous:
        _dense(launcher, cropped, output, pad, filler)
    elif output.numel > MAX_EXTENT or len(source.shape) > MAX_DIMS:
        raise Unsupported(f"the host composes a pad to {output.numel} elements in {len(source.shape)} dimensions")
    else:
        _any_layout(launcher, cropped, output, pad, filler)
    return output


def _cropped(source: View, pad: Sequence[int]) -> View:
    for place in range(0, len(pad), 2):
        dim = len(source.shape) - 1 - place // 2
        left, right = min(pad[place], 0), min(pad[place + 1], 0)
        if left or right:
            source = narrowed(source, dim, -left, source.shape[dim] + left + right)
    return source


def _padded(source: View, pad: Sequence[int]) -> View:
    """A new tensor of the padded size, in the memory format that PyTorch suggests for the source."""
    shape = list(source.shape)
    for place in range(0, len(pad), 2):
        shape[-1 - place // 2] += pad[place] + pad[place + 1]
    if min(shape) < 0:
        raise RuntimeError(f"constant_pad_nd: padding {source.shape} by {tuple(pad)} gives the shape {tuple(shape)}")
    return empty_in_format(source.dtype, shape, as_channels_last=channels_last(source))


def _left_pads(pad: Sequence[int], dims: int) -> list[int]:
    """The widths before the elements, last dimension first, without those that crop."""
    widths = [max(width, 0) for width in pad[::2]]
    return widths + [0] * (dims - len(widths))


def _dense(launcher: Launcher, source: View, output: View, pad: Sequence[int], filler: Any) -> None:
    """Both contiguous, at most three padded dimensions: the kernel counts positions instead of dividing them."""
    dims = len(pad) // 2

    def inner(shape: Sequence[int]) -> list[int]:
        return [*reversed(shape[len(shape) - dims :]), *[1] * (MAX_DENSE_DIMS - dims)]

    sizes = inner(output.shape)
    params = {
        "input_sizes": inner(source.shape),
        "output_sizes": sizes,
        "left_pad": _left_pads(pad, MAX_DENSE_DIMS),
    }
    arguments = {"input": source.memory, "output": output.memory, "params": params, "fill_value": filler}
    grid = (_tiles(sizes[0]), sizes[1], output.numel // (sizes[0] * sizes[1]))
    launcher.volume(f"constant_pad_nd_dense_{source.metal}", arguments, grid)


def _any_layout(launcher: Launcher, source: View, output: View, pad: Sequence[int], filler: Any) -> None:
    """Dimensions in the order of the output's memory; positions from divisions."""
    count = len(output.shape)
    order = sorted(range(count), key=output.strides.__getitem__)
    left = _left_pads(pad, count)
    inner = output.shape[order[0]]
    params = {
        "output_sizes": [output.shape[dim] for dim in order],
        "input_sizes": [source.shape[dim] for dim in order],
        "input_strides": [source.strides[dim] for dim in order],
        "output_strides": [output.strides[dim] for dim in order],
        "left_pad": [left[count - 1 - dim] for dim in order],
        "ndim": count,
    }
    arguments = {"input": source.memory, "output": output.memory, "params": params, "fill_value": filler}
    narrow = fits(source, MAX_EXTENT) and fits(output, MAX_EXTENT)
    name = f"constant_pad_nd_{source.metal}_{'u32' if narrow else 'u64'}"
    launcher.plane(name, arguments, _tiles(inner), output.numel // inner)


def _spread_shape(mode: Mode, dims: int, source: View, padding: Sequence[int]) -> tuple[int, ...]:
    """The padded shape; raises RuntimeError for what PyTorch refuses."""
    shape, count = source.shape, len(source.shape)
    if len(padding) != 2 * dims:
        raise RuntimeError(f"{mode}_pad{dims}d: padding must have {2 * dims} widths, given {tuple(padding)}")
    if count not in (dims + 1, dims + 2) or 0 in shape[count - dims - 1 :]:
        raise RuntimeError(
            f"{mode}_pad{dims}d: input must have {dims + 1} or {dims + 2} dimensions (the first of the latter may have "
            f"size 0), given shape {shape}"
        )
    result = list(shape)
    for place in range(dims):
        before, after, size = padding[2 * place], padding[2 * place + 1], shape[-1 - place]
        if mode == "reflection" and max(before, after) >= size:
            raise RuntimeError(f"{mode}_pad{dims}d: widths {before} and {after} must be below the size {size}")
        result[-1 - place] = size + before + after
    padded = result[count - dims :]
    if min(padded) < 0 or max(padded) < 1:
        raise RuntimeError(f"{mode}_pad{dims}d: padding {shape} by {tuple(padding)} gives the shape {tuple(result)}")
    return tuple(result)


def _run_spread(
    launcher: Launcher, mode: Mode, dims: int, padding: Sequence[int], *, small: View, large: View, backward: bool
) -> None:
    """Run the kernel: from ``small`` to ``large`` forward; backward each element of ``small`` gathers its gradients."""
    source, output = (large, small) if backward else (small, large)
    channel = len(small.shape) - dims - 1
    narrow = fits(small, INDEX_LIMIT) and fits(large, INDEX_LIMIT) and all(abs(w) < INDEX_LIMIT for w in padding)

    def sizes(view: View) -> list[int]:
        return [*reversed(view.shape[-dims:]), *[1] * (3 - dims)]

    def strides(view: View) -> list[int]:
        batch = view.strides[0] if channel == 1 else 0
        return [*reversed(view.strides[-dims:]), *[0] * (3 - dims), view.strides[channel], batch]

    params = {
        "input_sizes": sizes(small),
        "output_sizes": sizes(large),
        "left_pad": [*padding[::2], *[0] * (3 - dims)],
        "input_strides": strides(small),
        "output_strides": strides(large),
        "channels": small.shape[channel],
    }
    names = ("grad_output", "grad_input") if backward else ("input", "output")
    arguments = {names[0]: source.memory, names[1]: output.memory, "params": params}
    way = "backward" if backward else "forward"
    name = f"{mode}_pad{dims}d_{way}_{source.metal}_{'i32' if narrow else 'i64'}"
    width, height = sizes(output)[:2]
    launcher.volume(name, arguments, (_tiles(width), height, output.numel // (width * height)))


def _run_replication_1d(
    launcher: Launcher, padding: Sequence[int], *, small: View, large: View, backward: bool
) -> None:
    """An older kernel, which takes contiguous tensors only and one thread an element."""
    source, output = (large, small) if backward else (small, large)
    target = output if output.contiguous else empty(output.dtype, output.shape)
    names = ("grad_output", "grad_input") if backward else ("input", "output")
    arguments = {
        names[0]: copy.contiguous(launcher, source).memory,
        names[1]: target.memory,
        "sizes_pad": np.array([small.shape[-1], large.shape[-1], *padding], np.int32),
    }
    grid = (output.shape[-1], output.shape[-2], prod(output.shape[:-2]))
    name = f"replication_pad1d_{'backward' if backward else 'forward'}_{source.metal}"
    launcher.volume(name, arguments, grid)
    if target is not output:
        copy.copy(launcher, target, output)


def _spread(
    launcher: Launcher, mode: Mode, dims: int, padding: Sequence[int], *, small: View, large: View, backward: bool
) -> None:
    source, output = (large, small) if backward else (small, large)
    if output.numel == 0:
        return
    if source.numel == 0:
        fill.fill(launcher, output, 0)
        return
    if source.dtype != output.dtype:
        raise RuntimeError(f"{mode}_pad{dims}d: out has type {output.dtype.name}, its source {source.dtype.name}")
    if (mode, dims) == ("replication", 1):
        _run_replication_1d(launcher, padding, small=small, large=large, backward=backward)
    else:
        _run_spread(launcher, mode, dims, padding, small=small, large=large, backward=backward)


def _forward(
    mode: Mode, dims: int, launcher: Launcher, source: View, padding: Sequence[int], *, out: View | None = None
) -> View | None:
    shape = _spread_shape(mode, dims, source, padding)
    output = empty(source.dtype, shape) if out is None else out
    if output.shape != shape:
        raise Unsupported(f"out has shape {output.shape} and would have to be resized to {shape}")
    _spread(launcher, mode, dims, padding, small=source, large=output, backward=False)
    return output if out is None else None


def _backward(
    mode: Mode,
    dims: int,
    launcher: Launcher,
    grad_output: View,
    source: View,
    padding: Sequence[int],
    *,
    grad_input: View | None = None,
) -> View | None:
    shape = _spread_shape(mode, dims, source, padding)
    if grad_output.shape != shape:
        raise RuntimeError(
            f"{mode}_pad{dims}d_backward: grad_output must have shape {shape}, given {grad_output.shape}"
        )
    output = empty(source.dtype, source.shape) if grad_input is None else grad_input
    if output.shape != source.shape:
        raise Unsupported(f"grad_input has shape {output.shape} and would have to be resized to {source.shape}")
    _spread(launcher, mode, dims, padding, small=output, large=grad_output, backward=True)
    return output if grad_input is None else None


def _launches() -> dict[str, Launch]:
    """Each mode and number of dimensions, in every overload: with and without a tensor to write to."""
    launches: dict[str, Launch] = {"constant_pad_nd": _constant}
    modes: tuple[Mode, ...] = ("reflection", "replication")
    for mode in modes:
        for dims in (1, 2, 3):
            name = f"{mode}_pad{dims}d"
            forward, backward = partial(_forward, mode, dims), partial(_backward, mode, dims)
            launches |= {name: forward, f"{name}.out": forward}
            launches |= {f"{name}_backward": backward, f"{name}_backward.grad_input": backward}
    return launches


LAUNCHES: dict[str, Launch] = _launches()
