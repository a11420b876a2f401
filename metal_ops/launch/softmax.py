"""Launching softmax and log_softmax: rows, split rows, strided and split strided reductions.

The rules of the host of 2.15.0 (aten/src/ATen/native/mps/operations/SoftMax.mm). Everything is accumulated in float32;
a chunk whose maximum is -inf contributes nothing, so a masked chunk does not poison its row.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from conformance.devices.base import Unsupported
from metal_ops.air.execution import Size
from metal_ops.launch import copy
from metal_ops.launch._launcher import Launch, Launcher
from metal_ops.launch._layouts import fits, wrapped
from metal_ops.launch._views import View, empty

THREADS = 256
ROWS_PER_GROUP = THREADS // 32
MAX_GROUP = 1024
INT32_LIMIT = 2**31 - 1


def _power_of_two_floor(value: int) -> int:
    return 1 << (value.bit_length() - 1)


def _power_of_two_ceiling(value: int) -> int:
    return 1 << (value - 1).bit_length()


class _Softmax:
    """One launch: the shape as outer x dim x inner, and the parameters that every kernel takes."""

    def __init__(self, launcher: Launcher, op: str, source: View, dim: int, output: View) -> None:
        self.launcher, self.op, self.source, self.dim, self.output = launcher, op, source, dim, output
        self.size = source.shape[dim]
        self.inner = prod(source.shape[dim + 1 :])
        self.rows = source.numel // self.size
        narrow = fits(source, INT32_LIMIT) and fits(output, INT32_LIMIT)
        self.suffix = f"{source.metal}_{'u32' if narrow else 'u64'}"

    def _params(self, chunk: int, chunks: int) -> dict[str, Any]:
        strides = [0 if size == 1 else step for size, step in zip(self.source.shape, self.source.strides, strict=True)]
        return {
            "dim_size": self.size,
            "num_rows": self.rows,
            "inner_size": self.inner,
            "chunk_size": chunk,
            "n_chunks": chunks,
            "ndim": len(self.source.shape),
            "dim": self.dim,
            "sizes": list(self.source.shape),
            "strides": strides,
        }

    def _run(self, kernel: str, arguments: dict[str, Any], groups: Size, group: Size) -> None:
        self.launcher.run(f"{kernel}_{self.suffix}", arguments, groups=groups, group=group)

    def run(self) -> None:
        """Choose and launch."""
        if self.source.contiguous and self.dim == len(self.source.shape) - 1:
            if self.size <= 2048 and (self.size <= 1024 or self.rows >= 128):
                self._rows()
                return
            chunks = max(1, min(512 // self.rows, -(-self.size // 2048)))
            if chunks > 1:
                self._split_rows(chunks)
                return
        self._strided()

    def _rows(self) -> None:
        """One simdgroup a row."""
        arguments = {"input": self.source.memory, "output": self.output.memory, "params": self._params(self.size, 1)}
        self._run(f"{self.op}_row", arguments, (-(-self.rows // ROWS_PER_GROUP), 1, 1), (THREADS, 1, 1))

    def _split_rows(self, chunks: int) -> None:
        """Long rows: each chunk's maximum and sum first, then every chunk finishes with those of the whole row."""
        params = self._params(-(-self.size // chunks), chunks)
        partials = np.full((self.rows, chunks, 2), np.nan, np.float32)
        grid, group = (chunks, self.rows, 1), (THREADS, 1, 1)
        self._run("softmax_partial", {"input": self.source.memory, "partials": partials, "params": params}, grid, group)
        arguments = {"input": self.source.memory, "output": self.output.memory, "partials": partials, "params": params}
        self._run(f"{self.op}_finalize", arguments, grid, group)

    def _strided(self) -> None:
        """Any layout: a group takes a tile of columns and shares their reduction among its rows of threads."""
        width = min(self.inner, 64 if self.source.dtype.itemsize == 2 else 32)
        height = min(_power_of_two_ceiling(self.size), 256, _power_of_two_floor(MAX_GROUP // width))
        tiles, outer = -(-self.inner // width), self.rows // self.inner
        chunks = max(1, min(256 // (tiles * outer), self.size // (16 * height)))
        if chunks > 1:
            self._split_strided(chunks, tiles, outer, (width, height, 1))
            return
        arguments = {"input": self.source.memory, "output": self.output.memory, "params": self._params(self.size, 1)}
        self._run(self.op, arguments, (tiles, outer, 1), (width, height, 1))

    def _split_strided(self, chunks: int, tiles: int, outer: int, group: Size) -> None:
        params = self._params(-(-self.size // chunks), chunks)
        partials = np.full((self.rows, chunks, 2), np.nan, np.float32)
        grid = (tiles, outer, chunks)
        arguments = {"input": self.source.memory, "partials": partials, "params": params}
        self._run("softmax_strided_partial", arguments, grid, group)
        arguments = {"input": self.source.memory, "output": self.output.memory, "partials": partials, "params": params}
        self._run(f"{self.op}_strided_finalize", arguments, grid, group)


def _launch(op: str) -> Launch:
    def launch(launcher: Launcher, source: View, dim: int, half_to_float: bool, *, out: View) -> None:
        if half_to_float:
            raise Unsupported("softmax with half_to_float: PyTorch's Metal backend refuses it")
        axis = wrapped(dim, len(source.shape))
        if source.numel == 0:
            return
        if source.dtype.name not in ("float32", "float16", "bfloat16"):
            raise Unsupported(f"{op} on {source.dtype.name}: the Metal kernels take float32, float16 and bfloat16")
        target = out if out.contiguous else empty(out.dtype, out.shape)
        if source.shape:
            _Softmax(launcher, op, source, axis, target).run()
        else:  # a tensor without dimensions is a row of one
            line, result = (replace(view, shape=(1,), strides=(1,)) for view in (source, target))
            _Softmax(launcher, op, line, 0, result).run()
        if target is not out:
            copy.copy(launcher, target, out)

    return launch


def _without_kernel(op: str) -> Launch:
    def launch(launcher: Launcher, *arguments: Any, **keywords: Any) -> None:
        raise Unsupported(f"PyTorch 2.15.0 computes the gradient of {op} by MPSGraph: its library has no kernel for it")

    return launch


LAUNCHES: dict[str, Launch] = {
    "_softmax.out": _launch("softmax"),
    "_log_softmax.out": _launch("log_softmax"),
    "_softmax_backward_data.out": _without_kernel("softmax"),
    "_log_softmax_backward_data.out": _without_kernel("log_softmax"),
}
