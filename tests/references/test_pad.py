"""Padding against a picture of each mode, element by element."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from references.pad import Mode, pad


def _source(index: int, size: int, mode: Mode) -> int | None:
    """Where the element that is ``index`` from the operand's first one comes from; None for the constant."""
    if mode == "constant":
        return index if 0 <= index < size else None
    if mode == "replicate":
        return min(max(index, 0), size - 1)
    if mode == "circular":
        return index % size
    index = abs(index)
    return index if index < size else 2 * (size - 1) - index


@pytest.mark.parametrize("mode", ["constant", "reflect", "replicate", "circular"])
def test_every_mode_along_one_dimension(mode: Mode) -> None:
    x = np.arange(10, 15)
    for before, after in itertools.product(range(-3, 5), repeat=2):
        if before + after <= -5:
            continue
        first, size = (max(-before, 0), 5 + min(before, 0) + min(after, 0)) if mode == "circular" else (0, 5)
        sources = [_source(i - first, size, mode) for i in range(-before, 5 + after)]
        expected = [0 if source is None else int(x[first + source]) for source in sources]
        assert pad(x, [before, after], mode=mode).tolist() == expected, (before, after)


def test_circular_pads_repeat_what_a_negative_one_leaves() -> None:
    x = torch.arange(24.0).reshape(2, 3, 4)
    for padding in ([2, -1], [-2, 2], [-1, 1, 2, -1], [3, -1, -2, 1]):
        expected = torch.nn.functional.pad(x, padding, mode="circular")
        assert pad(x.numpy(), padding, mode="circular").tolist() == expected.tolist()


def test_pads_begin_with_the_last_dimension() -> None:
    x = np.arange(6.0).reshape(1, 2, 3)
    assert pad(x, [1, 2]).shape == (1, 2, 6)
    assert pad(x, [1, 2, 3, 4]).shape == (1, 9, 6)
    assert pad(x, (0, -1, 0, 0, 2, 0), value=7.0)[:, 0, :].tolist() == [[7.0, 7.0], [7.0, 7.0], [0.0, 1.0]]


def test_the_type_stays() -> None:
    for dtype in (np.int64, np.uint64, np.bool_, np.complex128):
        assert pad(np.ones(2, dtype), [1, 1]).dtype == dtype
    assert pad(np.array([True]), [1, 0], value=True).tolist() == [True, True]
