"""Products with one row or one column: which kernel the host picks, and how it launches it.

The rules of aten/src/ATen/native/mps/operations/GemmHeuristics.cpp and kernels/Gemv.h shortly before 2.15.0, whose
library has just the kernels that they name; how the host aligns a matrix with gaps in its rows is inferred. Threads sum
either along columns of a matrix that lies row by row (``gemv_t``, ``gemv_t2d``) or along its rows (``gemv_nt``). How
``gemv_t`` splits the sum depends on how many cores the GPU has; here as many as the host assumes where it cannot tell.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from metal_ops.launch._launcher import Launcher
from metal_ops.launch._layouts import expanded, fits
from metal_ops.launch._views import View

CORES = 10
SIMD = 32
INT32_LIMIT = 2**31 - 1
NARROW = 1024
"""Results up to this length are made by ``gemv_t2d``, whose lanes read 16 bytes each."""
LONG_SUM = 16384
_PER_SIMD_GROUP = 32
"""The fewest terms of a sum that are worth a SIMD group."""


def gemv(
    launcher: Launcher, left: View, right: View, out: View, *, addend: View | None = None, alpha: Any = 1, beta: Any = 0
) -> bool:
    """Launch ``out = alpha left right + beta addend`` if a kernel of this file serves it; say whether one does.

    It does where the result is a row or a column of floats without gaps.
    """
    row = left.shape[0] == 1
    if out.dtype.name not in ("float32", "float16", "bfloat16") or not (row or right.shape[1] == 1):
        return False
    along = 1 if row else 0
    if out.shape[along] != 1 and out.strides[along] != 1:
        return False
    _Gemv(launcher, left, right, out).run(addend, alpha, beta)
    return True


class _Gemv:
    """One launch: the matrix, the vector, and how the matrix lies."""

    def __init__(self, launcher: Launcher, left: View, right: View, out: View) -> None:
        row = left.shape[0] == 1
        self.launcher, self.out, self.along = launcher, out, 1 if row else 0
        self.matrix, self.vector = (right, left) if row else (left, right)
        self.vector_step = left.strides[1] if row else right.strides[0]
        self.length = out.shape[1] if row else out.shape[0]
        self.inner = left.shape[1]
        self.wide = not all(fits(view, INT32_LIMIT) for view in (left, right, out))
        transposed = self._orient()
        self.along_columns = row != transposed

    def _orient(self) -> bool:
        """Find the step between rows and within them, and say whether the rows are the matrix's columns."""
        (rows, columns), (row_step, column_step) = self.matrix.shape, self.matrix.strides
        self.leading, self.step = row_step, column_step
        if column_step == 1 and row_step >= columns:
            return False
        if row_step == 1 and column_step >= rows:
            self.leading, self.step = column_step, 1
            return True
        return False

    @property
    def _bytes(self) -> int:
        return self.out.dtype.itemsize

    def run(self, addend: View | None, alpha: Any, beta: Any) -> None:
        """Pick and launch."""
        kernel, block, simdgroups = self._by_columns() if self.along_columns else self._by_rows()
        prefix, _, suffix = kernel.partition("*")
        name = f"{prefix}{'none' if addend is None else 'ab'}{suffix}"
        bias = None if addend is None else expanded(addend, self.out.shape)
        step = 0 if bias is None else bias.strides[self.along]
        dims = {"n": self.length, "K": self.inner, "ld": self.leading, "ms": self.step, "xs": self.vector_step}
        dims |= {"bias_r": 0 if self.along_columns else step, "bias_c": step if self.along_columns else 0}
        arguments = {
            "B" if self.along_columns else "A": self.matrix.memory,
            "x": self.vector.memory,
            "y": self.out.memory,
            "gP": dims,
            "bias": self.matrix.memory if bias is None else bias.memory,
            "alpha_beta": np.array([alpha, beta], np.float32),
        }
        groups = -(-self.length // block)
        self.launcher.run(name, arguments, groups=(groups, 1, 1), group=(SIMD * simdgroups, 1, 1))

    def _suffix(self) -> str:
        return ("_strided" if self.step != 1 else "") + ("_i64" if self.wide else "")

    def _clamped(self, vector: int) -> int:
        """The widest load up to ``vector`` elements that offset and rows of the matrix are aligned to."""
        while vector > 1 and (self.matrix.offset | self.leading) % vector:
            vector //= 2
        return vector

    def _by_columns(self) -> tuple[str, int, int]:
        """Name with a star in place of the epilogue, results of a group, and its SIMD groups."""
        full = 16 // self._bytes
        aligned = self.step == 1 and (self.matrix.offset | self.leading) % full == 0
        if self.wide:
            simdgroups, vector = 16, self._clamped(2)
        elif self.length <= NARROW and aligned:
            sublanes = 4 if self._bytes == 4 else 8
            return f"gemv_t2d_{self.out.metal}_16_{sublanes}_*", SIMD // sublanes * full, 16
        elif self.length <= NARROW:
            simdgroups, vector = 16, 1
        elif self._bytes == 4 and self.inner >= LONG_SUM:
            simdgroups, vector = 32, 1
        else:
            simdgroups, vector = self._split(), self._clamped(2)
        return f"gemv_t_{self.out.metal}_{simdgroups}_{vector}_*{self._suffix()}", SIMD * vector, simdgroups

    def _split(self) -> int:
        """SIMD groups that share each sum: the more the shorter the result, unless their parts are too short."""
        least, waves = (4, 56) if self._bytes == 4 else (16, 896)
        target = CORES * waves * 2 * SIMD
        most = 32 if self.length <= target // 32 else 16 if self.length <= target // least else least
        most = min(most, max(least, min(32, self.inner // _PER_SIMD_GROUP)))
        chosen = least
        while chosen * 2 <= most:
            chosen *= 2
        return chosen

    def _by_rows(self) -> tuple[str, int, int]:
        """The same where each SIMD group sums along a row."""
        if self.wide:
            simdgroups, vector = 8, self._clamped(16 // self._bytes)
        elif self._bytes == 4:
            simdgroups, vector = 4 if self.length >= 2048 else 16, self._clamped(4)
        else:
            simdgroups, vector = 8 if self.length >= 8192 else 4, self._clamped(8)
        dense = vector > 1 and self.vector_step == 1 and self.vector.offset % vector == 0
        loads = "xc" if dense else "xs"
        name = f"gemv_nt_{self.out.metal}_{simdgroups}_{vector}_*_{loads}{self._suffix()}"
        return name, simdgroups, simdgroups
