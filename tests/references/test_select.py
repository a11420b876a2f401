from __future__ import annotations

import numpy as np

from references import copy, select


def test_where_takes_any_condition_and_broadcasts() -> None:
    x, other = np.array([[1.0], [2.0]]), np.array([-0.0, np.nan])
    for condition in (np.array([True, False]), np.array([2, 0]), np.array([1.0, 0.0])):
        chosen = select.where(condition, x, other)
        assert chosen[:, 0].tolist() == [1.0, 2.0]
        assert np.isnan(chosen[:, 1]).all()
    assert select.where_scalar_self(np.array([True, False]), x, self=5.0).tolist() == [[5.0, 1.0], [5.0, 2.0]]


def test_masked_fill_keeps_the_type() -> None:
    x = np.array([1, 2, 3])
    filled = select.masked_fill(x, np.array([True, False, True]), 7)
    assert filled.tolist() == [7, 2, 7]
    assert filled.dtype == np.int64
    large = np.array([2**53 + 1, 0])
    assert select.masked_fill(large, np.array([False, True]), 1.5).tolist() == [2**53 + 1, 1]


def test_cat_leaves_out_empty_tensors_of_any_rank() -> None:
    x, y = np.ones((2, 1)), np.zeros((2, 2))
    assert select.cat(x, np.zeros(0), y, dim=-1).tolist() == [[1.0, 0.0, 0.0]] * 2
    assert select.cat(x, x, dim=0).shape == (4, 1)
    assert select.cat(np.zeros(0), np.zeros(0), dim=0).shape == (0,)


def test_a_cast_changes_nothing() -> None:
    x = np.array([1.5, np.nan])
    assert copy.cast(x, dtype="int8") is x
