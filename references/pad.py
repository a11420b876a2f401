"""True values of padding, by ``np.pad``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Mode = Literal["constant", "reflect", "replicate", "circular"]

_MODES: dict[str, Any] = {"reflect": "reflect", "replicate": "edge"}
"""NumPy's names of torch's modes."""


def pad(x: NDArray[Any], pad: Sequence[int], mode: Mode = "constant", value: Any = None) -> NDArray[Any]:
    """``x`` with elements added at its ends, or taken away where a pad is negative.

    Parameters
    ----------
    pad
        Numbers of elements as torch orders them: before and after the last dimension, then the one before it, and so
        on; the dimensions that are left out stay.
    mode
        What is added: ``value`` (0 if None), the mirror image without its edge, the edge, or the other end. The first
        three are cropped after they were padded, and ``circular`` before: it repeats what is left.
    """
    pairs = [(0, 0)] * (x.ndim - len(pad) // 2) + list(zip(pad[-2::-2], pad[::-2], strict=True))
    widths = [(max(before, 0), max(after, 0)) for before, after in pairs]
    if mode == "constant":
        return _cropped(np.pad(x, widths, constant_values=0 if value is None else value), pairs)
    if mode == "circular":
        return np.pad(_cropped(x, pairs), widths, mode="wrap")
    return _cropped(np.pad(x, widths, mode=_MODES[mode]), pairs)


def _cropped(x: NDArray[Any], pairs: Sequence[tuple[int, int]]) -> NDArray[Any]:
    ends = zip(pairs, x.shape, strict=True)
    return x[tuple(slice(max(-before, 0), size - max(-after, 0)) for (before, after), size in ends)]
